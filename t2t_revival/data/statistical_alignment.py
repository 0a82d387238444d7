"""Word alignments of a corpus by eflomal, learned from the corpus itself, in both directions.

Reference: Östling and Tiedemann, 2016, "Efficient Word Alignment with Markov Chain Monte Carlo"; Koehn et
al., 2005, "Edinburgh System Description", grow-diag-final-and.
"""

from __future__ import annotations

import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

from t2t_revival.data.vocabulary.spans import split_words
from t2t_revival.data.word_alignment import Link, format_pharaoh, parse_pharaoh

SPACE = re.compile(r"\s")
AROUND = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]


def align_corpus(pairs: Iterable[tuple[str, str]], folder: Path) -> Iterator[str]:
    """Yields the links of each pair in Pharaoh's format; a pair with an empty side has none.

    Args:
        pairs: source and target texts. Case and the punctuation around words are not looked at.
        folder: for temporary files.
    """
    from eflomal import Aligner

    with tempfile.TemporaryDirectory(dir=folder) as place:
        names = [Path(place) / name for name in ("source", "target", "forward", "reverse")]
        with names[0].open("w", encoding="utf-8") as source, names[1].open("w", encoding="utf-8") as target:
            for pair in pairs:
                for file, text in zip((source, target), pair, strict=True):
                    file.write(" ".join(_bare(text[slice(*word)]) for word in split_words(text)) + "\n")
        with names[0].open(encoding="utf-8") as source, names[1].open(encoding="utf-8") as target:
            links = {"links_filename_fwd": str(names[2]), "links_filename_rev": str(names[3])}
            Aligner().align(source, target, **links, quiet=True)
        with names[2].open() as forward, names[3].open() as reverse:
            for lines in zip(forward, reverse, strict=True):
                yield format_pharaoh(symmetrize(*(parse_pharaoh(line).sure for line in lines)))


def symmetrize(forward: frozenset[Link], reverse: frozenset[Link]) -> frozenset[Link]:
    """Combines the links of both directions: grow-diag-final-and.

    It begins with the links that both have, adds neighbours of links that one has and that align a word which
    has no link yet, as long as there are any, and at last those of words without links on both sides.
    """
    links, union = set(forward & reverse), forward | reverse
    sources, targets = {source for source, _ in links}, {target for _, target in links}

    def add(link: Link) -> None:
        links.add(link)
        sources.add(link[0])
        targets.add(link[1])

    grown = True
    while grown:
        grown = False
        for source, target in sorted(links):
            for i, j in AROUND:
                link = source + i, target + j
                is_new = link in union and link not in links
                if is_new and (link[0] not in sources or link[1] not in targets):
                    add(link)
                    grown = True
    for direction in (forward, reverse):
        for link in sorted(direction):
            if link[0] not in sources and link[1] not in targets:
                add(link)
    return frozenset(links)


def _bare(word: str) -> str:
    """Returns a word in lower case, without the punctuation at its ends unless it has nothing else.

    White space in it, at which eflomal would cut it, is a sign.
    """
    word = SPACE.sub("_", word)
    marks = "".join(each for each in set(word) if unicodedata.category(each).startswith("P"))
    return (word.strip(marks) or word).lower()

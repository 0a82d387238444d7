"""Vocabularies that grow: pieces of new text come after the old ones, whose ids stay (`--update_vocab`)."""

from __future__ import annotations

import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from t2t_revival.data.vocabulary.marian import MarianVocabulary, best_cut, pack
from t2t_revival.data.vocabulary.sentencepiece import NORMAL, SPACE_MARK, Vocabulary, as_piece, with_pieces
from t2t_revival.data.vocabulary.subword_format import split_runs, subtoken_lines
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary, frequent_subtokens
from t2t_revival.data.vocabulary.text_encoder import TextEncoder
from t2t_revival.errors import T2TError
from t2t_revival.utils.files import write_whole

GROWTH = 0.25  # of the vocabulary at most, where no size is asked for
MIN_COUNT = 10  # occurrences of a new piece
PREFERRED = 0.01  # what the score of a new piece is above that of its parts
ITERATIONS = 4  # of tensor2tensor's algorithm
WORD = re.compile(f"{SPACE_MARK}?[^{SPACE_MARK}]+")


def extend(
    vocabulary: TextEncoder, lines: Iterable[str], path: Path, size: int = 0, symbols: Sequence[str] = ()
) -> TextEncoder:
    """Writes a vocabulary with further pieces, and returns it.

    SentencePiece's: frequent characters that it lacks, then merges of the pieces that the lines consist of,
    the most frequent first, which come after all old merges; only letters are merged. T2T's: the frequent
    subtokens that it lacks, by tensor2tensor's algorithm. Marian's: as SentencePiece's, of the side that cuts
    a word into fewer pieces, or of both, whose model prefers them to their parts.

    Args:
        vocabulary: its ids stay.
        lines: the new text.
        path: the file to write.
        size: number of pieces then, old and new, if the text has so many that occur 10 times; 0 adds a
            quarter at most.
        symbols: texts that are always one piece; those that it lacks come first.

    Raises:
        T2TError: `size` is not above the vocabulary's, the text has no new piece, or a vocabulary of T2T or
            Marian would need symbols.
    """
    if not isinstance(vocabulary, Vocabulary):
        check_symbols(vocabulary, symbols)
    count = size - vocabulary.size if size else int(vocabulary.size * GROWTH)
    if count < 1:
        raise T2TError(
            f"--vocab_size={size}: with --update_vocab it must be above the {vocabulary.size:,} pieces of "
            f"{vocabulary.path}"
        )
    if isinstance(vocabulary, Vocabulary):
        content = _sentencepiece(vocabulary, lines, count, list(map(as_piece, vocabulary.missing(symbols))))
    elif isinstance(vocabulary, SubwordVocabulary):
        content = _subwords(vocabulary, lines, count)
    else:
        assert isinstance(vocabulary, MarianVocabulary)
        if vocabulary.around:
            raise T2TError(f"--update_vocab: {path.name} is of M2M100 or NLLB and cannot grow: leave it out")
        content = _marian(vocabulary, lines, count)
    if not content:
        raise T2TError(
            f"--update_vocab: no piece that {vocabulary.path} lacks occurs {MIN_COUNT} times: leave it out"
        )
    write_whole(path, content)
    return type(vocabulary)(path)


def extends(vocabulary: TextEncoder, older: TextEncoder) -> bool:
    """Returns whether a vocabulary has all pieces of an older one, with the same ids."""
    return type(vocabulary) is type(older) and vocabulary.pieces[: older.size] == older.pieces


def check_symbols(vocabulary: TextEncoder, symbols: Sequence[str]) -> None:
    """Checks that texts are always one piece of a vocabulary.

    Raises:
        T2TError: one is not, as none is in a vocabulary of T2T or Marian.
    """
    remedy = "T2T's and Marian's have no such pieces; give a vocab.*.spm, or none"
    if isinstance(vocabulary, Vocabulary):
        symbols = vocabulary.missing(symbols)
        remedy = (
            "add it with --vocab_file and --update_vocab, or, if nothing was made with the file, remove it, "
            "and t2t-datagen makes another"
        )
    if symbols:
        raise T2TError(f"{vocabulary.path}: the vocabulary lacks the piece {symbols[0]!r}; {remedy}")


def _sentencepiece(vocabulary: Vocabulary, lines: Iterable[str], count: int, symbols: list[str]) -> bytes:
    count = max(count - len(symbols), 0)
    words = Counter(word for line in lines for word in WORD.findall(as_piece(line)))
    characters = _frequent_characters(words, set(vocabulary.pieces))[:count]
    with_characters = Vocabulary(vocabulary.path, vocabulary.content_with(characters, symbols))
    pieces = [*characters, *_merges(words, with_characters, count - len(characters))]
    return vocabulary.content_with(pieces, symbols) if symbols or pieces else b""


def _frequent_characters(words: Counter[str], known: set[str]) -> list[str]:
    counts: Counter[str] = Counter()
    for word, occurrences in words.items():
        for character in word:
            counts[character] += occurrences
    return [c for c, number in counts.most_common() if number >= MIN_COUNT and c not in known]


def _merges(words: Counter[str], vocabulary: Vocabulary | MarianVocabulary, count: int) -> Iterator[str]:
    """Yields merges of adjacent pieces inside words, by byte-pair encoding, the most frequent first."""
    texts, occurrences = zip(*words.items(), strict=True) if words else ((), ())
    segments = [vocabulary.split(text) for text in texts]
    counts: Counter[str] = Counter()
    places: defaultdict[str, set[int]] = defaultdict(set)  # words in which a merge may be possible
    for index, segment in enumerate(segments):
        for merge in _possible(segment):
            counts[merge] += occurrences[index]
            places[merge].add(index)
    heap = [(-number, merge) for merge, number in counts.items()]
    heapq.heapify(heap)
    while heap and count:
        number, merge = heapq.heappop(heap)
        if -number != counts[merge]:  # an entry of before it changed
            continue
        if -number < MIN_COUNT:
            return
        yield merge
        count -= 1
        changed = set()
        for index in places.pop(merge):
            for before in _possible(segments[index]):
                counts[before] -= occurrences[index]
                changed.add(before)
            segments[index] = _merged(segments[index], merge)
            for after in _possible(segments[index]):
                counts[after] += occurrences[index]
                places[after].add(index)
                changed.add(after)
        for other in changed - {merge}:
            heapq.heappush(heap, (-counts[other], other))


def _possible(segment: list[str]) -> Iterator[str]:
    """Yields the merges of adjacent pieces, which are letters after at most one space."""
    for left, right in pairwise(segment):
        if f"{left}{right}".removeprefix(SPACE_MARK).isalpha():
            yield left + right


def _merged(segment: list[str], merge: str) -> list[str]:
    merged: list[str] = []
    for piece in segment:
        if merged and merged[-1] + piece == merge:
            merged[-1] = merge
        else:
            merged.append(piece)
    return merged


def _marian(vocabulary: MarianVocabulary, lines: Iterable[str], count: int) -> bytes:
    sides = vocabulary.sides
    words: list[Counter[str]] = [Counter() for _ in sides]
    texts = Counter(word for line in lines for word in WORD.findall(vocabulary.normalized(line)))
    for word, occurrences in texts.items():
        lengths = [len(side.split(word)) for side in sides]
        for length, own in zip(lengths, words, strict=True):
            if length == min(lengths):
                own[word] = occurrences
    table, models = dict(vocabulary.marian_ids), []
    for left, side, own in zip(range(len(sides), 0, -1), sides, words, strict=True):
        scores, room = dict(side.scores), -(-(count - len(table) + len(vocabulary.marian_ids)) // left)
        characters = _frequent_characters(own, {*scores})[:room]
        for piece in [*characters, *_merges(own, side, room - len(characters))]:
            if piece in scores:
                continue
            scores[piece] = best_cut(piece, scores)[0] + PREFERRED
            table.setdefault(piece, len(table))
        new = [*scores.items()][len(side.scores) :]
        added = [(piece, score, NORMAL) for piece, score in new]
        models.append(with_pieces(side.model, len(scores), added) if added else side.model)
    has_new = models != [side.model for side in sides]
    return pack(table, models[0], models[-1]) if has_new else b""


def _subwords(vocabulary: SubwordVocabulary, lines: Iterable[str], count: int) -> bytes:
    runs = Counter(run for line in lines for run in split_runs(line))
    known = set(vocabulary.subtokens)
    characters = _frequent_characters(runs, known)
    alphabet = vocabulary.alphabet.union(characters)
    found = frequent_subtokens(runs, MIN_COUNT, ITERATIONS, (), None)
    longer = [each for each in found if len(each) > 1 and each not in known and alphabet.issuperset(each)]
    new = [*characters, *longer][:count]
    return subtoken_lines([*vocabulary.subtokens, *new], vocabulary.path, "'") if new else b""

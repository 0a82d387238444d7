"""The built-in corpus: its bytes, splits, held-out pairs, trees, alignments, and what no sentence has."""

import re
import subprocess
import sys
import zlib
from collections import defaultdict
from pathlib import Path
from zipfile import ZipFile

import pytest

from t2t_revival.data.word_alignment import check_links, parse_pharaoh
from t2t_revival.sample_corpus import CORPUS, lines
from tools.sample_corpus import is_held_out
from tools.sample_corpus.lexicon import ADJECTIVES, NOUNS, VERBS

ROOT = Path(__file__).parents[2]
SIZES = {"train": 20000, "dev": 500, "test": 500}
CHECKSUMS = {  # CRC-32 of English, German, French and trees, a sentence a line
    "train": [2590627028, 314020911, 873679573, 2265387330],
    "dev": [4117430703, 2274009310, 2436087281, 143488352],
    "test": [2932538385, 2243824793, 3827548114, 1069457617],
}
SIDES = ("en", "de", "fr", "trees")
ALIGNED = ("en-de", "en-fr", "de-fr")


def test_the_bytes_of_the_corpus():
    """Every sentence is as it was, so that figures that were measured with the corpus hold."""
    with ZipFile(CORPUS) as corpus:
        checksums = {file.filename: file.CRC for file in corpus.infolist()}
    for split, expected in CHECKSUMS.items():
        assert [checksums[f"{split}.{side}"] for side in SIDES] == expected
    assert [checksums[f"test.en-{other}.align"] for other in ("de", "fr")] == [3057450944, 2373953759]
    assert len(checksums) == len(SIZES) * len(SIDES + ALIGNED)


@pytest.mark.parametrize(("split", "size"), SIZES.items())
def test_each_file_has_a_line_for_each_sentence(split, size):
    files = (*SIDES, *(f"{languages}.align" for languages in ALIGNED))
    assert {len(lines(f"{split}.{file}")) for file in files} == {size}


def test_english_sentences_are_distinct():
    assert len({line for split in SIZES for line in lines(f"{split}.en")}) == sum(SIZES.values())


@pytest.mark.parametrize(
    "pattern", [r"\(JJ (\w+)\) \(NN (\w+)\)", r"\(VB[DZP]? (\w+)\) \(NP \(DT \w+\) \(NN (\w+)\)\)"]
)
def test_held_out_pairs_stand_in_test_alone(pattern):
    """Finds, in the trees, an adjective before its noun, or a verb before its object."""
    verbs = [verb.english for verb in VERBS]
    names = {form: verb.base for verb in verbs for form in (verb.base, verb.third, verb.past)}
    names |= {adjective.name: adjective.name for adjective in ADJECTIVES}

    def held(split):
        pairs = [pair for tree in lines(f"{split}.trees") for pair in re.findall(pattern, tree)]
        named = [f"{names[first]} {noun}" for first, noun in pairs if first in names]
        return [pair for pair in named if zlib.crc32(pair.encode()) % 10 == 0]

    assert not held("train") + held("dev")
    assert len(held("test")) > 20


def test_every_sentence_of_the_test_has_a_held_out_pair():
    """Somewhere in its tree are the two words of one, whatever stands between them."""
    firsts = defaultdict(set)
    for adjective in ADJECTIVES:
        for form in (adjective.name, adjective.comparative):
            firsts[form.lower()].add(adjective.name)
    for verb in VERBS:
        for form in (verb.english.base, verb.english.third, verb.english.past):
            firsts[form].add(verb.name)
    nouns = {form.lower(): noun.name for noun in NOUNS for form in (noun.name, noun.english_plural)}

    def pairs(tree):
        words = re.findall(r" ([^()\s]+)\)", tree.lower())
        return {
            (name, nouns[noun]) for word in words for name in firsts[word] for noun in words if noun in nouns
        }

    assert all(any(map(is_held_out, pairs(tree))) for tree in lines("test.trees"))


def test_every_word_of_the_test_is_known_from_training():
    for language in ("en", "de", "fr"):
        known, asked = (
            {word.strip(",.?") for line in lines(f"{split}.{language}") for word in line.lower().split()}
            for split in ("train", "test")
        )
        assert asked <= known


def test_trees_are_balanced_and_their_leaves_are_the_sentence():
    for split in SIZES:
        for tree, sentence in zip(lines(f"{split}.trees"), lines(f"{split}.en"), strict=True):
            assert tree.count("(") == tree.count(")")
            assert re.fullmatch(r"\((S|SQ|SBARQ) \(.*\)\)", tree)
            words = re.findall(r" ([^()\s]+)\)", tree)
            assert re.sub(r" (n't|'s|'(?= )|[.,?])", r"\1", " ".join(words)) == sentence


def test_tree_labels_are_those_of_the_penn_treebank():
    trees = " ".join(lines("train.trees"))
    labels = "S SQ SBARQ SBAR NP VP PP ADVP ADJP PRT WHNP WHADVP"
    assert {*re.findall(r"\(([^ ]+) (?=\()", trees)} == {*labels.split()}
    tags = "DT NN NNS NNP NNPS PRP PRP$ POS CD JJ JJR RBR VBZ VBP VBD VB MD RB RP IN TO CC WP WDT WRB . ,"
    assert {*re.findall(r"\(([^ ]+) [^()]+\)", trees)} == {*tags.split()}


@pytest.mark.parametrize("languages", ALIGNED)
def test_nearly_every_word_is_aligned(languages):
    links = [parse_pharaoh(line).sure for line in lines(f"dev.{languages}.align")]
    pairs = [*zip(*(lines(f"dev.{language}") for language in languages.split("-")), strict=True)]
    for found, (source, target) in zip(links, pairs, strict=True):
        check_links(found, source, target)
    for side, allowed in enumerate((0.03, 0.05)):  # articles that English lacks, and "à" before a recipient
        words = sum(len(pair[side].split()) for pair in pairs)
        assert sum(len({link[side] for link in found}) for found in links) > (1 - allowed) * words


@pytest.mark.parametrize(
    ("languages", "number", "links"),
    [
        (
            "en-de", 454,
            "She=Sie didn't=machte+nicht open=machte+auf. our=unsere broken=kaputten bottles.=Flaschen",
        ),
        ("en-fr", 454, "She=Elle didn't=n'a+pas open=ouvert our=nos broken=cassées. bottles.=bouteilles"),
        (
            "de-fr", 497,
            "Der=L'ami neugierige=curieux Freund=L'ami des=l'homme Mannes=l'homme arbeitet=travaille am=le "
            "Abend.=soir.",
        ),
    ],
)  # fmt: skip
def test_words_that_express_the_same_are_aligned(languages, number, links):
    """Checked by eye: each word of a sentence of dev with the words of the other side."""
    source, target = (lines(f"dev.{language}")[number].split() for language in languages.split("-"))
    found = parse_pharaoh(lines(f"dev.{languages}.align")[number]).sure
    assert links == " ".join(
        f"{word}={'+'.join(target[other] for first, other in sorted(found) if first == place)}"
        for place, word in enumerate(source)
    )


def test_no_wrong_strings():
    vowel = "[aeiouâàéèêëîïôœ]"
    wrong = {
        "en": [rf"\ba {vowel}", r"\ban [^aeiou]", "  ", r"\bI has\b", r"\b(he|she) are\b"],
        "de": [
            "  ", ",,", r", ?[.?]", r"\b(in|bei|zu|von) dem\b", r"\bzu der\b", "'",
            r", weil [^,]* (auf|zu|an|aus|ein|weg|zurück|vor)\.$",  # the finite verb is last, with its prefix
        ],
        "fr": [
            rf"\b(le|la|je|ne|que|de|se|me|du|ce|(un|le) (beau|nouveau|vieux)) {vowel}",
            r"\bde les?\b", r"\bà les?\b", r"\bsi ils?\b", "  ", "' ", r"\b(ma|sa) [aeiouéèêâîôœ]",
        ],
    }  # fmt: skip
    for language, patterns in wrong.items():
        texts = lines(f"train.{language}") + lines(f"test.{language}")
        for pattern in patterns:
            found = [text for text in texts if re.search(pattern, text, re.IGNORECASE)]
            assert not found, (pattern, found[:3])
    for texts in zip(*(lines(f"train.{language}") for language in wrong), strict=True):
        assert all(text[0].isupper() and text[-1] == texts[0][-1] for text in texts)


@pytest.mark.slow
@pytest.mark.nightly
def test_the_tool_writes_these_bytes(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "tools.sample_corpus", tmp_path / "again.zip"], cwd=ROOT, check=True
    )
    assert (tmp_path / "again.zip").read_bytes() == CORPUS.read_bytes()

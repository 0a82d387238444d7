"""The generated corpus: its bytes, splits, held-out pairs, trees, and strings that no sentence has."""

import re
import zlib
from itertools import islice

import pytest

from t2t_revival import T2TError, sample_corpus
from t2t_revival.sample_corpus import DEFAULT_SIZES, SPLITS, generate
from t2t_revival.sample_corpus.lexicon import ADJECTIVES, VERBS

pytestmark = pytest.mark.slow
CHECKSUMS = {  # CRC-32 of English, German, French and trees, a sentence a line
    "train": [2590627028, 314020911, 873679573, 2265387330],
    "dev": [4117430703, 2274009310, 2436087281, 143488352],
    "test": [2932538385, 2243824793, 3827548114, 1069457617],
}


@pytest.fixture(scope="module")
def corpus():
    return {split: list(generate(split)) for split in SPLITS}


def checksum(lines):
    return zlib.crc32("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize("split", SPLITS)
def test_the_bytes_of_the_corpus(corpus, split):
    """Every sentence is as it was, so that figures that were measured with the corpus hold."""
    assert len(corpus[split]) == DEFAULT_SIZES[split]
    sides = ("english", "german", "french", "tree")
    assert [checksum(getattr(one, side) for one in corpus[split]) for side in sides] == CHECKSUMS[split]


def test_the_bytes_of_alignments(corpus):
    assert {
        other: checksum(one.alignment("english", other) for one in corpus["test"])
        for other in ("german", "french")
    } == {"german": 3057450944, "french": 2373953759}


def test_sentences_are_those_of_the_seed(corpus):
    assert list(generate("train", 200, seed=1)) == corpus["train"][:200], "a larger size continues a smaller"
    assert list(generate("train", 200, seed=2)) != corpus["train"][:200]


def test_english_sentences_are_distinct_over_splits_and_seeds(corpus):
    texts = [sample.english for samples in corpus.values() for sample in samples]
    assert len(set(texts)) == len(texts)
    train = {sample.english for sample in corpus["train"]}
    assert not train & {sample.english for seed in (2, 3) for sample in generate("dev", 300, seed)}


def test_an_english_sentence_has_one_translation(corpus):
    other_seed = {sample.english: sample for sample in generate("train", 5000, seed=7)}
    shared = [sample for sample in corpus["train"] if sample.english in other_seed]
    assert shared
    assert all(other_seed[sample.english] == sample for sample in shared)


@pytest.mark.nightly
def test_a_hundred_thousand_sentences_are_reachable():
    assert len({sample.english for sample in generate("train", 100_000)}) == 100_000


@pytest.mark.parametrize(
    "pattern", [r"\(JJ (\w+)\) \(NN (\w+)\)", r"\(VB[DZP]? (\w+)\) \(NP \(DT \w+\) \(NN (\w+)\)\)"]
)
def test_held_out_pairs_stand_in_test_alone(corpus, pattern):
    """Finds, in the trees, an adjective before its noun, or a verb before its object."""
    verbs = [verb.english for verb in VERBS]
    names = {form: verb.base for verb in verbs for form in (verb.base, verb.third, verb.past)}
    names |= {adjective.name: adjective.name for adjective in ADJECTIVES}

    def held(samples):
        pairs = [pair for sample in samples for pair in re.findall(pattern, sample.tree)]
        named = [f"{names[first]} {noun}" for first, noun in pairs if first in names]
        return [pair for pair in named if zlib.crc32(pair.encode()) % 10 == 0]

    assert not held(corpus["train"] + corpus["dev"])
    assert len(held(corpus["test"])) > 20


def test_every_word_of_the_test_is_known_from_training(corpus):
    known = {word for sample in corpus["train"] for word in sample_corpus.words(sample)}
    assert all(sample_corpus.words(sample) <= known for sample in corpus["test"])


def test_trees_are_balanced_and_their_leaves_are_the_sentence(corpus):
    for sample in corpus["train"][:3000] + corpus["test"]:
        assert sample.tree.count("(") == sample.tree.count(")")
        assert re.fullmatch(r"\((S|SQ|SBARQ) \(.*\)\)", sample.tree)
        words = re.findall(r" ([^()\s]+)\)", sample.tree)
        assert re.sub(r" (n't|'s|'(?= )|[.,?])", r"\1", " ".join(words)) == sample.english


def test_tree_labels_are_those_of_the_penn_treebank(corpus):
    trees = " ".join(sample.tree for sample in corpus["train"])
    labels = "S SQ SBARQ SBAR NP VP PP ADVP ADJP PRT WHNP WHADVP"
    assert {*re.findall(r"\(([^ ]+) (?=\()", trees)} == {*labels.split()}
    tags = "DT NN NNS NNP NNPS PRP PRP$ POS CD JJ JJR RBR VBZ VBP VBD VB MD RB RP IN TO CC WP WDT WRB . ,"
    assert {*re.findall(r"\(([^ ]+) [^()]+\)", trees)} == {*tags.split()}


def test_no_wrong_strings(corpus):
    vowel = "[aeiouâàéèêëîïôœ]"
    wrong = {
        "english": [rf"\ba {vowel}", r"\ban [^aeiou]", "  ", r"\bI has\b", r"\b(he|she) are\b"],
        "german": [
            "  ", ",,", r", ?[.?]", r"\b(in|bei|zu|von) dem\b", r"\bzu der\b", "'",
            r", weil [^,]* (auf|zu|an|aus|ein|weg|zurück|vor)\.$",  # the finite verb is last, with its prefix
        ],
        "french": [
            rf"\b(le|la|je|ne|que|de|se|me|du|ce|(un|le) (beau|nouveau|vieux)) {vowel}",
            r"\bde les?\b", r"\bà les?\b", r"\bsi ils?\b", "  ", "' ", r"\b(ma|sa) [aeiouéèêâîôœ]",
        ],
    }  # fmt: skip
    for side, patterns in wrong.items():
        texts = [getattr(sample, side) for sample in corpus["train"] + corpus["test"]]
        for pattern in patterns:
            found = [text for text in texts if re.search(pattern, text, re.IGNORECASE)]
            assert not found, (pattern, found[:3])
    assert all(
        text[0].isupper() and text[-1] == sample.english[-1]
        for sample in corpus["train"]
        for text in (sample.english, sample.german, sample.french)
    )


@pytest.mark.parametrize(("split", "size"), [("tran", 10), ("train", -1)])
def test_bad_arguments(split, size):
    with pytest.raises(T2TError):
        generate(split, size)


def test_more_than_the_grammar_has_is_an_error(monkeypatch):
    monkeypatch.setattr(sample_corpus, "MAX_REJECTED_DRAWS", 0)
    with pytest.raises(T2TError, match="give a smaller size"):
        list(islice(generate("train", 5), 5))

"""The generated corpus: splits, held-out pairs, trees, and strings that no sentence may contain."""

import random
import re
from itertools import islice, pairwise

import pytest

from t2t_revival import sample_corpus as grammar
from t2t_revival.errors import T2TError
from t2t_revival.sample_corpus import DEFAULT_SIZES, SPLITS, english, generate
from t2t_revival.sample_corpus.clauses import DIRECT, NOUNS_OF, SUITING
from t2t_revival.sample_corpus.compose import Composer
from t2t_revival.sample_corpus.lexicon import NOUNS, VERBS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def corpus():
    return {split: list(generate(split)) for split in SPLITS}


def test_sizes(corpus):
    assert {split: len(samples) for split, samples in corpus.items()} == DEFAULT_SIZES


def test_the_same_seed_gives_the_same_sentences(corpus):
    assert list(generate("train", 200, seed=1)) == corpus["train"][:200]
    assert list(generate("train", 200, seed=2)) != corpus["train"][:200]


def test_english_sentences_are_distinct_within_and_across_splits(corpus):
    texts = [sample.english for samples in corpus.values() for sample in samples]
    assert len(set(texts)) == len(texts)


def test_an_english_sentence_has_one_translation(corpus):
    other_seed = {sample.english: sample for sample in generate("train", 5000, seed=7)}
    shared = [sample for sample in corpus["train"] if sample.english in other_seed]
    assert shared
    assert all(other_seed[sample.english] == sample for sample in shared)


def test_splits_are_disjoint_over_seeds(corpus):
    train = {sample.english for sample in corpus["train"]}
    assert not train & {sample.english for seed in (2, 3) for sample in generate("dev", 300, seed)}


def test_held_out_pairs_never_stand_in_training_text(corpus):
    """Finds pairs in the English words, without the meanings: an adjective directly before its noun."""
    held = {
        f"{adjective.name} {noun.name}"
        for nouns in NOUNS_OF.values()
        for noun in nouns
        for adjective in SUITING[noun.name]
        if grammar.is_held_out((adjective.name, noun.name))
    }
    assert len(held) > 100
    train = {" ".join(pair) for pair in _word_pairs(corpus["train"] + corpus["dev"])}
    test = {" ".join(pair) for pair in _word_pairs(corpus["test"])}
    assert not held & train
    assert len(held & test) > 50


def test_held_out_verbs_and_objects_never_meet_in_training(corpus):
    """Finds pairs in the trees: a verb whose object is a determiner and a noun."""
    verbs = {
        form: verb.english.base
        for verb in VERBS
        for form in (verb.english.base, verb.english.third, verb.english.past)
    }
    nouns = {form: noun.name for noun in NOUNS for form in (noun.name, noun.english_plural)}

    def held(samples):
        found = [
            pair
            for sample in samples
            for pair in re.findall(r"\(VB[DZP]? (\w+)\) \(NP \(DT \w+\) \(NNS? (\w+)\)\)", sample.tree)
        ]
        assert len(found) > 50
        known = [(verbs[verb], nouns[noun]) for verb, noun in found if verb in verbs and noun in nouns]
        return [pair for pair in known if grammar.is_held_out(pair)]

    assert not held(corpus["train"] + corpus["dev"])
    assert len(held(corpus["test"])) > 20


def _word_pairs(samples):
    for sample in samples:
        words = sample.english.strip(".?").split()
        yield from pairwise(words)


def test_every_word_of_the_test_is_known_from_training(corpus):
    known = {word for sample in corpus["train"] for word in grammar.words(sample)}
    assert all(grammar.words(sample) <= known for sample in corpus["test"])


def test_a_hundred_thousand_sentences_are_reachable():
    """Counts only "The NOUN VERBed the ADJECTIVE NOUN.", since draws of the whole grammar rarely repeat."""
    subjects, patterns = len(NOUNS_OF["person"]), 0
    for verb in DIRECT:
        objects = {noun.name for name in verb.objects for noun in NOUNS_OF[name]}
        patterns += "person" in verb.subjects and sum(len(SUITING[name]) for name in objects)
    assert subjects * patterns >= 100_000
    composer = Composer(random.Random(5))
    texts = [english.text(english.sentence(composer.sentence())) for _ in range(2000)]
    assert len(set(texts)) > 1800


def test_trees_are_balanced_and_their_leaves_are_the_sentence(corpus):
    for sample in corpus["train"][:3000] + corpus["test"]:
        assert sample.tree.count("(") == sample.tree.count(")")
        assert re.fullmatch(r"\((S|SQ|SBARQ) \(.*\)\)", sample.tree)
        words = re.findall(r" ([^()\s]+)\)", sample.tree)
        assert re.sub(r" (n't|'s|'(?= )|[.,?])", r"\1", " ".join(words)) == sample.english


def test_tree_labels_are_those_of_the_penn_treebank(corpus):
    labels = {label for sample in corpus["train"] for label in re.findall(r"\(([^ ]+) (?=\()", sample.tree)}
    tags = {tag for sample in corpus["train"] for tag in re.findall(r"\(([^ ]+) [^()]+\)", sample.tree)}
    assert labels == {
        "S", "SQ", "SBARQ", "SBAR", "NP", "VP", "PP", "ADVP", "ADJP", "PRT", "WHNP", "WHADVP",
    }  # fmt: skip
    assert tags == {
        "DT", "NN", "NNS", "NNP", "NNPS", "PRP", "PRP$", "POS", "CD", "JJ", "JJR", "RBR", "VBZ", "VBP", "VBD",
        "VB", "MD", "RB", "RP", "IN", "TO", "CC", "WP", "WDT", "WRB", ".", ",",
    }  # fmt: skip


def test_no_wrong_strings(corpus):
    vowel = "[aeiouâàéèêëîïôœ]"
    wrong = {
        "english": [rf"\ba {vowel}", r"\ban [^aeiou]", "  ", r"\bI has\b", r"\b(he|she) are\b"],
        "german": ["  ", ",,", r", ?[.?]", r"\b(in|bei|zu|von) dem\b", r"\bzu der\b", "'"],
        "french": [
            rf"\b(le|la|je|ne|que|de|se|me|du|ce|(un|le) (beau|nouveau|vieux)) {vowel}",
            r"\bde les?\b", r"\bà les?\b", r"\bsi ils?\b", "  ", "' ", r"\b(ma|sa) [aeiouéèêâîôœ]",
        ],
    }  # fmt: skip
    for sample in corpus["train"] + corpus["test"]:
        for side, patterns in wrong.items():
            for pattern in patterns:
                assert not re.search(pattern, getattr(sample, side), re.IGNORECASE), (pattern, sample)


def test_capital_and_mark(corpus):
    for sample in corpus["train"]:
        for text in (sample.english, sample.german, sample.french):
            assert text[0].isupper()
            assert text[-1] == sample.english[-1]


def test_german_second_part_stands_last_after_weil(corpus):
    """Checks that the finite verb is last after "weil": no sentence ends with a separated prefix."""
    clauses = [sample.german.split(", weil ")[1] for sample in corpus["train"] if ", weil " in sample.german]
    assert len(clauses) > 300
    assert not [clause for clause in clauses if re.search(r" (auf|zu|an|aus|ein|weg|zurück|vor)\.$", clause)]


@pytest.mark.parametrize(("split", "size"), [("tran", 10), ("train", -1)])
def test_bad_arguments(split, size):
    with pytest.raises(T2TError):
        generate(split, size)


def test_more_than_the_grammar_has_is_an_error(monkeypatch):
    monkeypatch.setattr(grammar, "MAX_REJECTED_DRAWS", 0)
    with pytest.raises(T2TError, match="give a smaller size"):
        list(islice(generate("train", 5), 5))

"""Constraints: exactly the trees over the words can be made, and outputs begin with their prefixes."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import HParams, T2TError
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.parsing.symbols import token_flags
from tests.support.search_engines import engines
from tests.support.searches import padded, search, trimmed
from tests.support.tiny_models import (
    EOS,
    all_outputs,
    length_penalty,
    log_softmax,
    logits_of,
    scores_of,
    tiny,
)

TREES = ["XX▁", "(NP▁", ")NP▁", "(S▁", ")S▁"]
PIECES = ("<pad>", "</s>", "<unk>", *TREES, "▁", "a", "▁b", "c")
TOKENS = range(8)  # that a tree may have, PAD and UNK among those its probabilities are divided among
NAMES = [piece.strip("▁") for piece in PIECES]
XX, A, SPACE_B, C = (PIECES.index(piece) for piece in ("XX▁", "a", "▁b", "c"))
SOURCES = {
    1: [C, EOS],
    2: [A, SPACE_B, EOS],
    3: [A, SPACE_B, C, SPACE_B, EOS],
    4: [C, XX, SPACE_B, SPACE_B, EOS],
}
VOCAB, SOURCE, EXTRA = 5, [3, 2, 1], 2


def is_tree(ids, words):
    """Checks that a sequence is one tree over so many words, then EOS, by reading it as a person would."""
    *tokens, last = [NAMES[token] for token in ids]
    stack, said = [], 0
    for place, token in enumerate(tokens):
        if (place > 0 and not stack) or (place == 0 and token[0] != "("):
            return False
        if token[0] == "(":
            stack.append([token[1:], False])
            continue
        if token == "XX":
            said += 1
        else:
            label, full = stack.pop()
            if not full or token != f"){label}":
                return False
        if stack:
            stack[-1][1] = True
    return last == "</s>" and bool(tokens) and not stack and said == words


def parser(seed, changes):
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2).replace(**changes)
    model = tiny(len(PIECES), seed, hparams)
    if model.deterministic_attention:
        model.deterministic_attention.token_flags.assign(token_flags(PIECES))
    return model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "limit", "changes"),
    [
        (1, 4, {}),
        (1, 6, {"decoder_self_attention": "ssru"}),
        (2, 7, {"deterministic_attention": True}),
        (3, 7, {}),
    ],
)
@pytest.mark.parametrize("engine", engines("trees"))
def test_a_wide_beam_finds_all_trees_within_the_limit_and_no_others(engine, words, limit, changes):
    """Each has its probability among the tokens of trees."""
    source, alpha = SOURCES[words], 0.3
    strings = itertools.chain.from_iterable(
        itertools.product(range(XX, len(TOKENS)), repeat=length) for length in range(1, limit)
    )
    trees = [ids for string in strings if is_tree(ids := (*string, EOS), words)]
    assert trees
    table = padded(trees)
    for seed in range(2):
        model = parser(seed, changes)
        logits = logits_of(model, np.repeat([source], len(trees), 0), table)[:, :, : len(TOKENS)]
        taken = np.take_along_axis(log_softmax(logits), table[:, :, None], axis=2)[:, :, 0] * (table > 0)
        scores = taken.sum(1) / length_penalty((table > 0).sum(1), alpha)
        how = {"beams": 100, "alpha": alpha, "extra": limit - len(source), "n": 100}
        (found,) = search(model, [source], engine=engine, trees=PIECES, **how)
        order = np.argsort(-scores)
        np.testing.assert_allclose([one.score for one in found], scores[order], rtol=1e-4)
        assert {tuple(one.ids) for one in found} == set(trees)
        assert tuple(found[0].ids) == trees[order[0]]


def test_what_is_refused():
    with pytest.raises(T2TError, match="constrained=True is for parsing"):
        search(tiny(6), [[3, 1]], trees=("<pad>", "</s>", "<unk>", "a", "▁b", "XX▁"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prefix", "alpha"), [([2], 0.6), ([3, 2], 0.0), ([4, 4, 4], -1.0), ([2, 3, 4, 2], 0.6)]
)
@pytest.mark.parametrize("engine", engines("prefixes"))
def test_the_outputs_are_the_best_of_all_that_begin_so(engine, prefix, alpha):
    outputs = all_outputs(VOCAB, max(len(SOURCE), len(prefix) + 1) + EXTRA)
    outputs = outputs[(outputs[:, : len(prefix)] == prefix).all(1)]
    for seed in range(3):
        model = tiny(VOCAB, seed)
        expected = scores_of(model, SOURCE, outputs, alpha)
        order = np.argsort(-expected)[:4]
        how = {"beams": 64, "alpha": alpha, "extra": EXTRA, "n": 4}
        (found,) = search(model, [SOURCE], engine=engine, prefixes=[prefix], **how)
        np.testing.assert_allclose([one.score for one in found], expected[order], rtol=1e-4)
        assert [one.ids for one in found] == [trimmed(row) for row in outputs[order]]


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("engine", engines("prefixes"))
def test_sentences_have_prefixes_of_their_own_or_none(engine, beams):
    model = tiny(9, seed=2, scale=0.5)
    sources = [[3, 2, 4, 1], [5, 1], [6, 7, 8, 2, 1], [4, 8, 1], [6, 1]]
    prefixes = [[7, 7, 2], [], [2], [8, 3, 2, 5, 5, 5, 5], []]
    how = {"engine": engine, "beams": beams, "extra": 3, "n": beams}
    found = search(model, sources, prefixes=prefixes, **how)
    for outputs, source, prefix in zip(found, sources, prefixes, strict=True):
        (alone,) = search(model, [source], prefixes=[prefix] if prefix else None, **how)
        assert [one.ids for one in outputs] == [one.ids for one in alone]
        np.testing.assert_allclose([one.score for one in outputs], [one.score for one in alone], rtol=1e-4)
        assert all(one.ids[: len(prefix)] == prefix for one in outputs)


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory, subwords_file):
    text = [f"the dog sees {number} houses ." for number in range(9)]
    learned = Vocabulary.train(text, tmp_path_factory.mktemp("vocabulary") / "v.spm", 300)
    return learned, SubwordVocabulary(subwords_file)


@settings(deadline=None)
@given(
    prefix=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=9),
    following=st.lists(st.integers(0, 10**6), max_size=6),
)
def test_whatever_tokens_follow_those_of_a_text_the_whole_begins_with_it(vocabularies, prefix, following):
    for vocabulary in vocabularies:
        ids = vocabulary.encode(prefix) + [id % vocabulary.size for id in following]
        assert vocabulary.decode(ids).startswith(prefix)

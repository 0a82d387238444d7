"""Alignment heads: the rule that makes links of their weights, and their file."""

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.spans import Span, Words
from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads, LinkRule
from tests.support.tiny_models import TINY

ONE = AlignmentHeads(1, (1,), shifted=False)
# Three target tokens and EOS over three source tokens and EOS; words 0 0 1 over 0 1 1.
ATTENTION = np.array(
    [[0.5, 0.1, 0.2, 0.2], [0.1, 0.2, 0.1, 0.6], [0.0, 0.6, 0.2, 0.2], [0.7, 0.1, 0.1, 0.1]], np.float32
)
SPANS = [Span(0, 1), Span(2, 3)]
SOURCE_WORDS, TARGET_WORDS = Words(SPANS, [0, 1, 1]), Words(SPANS, [0, 0, 1])


def test_words_have_means_of_sums():
    weights, _ = LinkRule().align(ATTENTION, SOURCE_WORDS, TARGET_WORDS)
    np.testing.assert_allclose(weights, [[0.3, 0.3], [0.0, 0.8]], rtol=1e-6)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (LinkRule(), [(0, 0), (1, 0), (1, 1)]),
        (LinkRule(null=True), [(1, 1)]),
        (LinkRule(share=0.0), [(0, 0), (1, 0), (0, 1), (1, 1)]),
    ],
)
def test_links(rule, expected):
    weights, links = rule.align(ATTENTION, SOURCE_WORDS, TARGET_WORDS)
    assert links == expected
    tagged, after_tag = rule.align(ATTENTION, SOURCE_WORDS, TARGET_WORDS, num_tags=1)
    assert after_tag == [(source - 1, target) for source, target in expected if source]
    np.testing.assert_array_equal(tagged, weights[:, 1:])


def test_a_text_without_words_has_no_links():
    assert LinkRule().align(ATTENTION, Words([], []), TARGET_WORDS)[1] == []
    assert LinkRule().align(ATTENTION, SOURCE_WORDS, Words([], []))[1] == []


def test_the_file_is_read_again(tmp_path):
    heads = AlignmentHeads(2, (1, 2), shifted=True, share=0.7, null=True)
    assert heads.save(tmp_path, {"error_rate": 0.1}) == tmp_path / FILE_NAME
    assert AlignmentHeads.find(tmp_path, TINY) == heads


def test_the_guided_head_needs_no_file(tmp_path):
    guided = TINY.replace(guided_alignment_weight=0.1)
    expected = AlignmentHeads(1, (1,), shifted=True, share=0.5, null=True)  # of two layers, the first
    assert AlignmentHeads.find(tmp_path, guided) == expected
    ONE.save(tmp_path)
    assert AlignmentHeads.find(tmp_path, guided) == ONE, "those that were chosen come first"


def test_without_heads(tmp_path):
    assert AlignmentHeads.find(tmp_path, TINY) is None


@pytest.mark.parametrize("content", ["[1]", "\xff"])
def test_a_file_of_something_else(tmp_path, content):
    (tmp_path / FILE_NAME).write_text(content, encoding="latin-1")
    with pytest.raises(T2TError, match="run t2t-align"):
        AlignmentHeads.find(tmp_path, TINY)


@pytest.mark.parametrize("heads", [AlignmentHeads(3, (1,), False), AlignmentHeads(1, (1, 3), False)])
def test_heads_that_the_model_lacks(heads):
    with pytest.raises(T2TError, match="the model has 2 layers with 2 heads"):
        heads.check(TINY)
    with pytest.raises(T2TError, match="a decoder without self-attention does not support alignments"):
        ONE.check(TINY.replace(decoder_self_attention="ssru"))

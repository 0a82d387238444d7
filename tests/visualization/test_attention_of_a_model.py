"""Weights are those that the model computed, with the labels of their tokens."""

from collections.abc import Iterator
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from t2t_revival import DecodeHParams, T2TError, Transformer, Translator
from t2t_revival.addons.attention.attention import (
    CROSS,
    DECODER,
    ENCODER,
    MAX_TOKENS,
    START,
    compute_attention,
    labels,
)
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.tiny_models import TINY

pytestmark = pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")  # one token


@pytest.fixture(scope="module")
def translator(subwords_file) -> Translator:
    """One for all tests, which leave it as it was."""
    keras.utils.set_random_seed(2)
    vocabulary = SubwordVocabulary(subwords_file)
    hparams = TINY.replace(num_encoder_layers=3, num_decoder_layers=2, max_length=40)
    options = DecodeHParams(beam_size=2, extra_length=4)
    return Translator(Transformer(hparams, vocabulary.size), vocabulary, options)


def test_labels_and_weights_of_a_given_target(translator) -> None:
    attention = compute_attention(translator, "the dogs", "do, the")
    read, written = ["the_", "dog", "s_", "<EOS>"], ["do", "_", ", _", "the_", "<EOS>"]
    encoder, decoder, cross = attention.kinds
    assert [encoder.kind, decoder.kind, cross.kind] == [ENCODER, DECODER, CROSS]
    assert encoder.queries == encoder.memory == cross.memory == read
    assert decoder.queries == cross.queries == written
    assert decoder.memory == [START, *written[:-1]]
    assert (attention.source, attention.target) == ("the dogs", "do, the")
    assert (encoder.layers, decoder.layers, cross.layers) == ((1, 2, 3), (1, 2), (1, 2))
    assert encoder.heads == decoder.heads == cross.heads == (1, 2)
    vocabulary = translator.vocabulary
    ids = [[*vocabulary.encode(text), EOS] for text in ("the dogs", "do, the")]
    expected = translator.model.attention_weights(
        {"inputs": np.array(ids[:1], "int32"), "targets": np.array(ids[1:], "int32")}
    )
    for attended, weights in zip(attention.kinds, expected, strict=True):
        assert attended.weights.shape == (
            len(attended.layers),
            2,
            len(attended.queries),
            len(attended.memory),
        )
        np.testing.assert_array_equal(attended.weights, ops.convert_to_numpy(weights)[0])


def test_the_output_is_the_decoders_own_best(translator) -> None:
    attention = compute_attention(translator, "the dog")
    written = attention.kinds[1].queries
    assert attention.target == translator.translate("the dog")
    source = translator.encode("the dog")
    assert labels(translator.vocabulary, translator.best_ids(source)) == written
    assert 1 <= len(written) <= len(source) + 4


def test_an_empty_target_has_its_end_only(translator) -> None:
    _, decoder, cross = compute_attention(translator, "the dog", "").kinds
    assert (decoder.queries, decoder.memory, cross.queries) == (["<EOS>"], [START], ["<EOS>"])
    np.testing.assert_allclose(decoder.weights, 1)


def test_special_tokens_have_names_of_their_own() -> None:
    vocabulary = SimpleNamespace(pieces=["<pad>", "</s>", "<unk>", "a"], unknown=2)
    assert labels(vocabulary, [3, 2, 0, 1]) == ["a", "<UNK>", "<PAD>", "<EOS>"]
    vocabulary.unknown = 0
    assert labels(vocabulary, [2, 0]) == ["<unk>", "<PAD>"]


def tokens(number: int) -> str:
    """A text of `number` tokens without EOS."""
    return " ".join(["the"] * number)


def test_a_lone_surrogate_is_refused(translator) -> None:
    for texts in (("\ud800", None), ("dog", "\udfff")):
        with pytest.raises(T2TError, match="lone surrogate"):
            compute_attention(translator, *texts)


def test_a_decoder_without_self_attention(translator) -> None:
    hparams = TINY.replace(decoder_self_attention="ssru")
    recurrent = Translator(Transformer(hparams, translator.vocabulary.size), translator.vocabulary)
    with pytest.raises(T2TError, match="no self-attention to be drawn: decoder_self_attention=ssru"):
        compute_attention(recurrent, "the dog")


def test_targets_and_outputs_that_are_too_long(translator, monkeypatch) -> None:
    monkeypatch.setattr(translator, "_max_length", 1000)
    with pytest.raises(T2TError, match=f"the target has {MAX_TOKENS + 1} tokens, the limit is {MAX_TOKENS}"):
        compute_attention(translator, "dog", tokens(MAX_TOKENS))
    longest = compute_attention(translator, "dog", tokens(MAX_TOKENS - 1)).kinds[1]
    assert len(longest.queries) == MAX_TOKENS
    monkeypatch.setattr(translator, "best_ids", lambda _: [5] * (MAX_TOKENS + 1))
    with pytest.raises(T2TError, match=f"the output has {MAX_TOKENS + 1} tokens"):
        compute_attention(translator, "dog")


@pytest.fixture
def without_numbers(translator) -> Iterator[None]:
    """Makes all weights NaN for a test."""
    weights = translator.model.get_weights()
    translator.model.set_weights([np.full_like(weight, np.nan) for weight in weights])
    yield
    translator.model.set_weights(weights)


@pytest.mark.usefixtures("without_numbers")
@pytest.mark.parametrize("target", [None, "dog"])
def test_weights_with_nan(translator, target) -> None:
    with pytest.raises(T2TError, match="contain NaN: use an earlier checkpoint"):
        compute_attention(translator, "the dog", target)


def test_select(hostile) -> None:
    narrow = hostile.select(layer=2, head=3)
    assert [(kind.layers, kind.heads) for kind in narrow.kinds] == [((2,), (3,))] * 3
    for kind, whole in zip(narrow.kinds, hostile.kinds, strict=True):
        np.testing.assert_array_equal(kind.weights, whole.weights[1:2, 2:3])
    for kind, whole in zip(hostile.select().kinds, hostile.kinds, strict=True):
        np.testing.assert_array_equal(kind.weights, whole.weights)
    assert [kind.kind for kind in hostile.select(kind=CROSS).kinds] == [CROSS]
    assert [kind.kind for kind in hostile.select(layer=3).kinds] == [ENCODER]  # the decoder has two
    with pytest.raises(T2TError, match="--layer=3: the model has layers 1 to 2"):
        hostile.select(layer=3, kind=CROSS)

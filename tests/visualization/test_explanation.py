"""Words of an output: probabilities and attention that the model computed, put together by word."""

from itertools import pairwise

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.model import Transformer
from t2t_revival.visualization.explanation import MAX_TOKENS, _words, explain
from tests.support.tiny_models import TINY

SOURCE, OUTPUT = "the dogs", "do, the dog"
SOURCE_WORDS, OUTPUT_WORDS = ["the", "dogs"], ["do", ",", "the", "dog"]
SOURCE_TOKENS, OUTPUT_TOKENS = [0, 1, 1], [0, 0, 1, 2, 3, 3]  # words of the_ dog s_; do _ ,_ the_ dog _


@pytest.fixture(scope="module")
def translator(subwords_file) -> Translator:
    """One for all tests, which leave it as it was."""
    keras.utils.set_random_seed(3)
    vocabulary = SubwordVocabulary(subwords_file)
    model = Transformer(TINY.replace(max_length=400), vocabulary.size)
    return Translator(model, vocabulary, DecodeHParams(beam_size=2, extra_length=4))


@pytest.fixture(scope="module")
def inputs(translator) -> dict[str, np.ndarray]:
    ids = [[*translator.vocabulary.encode(text), EOS] for text in (SOURCE, OUTPUT)]
    return {name: np.array([row], "int32") for name, row in zip(("inputs", "targets"), ids, strict=True)}


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def test_words_have_the_probabilities_of_their_tokens(translator, inputs) -> None:
    found = explain(translator, SOURCE, OUTPUT)
    probabilities = softmax(ops.convert_to_numpy(translator.model(inputs))[0].astype("float64"))
    target = inputs["targets"][0]
    of_token = np.log(probabilities[np.arange(len(target)), target])
    assert [found.output[slice(*word.span)] for word in found.words] == OUTPUT_WORDS
    expected = np.zeros(len(OUTPUT_WORDS))
    np.add.at(expected, OUTPUT_TOKENS, of_token[:-1])
    np.testing.assert_allclose([word.log_prob for word in found.words], expected, atol=1e-5)


def test_alternatives_are_the_most_probable_tokens_at_a_words_beginning(translator, inputs) -> None:
    found = explain(translator, SOURCE, OUTPUT)
    probabilities = softmax(ops.convert_to_numpy(translator.model(inputs))[0].astype("float64"))
    vocabulary = translator.vocabulary
    for number, word in enumerate(found.words):
        first = OUTPUT_TOKENS.index(number)
        known = {(vocabulary.decode([token]).strip(), p) for token, p in enumerate(probabilities[first])}
        before = inputs["targets"][0][:first].tolist()
        prefixes = {vocabulary.decode([*before, token]) for token in range(vocabulary.size)}
        most = max(p for text, p in known if text)
        assert word.alternatives[0].probability == pytest.approx(most, abs=1e-6)
        for text, prefix, probability in word.alternatives:
            assert text
            assert prefix in prefixes
            assert any(text == other and abs(probability - p) < 1e-6 for other, p in known)


def test_an_alternative_goes_on_with_a_word_or_begins_one(vocabulary_file) -> None:
    """Pieces with and without the mark of a space give other beginnings; no piece without text is one."""
    keras.utils.set_random_seed(6)
    vocabulary = Vocabulary(vocabulary_file)
    found = explain(Translator(Transformer(TINY, vocabulary.size), vocabulary), "the dog", "the dogs.")
    last = found.words[-1]
    assert found.output[slice(*last.span)] == "."
    known = {vocabulary.decode([*vocabulary.encode("the dogs"), token]) for token in range(vocabulary.size)}
    for word in found.words:
        assert not {"\u2581", "<EOS>", "<PAD>", "<UNK>", "\ufffd"} & {one.text for one in word.alternatives}
    assert all(one.prefix in known for one in last.alternatives)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't go", ["don't", "go"]),
        ("l\u2019homme, 'oui'", ["l\u2019homme", ",", "'", "oui", "'"]),
        ("cafe\u0301 noir", ["cafe\u0301", "noir"]),
        ("हिन्दी है", ["हिन्दी", "है"]),
        ("3.5 %...", ["3", ".", "5", "%..."]),
    ],
)
def test_words_are_letters_with_marks_and_apostrophes(text, words, vocabulary_file) -> None:
    class Characters(Vocabulary):
        """Each character is a piece."""

        pieces = tuple(map(chr, range(0x3000)))

        def decode(self, ids):
            return "".join(map(chr, ids))

    decoded, _, spans = _words(Characters(vocabulary_file), list(map(ord, text)))
    assert [decoded[slice(*span)] for span in spans] == words


def test_attention_is_summed_over_the_tokens_of_a_source_word(translator, inputs) -> None:
    found = explain(translator, SOURCE, OUTPUT)
    assert [found.source[slice(*span)] for span in found.source_words] == SOURCE_WORDS
    cross = ops.convert_to_numpy(translator.model.attention_weights(inputs)[2])[0].mean((0, 1))
    for number, word in enumerate(found.words):
        of_word = cross[[n for n, one in enumerate(OUTPUT_TOKENS) if one == number]].mean(0)
        expected = [of_word[0], of_word[1] + of_word[2]]
        np.testing.assert_allclose(word.attention, expected, atol=1e-6)
        assert sum(word.attention) < 1  # the end of the source has the rest


def test_without_an_output_the_best_one_is_explained(translator) -> None:
    best = translator.translate(SOURCE)
    assert explain(translator, SOURCE).output == explain(translator, SOURCE, best).output


def test_a_beginning_is_kept(translator) -> None:
    assert explain(translator, SOURCE, prefix="the dog").output.startswith("the dog")


@pytest.mark.parametrize(
    ("line", "output", "message"),
    [
        (" ", "the", "the source is empty"),
        ("the", " ", "there is nothing to explain"),
        (" ".join(["the"] * MAX_TOKENS), "the", "the source has 257 tokens, the limit is 256"),
        ("the", " ".join(["the"] * MAX_TOKENS), "the output has 257 tokens, the limit is 256"),
        ("the", "\ud800", "not valid Unicode"),
    ],
)
def test_what_cannot_be_explained(translator, line, output, message) -> None:
    with pytest.raises(T2TError, match=message):
        explain(translator, line, output)


def test_weights_that_are_no_numbers(translator) -> None:
    keras.utils.set_random_seed(4)
    model = Transformer(TINY, translator.vocabulary.size)
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    with pytest.raises(T2TError, match="the model's weights contain NaN"):
        explain(Translator(model, translator.vocabulary), SOURCE, OUTPUT)


def test_pieces_are_words_where_no_spaces_are(translator) -> None:
    text = "日日 日"
    ids = translator.vocabulary.encode(text)
    _, _, words = _words(translator.vocabulary, ids)
    assert [text[slice(*word)].strip() for word in words] == ["日", "日", "日"]


@pytest.mark.parametrize("kind", ["subwords", "sentencepiece"])
@given(text=st.text(max_size=30))
def test_words_of_any_text(kind, text, subwords_file, vocabulary_file) -> None:
    """Words are in order and do not overlap, and each has a token."""
    vocabulary = SubwordVocabulary(subwords_file) if kind == "subwords" else Vocabulary(vocabulary_file)
    ids = vocabulary.encode(" ".join(text.split()))
    if not vocabulary.decode(ids).strip():
        return
    decoded, tokens, words = _words(vocabulary, ids)
    assert sorted(set(tokens)) == list(range(len(words)))
    assert tokens == sorted(tokens)
    edges = [edge for word in words for edge in word]
    assert edges == sorted(edges)
    assert all(decoded[slice(*word)].strip() for word in words)
    outside = "".join(decoded[end:start] for (_, end), (start, _) in pairwise(words))
    assert not outside.strip()

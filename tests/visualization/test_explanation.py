"""Words of an output: probabilities and attention that the model computed, put together by word."""

from itertools import pairwise
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keras import ops

from t2t_revival import DecodeHParams, T2TError, Transformer, Translator
from t2t_revival.addons.server import explanation
from t2t_revival.addons.server.explanation import MAX_TOKENS, _words, explain
from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.tiny_models import TINY
from tests.visualization.conftest import softmax

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


def test_words_have_the_probabilities_of_their_tokens(translator, inputs) -> None:
    found = explain(translator, SOURCE, OUTPUT)
    probabilities = softmax(ops.convert_to_numpy(translator.model(inputs))[0].astype("float64"))
    target = inputs["targets"][0]
    of_token = np.log(probabilities[np.arange(len(target)), target])
    assert [found.output[slice(*word.span)] for word in found.words] == OUTPUT_WORDS
    expected = np.zeros(len(OUTPUT_WORDS))
    np.add.at(expected, OUTPUT_TOKENS, of_token[:-1])
    np.testing.assert_allclose([word.log_prob for word in found.words], expected, atol=1e-5)


def test_alternatives_are_those_of_the_word_that_is_asked_for(translator) -> None:
    found = explain(translator, SOURCE, OUTPUT, number=2)
    assert [bool(word.alternatives) for word in found.words] == [False, False, True, False]
    (start, _), others = found.words[2].span, found.words[2].alternatives
    assert "the" not in [one.text for one in others]
    assert [one.probability for one in others] == sorted((one.probability for one in others), reverse=True)
    for one in others:
        assert 0 < one.probability < 1
        assert one.prefix.rstrip() == one.prefix
        assert one.prefix.startswith(found.output[:start].rstrip())
        assert one.prefix.endswith(one.text)


class Pieces(Vocabulary):
    """SentencePiece's marks of spaces, with pieces of a test's own."""

    own = "▁Hund", "▁schl", "äft", "ief", "▁ruht", ".", "▁", "e", "n", "'", "▁geht", "s", "日", "本"
    pieces = "<PAD>", "<EOS>", "<UNK>", *own
    unknown = 2

    def decode(self, ids):
        return "".join(self.pieces[one] for one in ids).replace("▁", " ").strip(" ")


def others_of(table, before, own, vocabulary_file, monkeypatch):
    """Returns texts and probabilities of alternatives; `table` has next pieces after the pieces of a word."""
    vocabulary = Pieces(vocabulary_file)
    ids = {piece: place for place, piece in enumerate(vocabulary.pieces)}
    first = len(before)

    def next_log_probs(*_, beginnings):
        rows = np.full((len(beginnings), len(vocabulary.pieces)), -40.0)
        for row, tokens in zip(rows, beginnings, strict=True):
            after = "".join(vocabulary.pieces[one] for one in tokens[first:])
            for piece, probability in table.get(after, {"<EOS>": 1.0}).items():
                row[ids[piece]] = np.log(probability)
        return rows

    monkeypatch.setattr(explanation, "_next_log_probs", lambda *given: next_log_probs(beginnings=given[-1]))
    model = SimpleNamespace(encode=lambda source: source)
    translator = SimpleNamespace(model=model, vocabularies=SimpleNamespace(targets=vocabulary))
    found = explanation._alternatives(translator, [1], [ids[one] for one in before], own)
    return [(one.text, one.prefix, round(one.probability, 3)) for one in found if one.probability > 1e-6]


def test_alternatives_are_whole_words_across_pieces(vocabulary_file, monkeypatch) -> None:
    table = {
        "": {"▁schl": 0.9, "▁ruht": 0.06, "▁geht": 0.03, "s": 0.01},  # the last would be "Hunds"
        "▁schl": {"äft": 0.8, "ief": 0.2},
        "▁schläft": {".": 1.0},
        "▁schlief": {"e": 0.5, ".": 0.25, "▁ruht": 0.25},
        "▁schliefe": {"n": 1.0},
        "▁geht": {"'": 0.5, "<EOS>": 0.5},
        "▁geht'": {"s": 1.0},
    }
    assert others_of(table, ["▁Hund"], "schläft", vocabulary_file, monkeypatch) == [
        ("schlief", "Hund schlief", 0.09),
        ("schliefen", "Hund schliefen", 0.09),
        ("ruht", "Hund ruht", 0.06),
        ("geht", "Hund geht", 0.015),
        ("geht's", "Hund geht's", 0.015),
    ]


def test_alternatives_of_a_full_stop_and_of_a_first_word(vocabulary_file, monkeypatch) -> None:
    table = {"": {".": 0.9, "▁": 0.05, "e": 0.05}, "▁": {"n": 0.5, "▁": 0.5}, "e": {"n": 1.0}}
    assert others_of(table, ["▁Hund"], ".", vocabulary_file, monkeypatch) == [("n", "Hund n", 0.025)]
    first = others_of(table, [], ".", vocabulary_file, monkeypatch)
    assert first == [("en", "en", 0.05), ("n", "n", 0.025)]
    of_words = others_of({"": {"日": 0.7, "本": 0.3}}, ["日"], "日", vocabulary_file, monkeypatch)
    assert of_words == [("本", "日本", 0.3)], "pieces may be words"


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


@pytest.mark.parametrize("number", [-1, 4])
def test_alternatives_of_no_word(translator, number) -> None:
    with pytest.raises(T2TError, match=f"word must be between 0 and 3: {number}"):
        explain(translator, SOURCE, OUTPUT, number=number)


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

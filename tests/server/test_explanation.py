"""Outputs explained word by word: the details that `t2t-decoder` has, and other words in the place of one."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError, Transformer, Translator
from t2t_revival.addons.server.explanation import MAX_TOKENS, explain, other_words
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.details import Details, Token, Word
from t2t_revival.decoding.engine import Annotations
from t2t_revival.decoding.lines.detailer import Detailer, Hypothesis
from tests.support.tiny_models import TINY

SOURCE, OUTPUT = "the dogs", "do, the dog"
HEADS = AlignmentHeads(1, (2,), shifted=True, share=0.6)
EVERYTHING = DecodeHParams.parse("beam_size=2,extra_length=4,token_scores=True,alignments=pharaoh")


@pytest.fixture(scope="module")
def translator(subwords_file) -> Translator:
    """One for all tests, which leave it as it was."""
    keras.utils.set_random_seed(3)
    vocabulary = SubwordVocabulary(subwords_file)
    model = Transformer(TINY.replace(max_length=400), vocabulary.size)
    return Translator(model, vocabulary, DecodeHParams(beam_size=2, extra_length=4))


def test_words_are_those_of_the_decoders_details(translator):
    detailed = Translator(translator.model, translator.vocabulary, EVERYTHING, alignment_heads=HEADS)
    (score,) = detailed.score([(SOURCE, OUTPUT)])
    _, details = explain(detailed, SOURCE, OUTPUT)
    assert details.words == score.details.words
    assert details.links == score.details.links
    assert [token.log_prob for token in details.tokens] == [token.log_prob for token in score.details.tokens]
    assert [word.text for word in details.words] == ["do,", "the", "dog"]
    assert np.shape(details.attention) == (3, 2)


def test_without_alignment_heads_all_of_the_last_layer_align(translator):
    _, details = explain(translator, SOURCE, OUTPUT)
    ids = [[*translator.vocabulary.encode(text), EOS] for text in (SOURCE, OUTPUT)]
    inputs = {name: np.array([row], "int32") for name, row in zip(("inputs", "targets"), ids, strict=True)}
    cross = np.asarray(translator.model.attention_weights(inputs).encoder_decoder)[0, -1].mean(0)
    of_words = [0, 0, 0, 1, 2, 2]  # do _ ,_ the_ dog _
    for number, weights in enumerate(details.attention):
        of_word = cross[[place for place, word in enumerate(of_words) if word == number]].mean(0)
        np.testing.assert_allclose(weights, [of_word[0], of_word[1] + of_word[2]], atol=1e-6)


def test_tokens_are_words_in_scripts_without_spaces(translator):
    hypothesis, details = explain(translator, "日日 the", "日a日 dog")
    assert [hypothesis.source[slice(*span)] for span in details.source_words] == ["日", "日", "the"]
    assert [word.text for word in details.words] == ["日", "a", "日", "dog"]


def test_the_best_output_is_explained_where_none_is_given(translator):
    assert explain(translator, SOURCE)[0].text == translator.translate(SOURCE)
    assert explain(translator, SOURCE, prefix="the dog")[0].text.startswith("the dog")


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
def test_what_cannot_be_explained(translator, line, output, message):
    with pytest.raises(T2TError, match=message):
        explain(translator, line, output)


def test_weights_that_are_no_numbers(translator):
    model = Transformer(TINY, translator.vocabulary.size)
    model.weights[0].assign(np.full(model.weights[0].shape, np.nan))
    with pytest.raises(T2TError, match="the model's weights contain NaN"):
        explain(Translator(model, translator.vocabulary), SOURCE, OUTPUT)


def test_other_words_begin_after_the_words_before(translator):
    explained = explain(translator, SOURCE, OUTPUT)
    others = other_words(translator, *explained, number=1)
    assert "the" not in [other.text for other in others]
    assert [other.probability for other in others] == sorted((o.probability for o in others), reverse=True)
    for other in others:
        assert 0 < other.probability < 1
        assert other.prefix == f"do, {other.text}"
    for number in (-1, 3):
        with pytest.raises(T2TError, match=f"word must be between 0 and 2: {number}"):
            other_words(translator, *explained, number)


class Pieces(Vocabulary):
    """SentencePiece's marks of spaces, with pieces of a test's own."""

    own = "▁Hund", "▁schl", "äft", "ief", "▁ruht", ".", "▁", "e", "n", "▁geht", "s", "日", "本", "。"
    pieces = "<PAD>", "<EOS>", "<UNK>", *own
    unknown = 2

    def decode(self, ids):
        return "".join(self.pieces[token] for token in ids).replace("▁", " ").strip(" ")


def others_of(table, before, word, vocabulary_file):
    """Returns other words and their probabilities; `table` has next pieces after the pieces of a word."""
    vocabulary = Pieces(vocabulary_file)
    ids = {piece: place for place, piece in enumerate(vocabulary.pieces)}

    def annotate(sources, targets, alternatives, heads):
        log_probs = np.full((*targets.shape, len(ids)), -40.0)
        for row, tokens in zip(log_probs[:, -1], targets, strict=True):
            after = "".join(vocabulary.pieces[token] for token in tokens[len(before) : -1])
            for piece, probability in table.get(after, {"<EOS>": 1.0}).items():
                row[ids[piece]] = np.log(probability)
        order = np.argsort(-log_probs, axis=-1, kind="stable")[..., :alternatives]
        return Annotations(None, order, np.take_along_axis(log_probs, order, -1), None)

    vocabularies = Vocabularies(vocabulary, vocabulary)
    translator = SimpleNamespace(
        model=SimpleNamespace(hparams=TINY),
        term_heads=None,
        vocabularies=vocabularies,
        detailer=Detailer(annotate, vocabularies),
    )
    tokens = [Token(piece, 0.0, -len(before) + place, ()) for place, piece in enumerate([*before, word])]
    hypothesis = Hypothesis("x", "", [3, EOS], "", [*(ids[piece] for piece in before), 3, EOS])
    details = Details((), (Word(word, 0, 0, 0.0),), tuple(tokens), ())
    found = other_words(translator, hypothesis, details, 0)
    return [(one.text, one.prefix, round(one.probability, 3)) for one in found if one.probability > 1e-6]


def test_other_words_are_whole(vocabulary_file):
    table = {
        "": {"▁schl": 0.9, "▁ruht": 0.06, "▁geht": 0.03, "s": 0.01},  # the last would be "Hunds"
        "▁schl": {"äft": 0.8, "ief": 0.2},
        "▁schläft": {".": 1.0},
        "▁schlief": {"e": 0.5, ".": 0.3, "▁ruht": 0.2},
        "▁schliefe": {"n": 1.0},
        "▁geht": {"▁": 0.5, "<EOS>": 0.5},
    }
    assert others_of(table, ["▁Hund"], "schläft.", vocabulary_file) == [
        ("schliefen", "Hund schliefen", 0.09),
        ("ruht", "Hund ruht", 0.06),
        ("schlief.", "Hund schlief.", 0.054),
        ("schlief", "Hund schlief", 0.036),
        ("geht", "Hund geht", 0.03),
    ]


def test_other_words_at_the_beginning_and_in_scripts_without_spaces(vocabulary_file):
    table = {"": {".": 0.9, "▁": 0.05, "e": 0.05}, "▁": {"n": 0.5, "▁": 0.5}, "e": {"n": 1.0}}
    assert others_of(table, ["▁Hund"], ".", vocabulary_file) == [("n", "Hund n", 0.025)]
    first = others_of(table, [], ".", vocabulary_file)
    assert first == [("en", "en", 0.05), ("n", "n", 0.025)]
    of_tokens = others_of({"": {"日": 0.6, "本": 0.3, "。": 0.1}}, ["日"], "日", vocabulary_file)
    assert of_tokens == [("本", "日本", 0.3), ("。", "日。", 0.1)]

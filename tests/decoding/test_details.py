"""Details of outputs: log-probabilities, alternatives and alignments, as the whole model has them."""

import keras
import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError, Transformer, Translation, Translator
from t2t_revival.addons.head_choice import choose_heads, lexical_alignments
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.spans import token_spans, words_of_text
from t2t_revival.data.word_alignment import Alignment
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.lines.detailer import encode_pairs
from t2t_revival.errors import LineError
from tests.support.tiny_models import TINY, log_softmax, logits_of

HEADS = AlignmentHeads(2, (1, 2), shifted=True)
LINES = ["the dog sees the house", "", "the dog", "the houses"]
EVERYTHING = "alignments=pharaoh,token_scores=True,alternatives=3,beam_size=2,extra_length=4"


@pytest.fixture(scope="module")
def model(vocabulary) -> Transformer:
    keras.utils.set_random_seed(2)
    model = Transformer(TINY, vocabulary.size)
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 3)
    return model


def translator_of(model, vocabulary, options=EVERYTHING, **how) -> Translator:
    heads = HEADS if "alignments" in options else None
    return Translator(model, vocabulary, DecodeHParams.parse(options), alignment_heads=heads, **how)


@pytest.fixture(scope="module")
def translator(model, vocabulary) -> Translator:
    return translator_of(model, vocabulary)


def test_tokens_have_the_models_log_probabilities(translator, model, vocabulary):
    found = translator.nbest(LINES, n=2)
    plain = translator_of(model, vocabulary, "beam_size=2,extra_length=4,alpha=0.0").nbest(LINES, n=2)
    assert found[1] == [Translation("", 0.0)]
    checked = 0
    for line, outputs, others in zip(LINES, found, plain, strict=True):
        for output in outputs if line else ():
            details = output.details
            ids = [
                EOS if token.piece == "<EOS>" else vocabulary.pieces.index(token.piece)
                for token in details.tokens
            ]
            log_probs = log_softmax(logits_of(model, [[*vocabulary.encode(line), EOS]], [ids])[0])
            own = log_probs[np.arange(len(ids)), ids]
            np.testing.assert_allclose(
                [token.log_prob for token in details.tokens], own, rtol=1e-4, atol=1e-5
            )
            for place, token in enumerate(details.tokens):
                order = np.argsort(-log_probs[place])[:3]
                assert [other.piece for other in token.alternatives] == [
                    "<EOS>" if number == EOS else vocabulary.pieces[number] for number in order
                ]
                np.testing.assert_allclose(
                    [other.log_prob for other in token.alternatives],
                    log_probs[place, order],
                    rtol=1e-4,
                    atol=1e-5,
                )
            checked += 1
            if output.text == others[0].text:  # without a length penalty, the score is the sum
                assert others[0].score == pytest.approx(own.sum(), rel=1e-4)
    assert checked >= 4


def test_given_pairs(translator, model, vocabulary):
    pairs = [(LINES[0], "the house"), ("", "x"), ("x", ""), ("the dog", "the dog")]
    found = list(translator.align(pairs))
    assert found[1] == found[2] == []
    assert [target for _, target in found[0]] == [0, 1]
    assert found == list(translator_of(model, vocabulary, config=EngineConfig(parallel=2)).align(pairs))
    long = " ".join(["dog"] * 400)
    (links,) = translator.align([(long, "the dog")], lambda cut: None)
    assert max(source for source, _ in links) < len(translator.vocabulary.encode(long))
    with pytest.raises(LineError, match="line 2: not valid Unicode"):
        translator.align([("a", "b"), ("\ud800", "b")])


def test_the_heads_that_align_best_are_chosen(translator):
    pairs = [(LINES[0], "the house sees"), ("the dog", "dog the dog")] * 3
    wanted = AlignmentHeads(1, (2,), shifted=True)
    gold = []
    for one in encode_pairs(translator.preprocessor(), pairs):
        inputs = {"inputs": np.array([one.source_ids]), "targets": np.array([one.ids])}
        weights = np.asarray(translator.model.attention_weights(inputs).encoder_decoder)[0, 0, 1]
        words = one.words_of_input(translator.vocabulary), one.words(translator.vocabulary)
        gold.append(frozenset(wanted.rule.align(weights[1:], *words)[1]))
    alignments = [Alignment(links, links) for links in gold]
    chosen, figures = choose_heads(translator, pairs, alignments)
    assert figures == {"error_rate": 0, "pairs": 6}
    assert (chosen.layer, chosen.heads, chosen.shifted) == (1, (2,), True)
    by_recall = choose_heads(translator, pairs, alignments, all_sure=False)
    assert by_recall == (wanted, {"lexical_links_found": 1, "pairs": 6})
    with pytest.raises(T2TError, match="no links to choose heads by"):
        choose_heads(translator, pairs, [Alignment(frozenset(), frozenset())] * 6)


def test_pieces_that_are_each_others_best_translation(translator, vocabulary):
    from scipy.sparse import csr_array

    texts = "the dog", "dog the"
    source, target = (vocabulary.encode(text) for text in texts)
    table = np.zeros((vocabulary.size, vocabulary.size), np.float32)
    of_source, of_target = (
        words_of_text(token_spans(vocabulary, vocabulary.encode(text)), text).of_tokens for text in texts
    )
    for piece, word in zip(source, of_source, strict=True):
        for other, its_word in zip(target, of_target, strict=True):
            table[piece, other] = 1.0 if word != its_word else 0.1
    (found,) = lexical_alignments(translator, [texts], csr_array(table))
    assert found.sure == {(0, 1), (1, 0)}

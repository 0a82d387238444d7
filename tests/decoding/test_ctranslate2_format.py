"""Models in the format of CTranslate2; test_scoring.py compares their probabilities."""

import errno

import keras
import numpy as np
import pytest

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.addons.ctranslate2.format import (
    FOLDER,
    format_vocabulary_map,
    open_converted,
    write_ctranslate2,
)
from t2t_revival.addons.shortlist import Translations
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.alignment_heads import AlignmentHeads

ctranslate2 = pytest.importorskip("ctranslate2")

VOCAB = 310
SIZES = {"num_hidden_layers": 2, "hidden_size": 16, "filter_size": 24, "num_heads": 2, "max_length": 12}
SOURCE, TARGET = [280, 290, 300, 5, 17], [301, 9, 270, 288]
PRE_NORM = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}


def translator(vocabulary, **changes):
    keras.utils.set_random_seed(4)
    model = Transformer(HParams(**SIZES, **changes), VOCAB)
    for weight in model.weights:  # norms and biases that could not be told from those of no training
        if len(weight.shape) == 1:
            weight.assign(weight + np.random.default_rng(1).normal(0, 0.3, weight.shape))
    return Translator(model, vocabulary)


def write(ours, folder, quantize="none", heads=None, mapped=""):
    positions = ours.max_length + ours.options.extra_length
    write_ctranslate2(ours.model, ours.vocabularies, positions, folder, quantize, mapped, heads)


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "heads"), [(1, (2,)), (2, (2, 1)), (2, (1,))])
def test_the_attention_is_that_of_the_alignment_heads(vocabulary, tmp_path, layer, heads):
    ours = translator(vocabulary, projection_bias=True)
    write(ours, tmp_path / "model", heads=AlignmentHeads(layer, heads, shifted=False))
    theirs = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    pieces = vocabulary.pieces
    (found,) = theirs.translate_batch([[pieces[i] for i in SOURCE]], beam_size=1, return_attention=True)
    ids = [pieces.index(piece) for piece in found.hypotheses[0]]
    inputs = {"inputs": np.array([[*SOURCE, EOS]]), "targets": np.array([[*ids, EOS]])}
    weights = np.asarray(ours.model.attention_weights(inputs).encoder_decoder)[0, layer - 1]
    expected = weights[[head - 1 for head in heads]].mean(0)[: len(ids)]
    np.testing.assert_allclose(
        np.array(found.attention[0]), expected[:, : len(found.attention[0][0])], atol=2e-4
    )


@pytest.mark.parametrize(("quantize", "most"), [("bfloat16", 0.7), ("int8", 0.75)])  # positions stay
def test_fewer_bytes(vocabulary, tmp_path, quantize, most):
    if quantize == "bfloat16":
        pytest.importorskip("torch", reason="CTranslate2 converts to bfloat16 by PyTorch")
    ours = translator(vocabulary)
    sizes = {}
    for scheme in ("none", quantize):
        write(ours, tmp_path / scheme, scheme)
        sizes[scheme] = (tmp_path / scheme / "model.bin").stat().st_size
    assert sizes[quantize] < sizes["none"] * most


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention_key_channels": 8}, "equal sizes of keys and values; this model has 8 and 16"),
        ({"deterministic_attention": True}, "CTranslate2 does not support deterministic_attention=True"),
        ({"attention_window": 8}, "does not support attention_window=8"),
        ({"decoder_self_attention": "ssru"}, "does not support decoder_self_attention=ssru"),
    ],
)
def test_models_that_ctranslate2_does_not_support(vocabulary, tmp_path, changes, message):
    with pytest.raises(T2TError, match=message):
        write(translator(vocabulary, **changes), tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_bfloat16_without_pytorch(vocabulary, tmp_path, monkeypatch):
    monkeypatch.setattr("ctranslate2.specs.model_spec.torch_is_available", False)
    with pytest.raises(T2TError, match=r"--quantize=bfloat16: .* requires torch"):
        write(translator(vocabulary), tmp_path / "model", "bfloat16")
    assert not (tmp_path / "model").exists()


@pytest.mark.slow
def test_a_shortlist_becomes_the_vocabulary_map(vocabulary, tmp_path):
    """Probability is divided among the tokens of the map; the model's best output has EOS alone."""
    ours = translator(vocabulary, **PRE_NORM)
    model = ours.model
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 3)
    best = np.random.default_rng(0).integers(3, VOCAB, (VOCAB, 3)).astype(np.int32)
    translations = Translations(best, np.array([5, 288], np.int32), vocabulary.fingerprint)
    source = 299
    write(ours, tmp_path / "model", mapped=format_vocabulary_map(translations, ours.vocabularies))
    theirs = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")
    pieces, allowed = vocabulary.pieces, sorted({EOS, vocabulary.unknown, 5, 288, source, *best[source]})
    how = {"beam_size": 4, "length_penalty": 0, "min_decoding_length": 0, "return_scores": True}
    with_map, without = (
        theirs.translate_batch([[pieces[source]]], use_vmap=use_vmap, **how)[0] for use_vmap in (True, False)
    )
    logits = np.asarray(model({"inputs": np.array([[source, EOS]]), "targets": np.array([[EOS]])}))[0, 0]
    assert with_map.hypotheses == [[]]
    expected = logits[EOS] - np.log(np.exp(logits[allowed]).sum())
    assert with_map.scores[0] == pytest.approx(expected, abs=1e-3)
    assert not {*without.hypotheses[0]} <= {pieces[token] for token in allowed}


def test_a_vocabulary_map_cannot_have_spaces(subwords_file):
    vocabulary = SubwordVocabulary(subwords_file)
    translations = Translations(np.zeros((vocabulary.size, 1), np.int32), np.array([2]), "")
    with pytest.raises(T2TError, match="cannot have a shortlist of pieces with spaces"):
        format_vocabulary_map(translations, Vocabularies(vocabulary, vocabulary))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), r"^cannot write a temporary folder: "),
        (T2TError("no"), "^no$"),
    ],
)
def test_a_conversion_that_fails_is_named_and_leaves_nothing(error, message, tmp_path):
    def convert(folder):
        folder.mkdir()
        raise error

    with pytest.raises(T2TError, match=message):
        open_converted(
            tmp_path / "model.ckpt-7.npz", {"weights": "1a2b3c4d"}, convert, str, lambda note: None
        )
    assert not list((tmp_path / FOLDER).iterdir())

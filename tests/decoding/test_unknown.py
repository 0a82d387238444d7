"""UNK, which a vocabulary without bytes has in its data, is no token of any output, whatever the engine."""

import io

import keras
import numpy as np
import pytest
import sentencepiece

from t2t_revival import DecodeHParams, HParams, LineConstraints, T2TError, Transformer, Translator
from t2t_revival.addons.litert import MODEL, write_litert
from t2t_revival.addons.shortlist import Translations
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.vocabulary import Vocabularies, Vocabulary
from t2t_revival.model_folder import ModelFolder, Run
from tests.conftest import TEXT
from tests.support.search_engines import engines
from tests.support.searches import padded, search, trimmed
from tests.support.tiny_models import scores_of

LINES = ["the dog sees 3 houses .", "cat"]
SMALL = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=30)
UNKNOWN_TEXT = "\u2047"  # as SentencePiece decodes UNK
EXTRA = 4


def spm(path, unk_id, byte_fallback=False, vocab_size=60):
    """Writes a SentencePiece model whose UNK has the given id."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        model_type="bpe",
        vocab_size=vocab_size,
        pad_id=0,
        eos_id=1,
        unk_id=unk_id,
        bos_id=5 - unk_id,
        byte_fallback=byte_fallback,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())
    return Vocabulary(path)


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.nightly)])
def vocabulary(request, tmp_path_factory):
    return spm(tmp_path_factory.mktemp("unknown") / "vocab.spm", request.param)


@pytest.fixture(scope="module")
def model(vocabulary):
    """A model with random weights that finds UNK the most probable token at each place.

    What is normalised has a mean of 0, so that the sum of an output is that of `beta`.
    """
    keras.utils.set_random_seed(1)
    model = Transformer(SMALL, vocabulary.size)
    norm = model.decoder.layers[-1].feed_forward_residual.norm
    norm.beta.assign(np.ones(8, np.float32))
    table = np.asarray(model.target_embedding.embeddings) * 3
    table[vocabulary.unknown] = 1.5  # the logit is 12
    model.target_embedding.embeddings.assign(table)
    return model


def sources(vocabulary):
    return [[*vocabulary.encode(line), 1] for line in LINES]


def test_which_vocabularies_ban_it(tmp_path):
    assert [spm(tmp_path / "a.spm", place).banned for place in (2, 3)] == [2, 3]
    with_bytes = spm(tmp_path / "b.spm", 2, byte_fallback=True, vocab_size=310)
    assert (with_bytes.unknown, with_bytes.banned) == (2, 0), "its data has no UNK"


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
@pytest.mark.parametrize("engine", engines("banned"))
def test_searches_have_the_outputs_that_are_next_best(vocabulary, model, engine, beams):
    rows, how = sources(vocabulary), {"beams": beams, "extra": EXTRA, "n": beams}
    free = search(model, rows, **how)
    assert any(vocabulary.unknown in one.ids for outputs in free for one in outputs), "the model wants it"
    found = search(model, rows, engine=engine, banned=vocabulary.banned, **how)
    for source, outputs in zip(rows, found, strict=True):
        assert not any(vocabulary.unknown in one.ids for one in outputs)
        expected = scores_of(model, source, padded([one.ids for one in outputs]), 0.6)
        scores = [one.score for one in outputs]
        np.testing.assert_allclose(scores, expected, atol=1e-4, err_msg="among all tokens")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 2, "return_beams": True},
        {"beam_size": 2, "return_beams": True, "no_repeat_ngram_size": 2},
        {"beam_size": 2, "return_beams": True, "sampling_method": "random"},
        {"beam_size": 2, "mbr": "chrf", "candidates": 4},
    ],
    ids=str,
)
def test_translators(vocabulary, model, options):
    translator = Translator(model, vocabulary, DecodeHParams(extra_length=EXTRA, **options))
    for outputs in translator.nbest(LINES):
        for one in outputs:
            assert UNKNOWN_TEXT not in one.text
    assert any(one.text for outputs in translator.nbest(LINES) for one in outputs)


@pytest.mark.slow
def test_a_beginning_keeps_its_own(vocabulary, model):
    translator = Translator(model, vocabulary, DecodeHParams(beam_size=2, extra_length=EXTRA))
    (output,) = translator.nbest(LINES[:1], prefixes=["the \u4e2d"])[0]
    assert output.text.count(UNKNOWN_TEXT) == 1
    assert len(output.text) > len("the ?") + 3
    constraints = [LineConstraints(("dog",))]
    (found,) = translator.nbest(LINES[:1], constraints=constraints)[0]
    assert "dog" in found.text
    assert UNKNOWN_TEXT not in found.text
    with pytest.raises(T2TError, match="line 1: the vocabulary cannot spell '\u4e2d'"):
        translator.nbest(LINES[:1], constraints=[LineConstraints(("\u4e2d",))])


@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
def test_litert(vocabulary, model, tmp_path, beams):
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    options = DecodeHParams(beam_size=beams, extra_length=EXTRA)
    write_litert(Translator(model, vocabulary, options), tmp_path / "model")
    run = litert.Interpreter(str(tmp_path / "model" / MODEL)).get_signature_runner()
    found = run(inputs=padded(sources(vocabulary)))["outputs"][:, 0]
    expected = search(model, sources(vocabulary), beams=beams, extra=EXTRA, banned=vocabulary.banned)
    assert [trimmed(ids) for ids in found] == [best.ids for (best,) in expected]


@pytest.mark.slow
@pytest.mark.parametrize("options", ["beam_size=1", "beam_size=3", "shortlist=on,beam_size=3"])
def test_ctranslate2(vocabulary, model, tmp_path, options):
    pytest.importorskip("ctranslate2")
    out, name = tmp_path / "out", vocabulary.path.name
    settings = {"beam_size": 2, "extra_length": EXTRA}
    run = Run("translate_ende", "tiny", "", name, vocabulary.fingerprint, settings)
    ModelFolder(out).save(run, SMALL, vocabulary.path)
    checkpoints.save(out / "model.ckpt-1.npz", checkpoints.model_arrays(model), {"step": 1})
    best = np.full((vocabulary.size, 2), vocabulary.unknown, np.int32)
    frequent = np.arange(2, vocabulary.size, dtype=np.int32)
    Translations(best, frequent, Vocabularies(vocabulary, vocabulary).fingerprint).save(out)
    outputs = Translator.load(out, decode_hparams=options, engine="ctranslate2").translate(LINES)
    expected = Translator.load(out, decode_hparams=options.removeprefix("shortlist=on,"))
    assert outputs == expected.translate(LINES), "the shortlist has all that may come"
    assert all(output and UNKNOWN_TEXT not in output for output in outputs)

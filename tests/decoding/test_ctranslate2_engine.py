"""The engine CTranslate2 finds what TensorFlow finds, with the same options, bounds and scores."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest

from t2t_revival import HParams, T2TError, Transformer, Translation, Translator
from t2t_revival.addons.ctranslate2.format import FOLDER, MODEL, ORIGIN, UNFINISHED
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.files import resumable
from t2t_revival.model_folder import ModelFolder, Run

ctranslate2 = pytest.importorskip("ctranslate2")

HPARAMS = HParams(num_hidden_layers=1, hidden_size=16, filter_size=16, num_heads=2, max_length=30)
LINES = ["the dog sees 3 houses .", "", "cat", "der cat sees the dog sees 7 houses .", "ß 👩‍👧", "dog dog"]


def write_checkpoint(folder, step):
    keras.utils.set_random_seed(step)
    model = Transformer(HPARAMS, 310)
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * 3)
    checkpoints.save(folder / f"model.ckpt-{step}.npz", checkpoints.model_arrays(model), {"step": step})


def write_run(folder, vocabulary, hparams=HPARAMS):
    path, options = vocabulary.path, {"beam_size": 3, "extra_length": 4}
    run = Run("translate_ende", "tiny", "", path.name, vocabulary.fingerprint, options)
    ModelFolder(folder).save(run, hparams, path)


@pytest.fixture(scope="module")
def out(tmp_path_factory, vocabulary):
    """An output_dir of a model with random weights."""
    folder = tmp_path_factory.mktemp("run") / "out"
    write_run(folder, vocabulary)
    write_checkpoint(folder, 7)
    return folder


def load(out, options="", **settings):
    return Translator.load(out, decode_hparams=options, engine="ctranslate2", **settings)


@pytest.fixture(scope="module")
def engines(out):
    """A translator on CTranslate2, and one on TensorFlow."""
    return load(out), Translator.load(out)


@pytest.mark.slow
def test_guards_are_those_of_tensorflow(out):
    asked = "beam_size=1,no_repeat_ngram_size=2,repetition_penalty=1.3,max_length_ratio=1.5"
    found, expected = load(out, asked), Translator.load(out, decode_hparams=asked)
    outputs = found.nbest(LINES)
    assert [row[0].text for row in outputs] == [row[0].text for row in expected.nbest(LINES)]
    assert [row[0].text for row in outputs] != [row[0].text for row in load(out, "beam_size=1").nbest(LINES)]


@pytest.mark.slow
@pytest.mark.parametrize(("heads", "shifted"), [((2,), True), ((1, 2), False)])
def test_words_are_aligned_as_by_tensorflow(out, tmp_path, heads, shifted):
    folder = shutil.copytree(out, tmp_path / "out", ignore=shutil.ignore_patterns(FOLDER))
    AlignmentHeads(1, heads, shifted, share=0.5).save(folder)
    pairs = [(line, line[::-1]) for line in LINES if line]
    asked = "alignments=pharaoh,token_scores=true"
    ours, theirs = Translator.load(folder, decode_hparams=asked), load(folder, asked)
    for own, other in zip(theirs.score(pairs), ours.score(pairs), strict=True):
        assert own.details.links == other.details.links != ()
        tokens, expected = own.details.tokens, other.details.tokens
        assert [token.piece for token in tokens] == [token.piece for token in expected]
        assert [token.log_prob for token in tokens] == pytest.approx(
            [token.log_prob for token in expected], rel=0.02
        )
    assert load(folder, "markup=html").translate("the <b>dog</b> sees").count("<b>") == 1
    load(folder, on_note=pytest.fail)  # a conversion with heads serves calls without, and is not made again


@pytest.mark.slow
def test_the_coverage_penalty_is_that_of_tensorflow(out):
    asked = "coverage_penalty=0.4"
    rows = (one.nbest(LINES, 3) for one in (Translator.load(out, decode_hparams=asked), load(out, asked)))
    for ours, theirs in zip(*rows, strict=True):
        scores, found = ({output.text: output.score for output in row[::-1]} for row in (ours, theirs))
        common = scores.keys() & found.keys()
        assert [found[text] for text in common] == pytest.approx([scores[text] for text in common], rel=0.02)
        assert common


def test_unfinished_outputs_are_resumed_by_the_same_engine_and_precision(out, engines):
    translators = [*engines, load(out, precision="int8"), Translator.load(out, precision="bfloat16")]
    origins = [resumable.origin_of(translator, "translations", LINES) for translator in translators]
    assert [origin.values["engine"] for origin in origins] == [
        "ctranslate2, float32",
        "tensorflow, float32",
        "ctranslate2, int8",
        "tensorflow, bfloat16",
    ]


@pytest.mark.slow
def test_it_is_converted_again_for_other_weights(out, vocabulary, tmp_path):
    folder, notes = tmp_path / "out", []
    write_run(folder, vocabulary)
    for step in (7, 8):
        write_checkpoint(folder, step)
        translator = load(folder, on_note=notes.append)
    assert load(folder, on_note=notes.append).translate(LINES) == translator.translate(LINES)
    assert [note.split()[1] for note in notes] == ["model.ckpt-7.npz", "model.ckpt-8.npz"]
    translator.load_checkpoint(checkpoints.list_checkpoints(folder)[0])
    assert translator.translate(LINES) == load(out).translate(LINES)


@pytest.mark.slow
def test_one_conversion_serves_all_until_it_is_damaged(out, tmp_path):
    folder, notes = shutil.copytree(out, tmp_path / "out", ignore=shutil.ignore_patterns(FOLDER)), []
    with ThreadPoolExecutor(4) as pool:
        outputs = [*pool.map(lambda _: load(folder, on_note=notes.append).translate("cat"), range(4))]
    assert len(notes) == 1
    converted = folder / FOLDER / MODEL
    for damage in (
        lambda: (converted / "model.bin").write_bytes(b"damaged"),
        lambda: (converted / "config.json").unlink(),
        lambda: (converted / "more").touch(),
        lambda: (converted / ORIGIN).write_text("{"),
    ):
        damage()
        (folder / FOLDER / f"{UNFINISHED}x").mkdir()
        outputs += [load(folder, on_note=notes.append).translate("cat") for _ in range(2)]
    assert len(notes) == 5
    assert len({*outputs}) == 1
    assert [path.name for path in (folder / FOLDER).iterdir()] == [MODEL], (
        "what a killed process left is gone"
    )
    shutil.rmtree(folder / FOLDER)
    (folder / FOLDER).touch()
    assert load(folder, on_note=notes.append).translate("cat") == outputs[0]
    assert "is converted for this run only" in notes[-1]


def test_an_engine_that_does_not_exist(out):
    with pytest.raises(T2TError, match="engine=tf must be tensorflow or ctranslate2"):
        Translator.load(out, engine="tf")


def test_a_precision_that_the_device_does_not_have(out, monkeypatch):
    monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda device: {"float32", "int8"})
    with pytest.raises(T2TError, match="does not compute in bfloat16 on this cpu: use float32 or int8"):
        load(out, precision="bfloat16")


def test_without_the_package(out, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(T2TError, match=r"engine=ctranslate2 needs ctranslate2 .*: pip install"):
        load(out)


def test_weights_that_are_not_numbers_have_no_output(tmp_path, vocabulary):
    write_run(tmp_path, vocabulary)
    model = Transformer(HPARAMS, 310)
    model.set_weights([np.full_like(weight, np.nan) for weight in model.get_weights()])
    checkpoints.save(tmp_path / "model.ckpt-7.npz", checkpoints.model_arrays(model), {"step": 7})
    assert load(tmp_path).nbest(["cat"])[0] == [Translation("", -np.inf)]

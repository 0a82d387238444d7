"""Translators that are pickled and copied, and that are called where TensorFlow does not execute eagerly."""

import copy
import multiprocessing
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor

import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams, RunConfig, T2TError, Translator
from t2t_revival.decoding.trained_models import load_translator, open_models
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedTranslator
from t2t_revival.training.engines import make_engine
from tests.contract.decoding import PIECES, folder_of
from tests.support.exported import make_translator

LINES = ["the dog sees 3 houses .", "", "a cat"]
FOLDER = folder_of(PIECES)
NOT_EAGER = "TensorFlow does not execute eagerly here, as in a tf.Graph or a tf.function"


@pytest.fixture(scope="module")
def translator():
    return Translator.load(FOLDER, decode_hparams="beam_size=2,extra_length=3")


def pickled(translator):
    return pickle.loads(pickle.dumps(translator))


@pytest.mark.slow
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_copies_before_and_after_a_translation(duplicate):
    own = Translator.load(FOLDER, decode_hparams="beam_size=2,extra_length=3")
    before = duplicate(own)
    expected = own.nbest(LINES)
    for one in (before, duplicate(own)):
        assert one.nbest(LINES) == expected
        assert one.origin() == own.origin()


@pytest.mark.slow
def test_a_copy_has_other_options_and_the_same_model(translator):
    other = copy.copy(translator)
    other.options = DecodeHParams(beam_size=1)
    assert other.model is translator.model
    assert translator.options.beam_size == 2


@pytest.mark.slow
def test_a_spawned_process_loads_its_own(translator):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(translator.translate, LINES).result() == translator.translate(LINES)


@pytest.mark.slow
def test_the_checkpoint_the_engine_and_the_heads_stay(tmp_path, monkeypatch):
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    settings = {"precision": "bfloat16", "num_parallel_batches": 2, "constant_weights": False}
    own = Translator.load("model", decode_hparams="alignments=pharaoh,extra_length=3", **settings)
    data = pickle.dumps(own)
    (folder / "alignment.json").unlink()
    shutil.copy(own.checkpoint.path, folder / f"model.ckpt-{own.checkpoint.step + 1}.npz")
    monkeypatch.chdir("/")
    other = pickle.loads(data)
    assert other.origin() == own.origin()
    assert other.checkpoint.path == folder / own.checkpoint.path.name
    assert other.nbest(LINES) == own.nbest(LINES)


@pytest.mark.slow
def test_an_ensemble():
    models = open_models([FOLDER, FOLDER], "ensemble")
    own = load_translator(models, "extra_length=3", mean="logarithms")
    assert pickled(own).origin() == own.origin()
    assert pickled(own).nbest(LINES) == own.nbest(LINES)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_translator_that_was_not_loaded(vocabulary, duplicate):
    with pytest.raises(T2TError, match="not loaded from a folder cannot be pickled"):
        duplicate(make_translator(vocabulary))


@pytest.mark.slow
def test_an_export_in_this_process(exported_version):
    own = ServedTranslator(FolderModel(exported_version))
    expected = own.nbest(LINES)
    assert own.description
    assert pickled(own).nbest(LINES) == copy.deepcopy(own).nbest(LINES) == expected
    with tf.Graph().as_default():  # it has a graph of its own
        assert pickled(own).nbest(LINES) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "call",
    [
        lambda translator: Translator.load(FOLDER),
        lambda translator: translator.translate(LINES),
        lambda translator: translator.score([("dog", "Hund")]),
        lambda translator: translator.best_ids([5, 1]),
        lambda translator: Translator(translator.model, translator.vocabulary).translate(LINES),
    ],
)
def test_without_eager_execution(translator, call):
    expected = translator.translate(LINES)
    with tf.Graph().as_default(), pytest.raises(T2TError, match=NOT_EAGER):
        call(translator)
    with pytest.raises(T2TError, match=NOT_EAGER):
        tf.function(lambda: tf.constant(call(translator)), autograph=False)()
    with pytest.raises(T2TError, match=NOT_EAGER):
        tf.data.Dataset.range(1).map(lambda _: call(translator))
    assert translator.translate(LINES) == expected


@pytest.mark.slow
def test_tf_data_calls_a_translator_by_py_function(translator):
    texts = tf.data.Dataset.from_tensors(LINES[0]).map(
        lambda line: tf.py_function(lambda one: translator.translate(one.numpy().decode()), [line], tf.string)
    )
    assert [text.numpy().decode() for text in texts] == [translator.translate(LINES[0])]


def test_a_training_without_eager_execution(tmp_path):
    with tf.Graph().as_default(), pytest.raises(T2TError, match=NOT_EAGER):
        make_engine(RunConfig(tmp_path))

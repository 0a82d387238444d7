"""TensorFlow's start and its threads: how many batches are computed side by side."""

import gc
import sys

import pytest

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.utils import keras_config


@pytest.mark.parametrize(
    ("cores", "most", "number", "threads"),
    [(2, None, 2, 1), (2, 1, 1, 2), (8, 3, 2, 4), (8, None, 8, 1), (1, 4, 1, 1)],
)
def test_parallel_batches_share_the_cores(monkeypatch, cores, most, number, threads):
    import tensorflow as tf

    given = []
    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", given.append)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    monkeypatch.setattr(tensorflow_setup, "cores", lambda: cores)
    assert tensorflow_setup.num_parallel_batches(most) == number
    assert given == [threads]


def test_one_batch_at_a_time_on_a_gpu_or_where_tensorflow_has_its_threads(monkeypatch):
    import tensorflow as tf

    def refuse(threads):
        raise RuntimeError("in use")

    monkeypatch.setattr(tf.config.threading, "set_intra_op_parallelism_threads", refuse)
    monkeypatch.setattr(tensorflow_setup, "cores", lambda: 8)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU"])
    assert tensorflow_setup.num_parallel_batches() == 1
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [])
    assert tensorflow_setup.num_parallel_batches() == 1


@pytest.mark.parametrize(("tokens", "most"), [(100, 1), (2048, 2), (4096, 4), (25_000, 8)])
def test_parts_of_a_training_batch_are_worth_their_graph(monkeypatch, tokens, most):
    monkeypatch.setattr(tensorflow_setup, "num_parallel_batches", lambda given: given)
    assert tensorflow_setup.num_training_parts(tokens) == most


def test_what_is_imported_is_out_of_the_search_for_garbage(monkeypatch):
    collects = []
    monkeypatch.delitem(sys.modules, "keras")
    monkeypatch.setattr(keras_config, "import_keras", lambda: collects.append(gc.isenabled()))
    monkeypatch.setattr(gc, "freeze", lambda: collects.append("frozen"))
    tensorflow_setup.load_tensorflow()
    assert gc.isenabled()
    monkeypatch.setitem(sys.modules, "keras", object())
    tensorflow_setup.load_tensorflow()
    assert collects == [False, "frozen", True]

"""Each private hook of Keras does what the package relies on; to be run before a new Keras is allowed."""

import re
from pathlib import Path

import keras
import keras_nlp
import numpy as np
import pytest
import tensorflow as tf

import t2t_revival
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.utils import keras_hooks

PRIVATE = re.compile(
    r"(\.|def )_(flatten_layers|autocast|compile_metrics|get_variable_index|maybe_symbolic_build|"
    r"sentence_piece)\b"
)


class Parent(keras.layers.Layer):
    def __init__(self):
        super().__init__(name="parent")
        self.child = Child(name="child")
        self.built_child = Child(name="built")
        self.built_child.build()

    def build(self, input_shape=None):
        keras_hooks.build_sublayers(self)


class Child(keras.layers.Layer):
    builds = 0

    def build(self, input_shape=None):
        self.builds += 1
        self.weight = self.add_weight(name="weight", shape=(2,))


def test_sublayers_are_built_once_and_named_after_their_layer():
    parent = Parent()
    parent.build()
    assert parent.child.weight.path == "parent/child/weight"
    assert (parent.child.builds, parent.built_child.builds) == (1, 1)


def test_is_autocast():
    layer = keras.layers.Layer()
    assert keras_hooks.is_autocast(layer.add_weight(shape=(1,)))
    assert not keras_hooks.is_autocast(layer.add_weight(shape=(1,), autocast=False))


@pytest.mark.parametrize("metrics", [None, ["mse"]])
def test_has_metrics(metrics):
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(loss="mse", metrics=metrics)
    assert keras_hooks.has_metrics(model) is bool(metrics)


def test_variable_index_is_the_place_of_a_moment():
    optimizer = keras.optimizers.Adam()
    variables = [keras.Variable(np.zeros(size)) for size in (1, 2, 3)]
    optimizer.build(variables)
    for place, variable in enumerate(variables):
        assert keras_hooks.variable_index(optimizer, variable) == place
        assert optimizer._momentums[place].shape == variable.shape


def test_keras_asks_the_hook_and_builds_nothing_itself():
    asked = []

    class Model(keras_hooks.WithoutSymbolicBuild, keras.Model):
        def call(self, x):
            return x

        def _maybe_symbolic_build(self, iterator=None, data_batch=None):
            asked.append(self.built)
            super()._maybe_symbolic_build(iterator, data_batch)
            asked.append(self.built)

    model = Model()
    model.compile(loss="mse")
    model.evaluate(np.zeros((2, 3)), np.zeros((2, 3)), verbose=0)
    assert asked == [False, False]
    assert callable(keras.Model._maybe_symbolic_build)


def test_tokenisers_with_names_of_their_own_stay_two(tmp_path):
    """Loads a SavedModel of two tokenisers, of which TensorFlow would else create one only."""
    module = tf.Module()
    lines = {"en": ["the dog sees the cat"] * 9, "zh": ["老狗看见一只小猫"] * 9}
    paths = [Vocabulary.train(text, tmp_path / name, 270).path for name, text in lines.items()]
    module.tokenizers = [
        keras_nlp.tokenizers.SentencePieceTokenizer(proto=path.read_bytes(), dtype="int32") for path in paths
    ]
    for number, tokenizer in enumerate(module.tokenizers):
        keras_hooks.name_vocabulary(tokenizer, f"vocabulary_{number}")
    text = tf.TensorSpec([None], tf.string)
    module.encode = tf.function(
        lambda texts: [tokenizer.tokenize(texts).flat_values for tokenizer in module.tokenizers],
        input_signature=[text],
        autograph=False,
    )
    tf.saved_model.save(module, str(tmp_path / "model"))
    found = tf.saved_model.load(str(tmp_path / "model")).encode(tf.constant(["the dog 小猫"]))
    assert [ids.numpy().tolist() for ids in found] == [
        Vocabulary(path).encode("the dog 小猫") for path in paths
    ]


def test_no_other_file_uses_them():
    package = Path(t2t_revival.__file__).parent
    users = {path.name for path in package.rglob("*.py") if PRIVATE.search(path.read_text(encoding="utf-8"))}
    assert users <= {"keras_hooks.py", "beam_search.py", "tf_workarounds.py"}


def test_the_seed_of_keras_is_set() -> None:
    keras_hooks.set_random_seed(7)
    first = keras.random.SeedGenerator().state.numpy()
    keras_hooks.set_random_seed(7)
    np.testing.assert_array_equal(keras.random.SeedGenerator().state.numpy(), first)

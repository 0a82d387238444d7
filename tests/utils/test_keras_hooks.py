"""Each private hook of Keras does what the package relies on; to be run before a new Keras is allowed."""

import re

import keras
import numpy as np

from t2t_revival.utils import keras_hooks
from tests.support.source_tree import MODULES

PRIVATE = re.compile(
    r"(\.|def )_(flatten_layers|autocast|get_variable_index|backend_(apply_gradients|update_step))\b"
    r"|\boptimizer\._"
)


def test_is_autocast():
    layer = keras.layers.Layer()
    assert keras_hooks.is_autocast(layer.add_weight(shape=(1,)))
    assert not keras_hooks.is_autocast(layer.add_weight(shape=(1,), autocast=False))


def test_optimizers_whose_update_is_more_than_that_of_weights() -> None:
    assert keras_hooks.updates_weights_alone(keras.optimizers.Muon())
    assert not keras_hooks.updates_weights_alone(keras.optimizers.Nadam())


def test_variable_index_is_the_place_of_a_moment():
    optimizer = keras.optimizers.Adam()
    variables = [keras.Variable(np.zeros(size)) for size in (1, 2, 3)]
    optimizer.build(variables)
    for place, variable in enumerate(variables):
        assert keras_hooks.variable_index(optimizer, variable) == place
        assert optimizer._momentums[place].shape == variable.shape


def test_no_other_file_uses_them():
    users = {path.name for path in MODULES.values() if PRIVATE.search(path.read_text(encoding="utf-8"))}
    assert users <= {"keras_hooks.py", "beam_search.py", "tf_workarounds.py"}


def test_the_seed_of_keras_is_set() -> None:
    keras_hooks.set_random_seed(7)
    first = keras.random.SeedGenerator().state.numpy()
    keras_hooks.set_random_seed(7)
    np.testing.assert_array_equal(keras.random.SeedGenerator().state.numpy(), first)

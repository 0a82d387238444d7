"""Run by test_backends.py in a process of its own: checks every layer, loads, steps and trains models."""

import gc
import sys
import tempfile
from pathlib import Path
from typing import Any

import keras
import numpy as np

from t2t_revival import HParams, TokenCrossEntropy, Transformer, make_optimizer, registry
from tests.support.layer_checks import CASES, check_layer


@registry.register_schedule_factor
def half(step: Any, hparams: HParams) -> Any:
    """0.5, by an operation in the graph."""
    return keras.ops.where(step < 1, 1.0, 0.5)


def step_by_step(model: Transformer, ids: dict[str, Any]) -> Any:
    """Logits [batch, target, vocab] by `decode_step`, one beam."""
    state, steps, last = model.start_decoding(ids["inputs"]), [], np.zeros((2, 1), "int32")
    for position in range(ids["targets"].shape[1]):
        scores, state = model.decode_step(last, position, state)
        steps.append(scores)
        last = ids["targets"][:, position : position + 1]
    return keras.ops.concatenate(steps, axis=1)


def compiled(function: Any) -> Any:
    """The result of a function, which JAX compiles."""
    if keras.backend.backend() != "jax":
        return function()
    import jax

    return jax.jit(function)()


def trained_losses(hparams: HParams, ids: dict[str, Any]) -> dict[str, np.ndarray]:
    # The decays have hardly begun, and the constant makes up for the half: the rate is nearly the paper's.
    own = "*half*single_cycle_cos_decay*cosdecay*exp_decay*linear_decay"
    h = hparams.replace(num_hidden_layers=1, layer_prepostprocess_dropout=0.1, attention_dropout=0.1)
    h = h.replace(learning_rate_schedule=h.learning_rate_schedule + own, learning_rate_constant=2.0)
    keras.utils.set_random_seed(1)
    model = Transformer(h, 11)
    model.compile(
        optimizer=make_optimizer(h),
        loss=TokenCrossEntropy(label_smoothing=0.1),
        weighted_metrics=[keras.metrics.SparseCategoricalCrossentropy("of_logits", from_logits=True)],
    )
    mask = (ids["targets"] != 0).astype("float32")
    history = model.fit(ids, ids["targets"], sample_weight=mask / mask.sum(), epochs=30, verbose=0)
    return {name: np.array(values) for name, values in history.history.items()}


def main(folder: Path, backend: str) -> None:
    gc.freeze()  # what has been imported, through which each collection would go
    assert keras.backend.backend() == backend
    with tempfile.TemporaryDirectory() as scratch:
        for name, case in CASES.items():
            print(name, flush=True)
            check_layer(case, Path(scratch))
    ids = dict(np.load(folder / "ids.npz"))
    found = {}
    for path in sorted(folder.glob("*.keras")):
        print(path.stem, flush=True)
        model = keras.saving.load_model(path)
        logits, steps = compiled(lambda model=model: (model(ids), step_by_step(model, ids)))
        found[f"{path.stem}/logits"], found[f"{path.stem}/steps"] = (
            keras.ops.convert_to_numpy(keras.ops.cast(scores, "float32")) for scores in (logits, steps)
        )
        symbols = {name: keras.Input((None,), dtype="int32") for name in ids}
        assert tuple(model(symbols).shape)[2:] == (model.vocab_size,)
    losses = trained_losses(HParams.load(folder), ids)
    np.savez(folder / f"{backend}.npz", **found, **losses)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

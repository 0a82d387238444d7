"""Run by test_backends.py under KERAS_BACKEND=jax: logits of given weights, then a short training."""

import sys
from pathlib import Path
from typing import Any

import jax
import keras
import numpy as np

from t2t_revival import registry
from t2t_revival.hparams import HParams
from t2t_revival.model import Transformer
from t2t_revival.training.loss import TokenCrossEntropy
from t2t_revival.training.model import TrainingTransformer
from t2t_revival.training.optimizer import make_optimizer


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


def main(folder: Path) -> None:
    assert keras.backend.backend() == "jax"
    h = HParams.from_json((folder / "hparams.json").read_text())
    model = Transformer(h, 11)
    weights = np.load(folder / "weights.npz")
    for weight in model.weights:
        weight.assign(weights[weight.path])
    ids = dict(np.load(folder / "ids.npz"))
    logits, steps = (np.array(found) for found in jax.jit(lambda: (model(ids), step_by_step(model, ids)))())

    # The decays have hardly begun, and the constant makes up for the half: the rate is nearly the paper's.
    own = "*half*single_cycle_cos_decay*cosdecay*exp_decay*linear_decay"
    h = h.replace(layer_prepostprocess_dropout=0.1, attention_dropout=0.1)
    h = h.replace(learning_rate_schedule=h.learning_rate_schedule + own, learning_rate_constant=2.0)
    keras.utils.set_random_seed(1)
    model = TrainingTransformer(h, 11)
    model.compile(optimizer=make_optimizer(h), loss=TokenCrossEntropy(label_smoothing=0.1))
    mask = (ids["targets"] != 0).astype("float32")
    history = model.fit(ids, ids["targets"], sample_weight=mask / mask.sum(), epochs=30, verbose=0)
    losses = {name: np.array(history.history[name]) for name in ("loss", "cross_entropy")}
    np.savez(folder / "found.npz", logits=logits, steps=steps, **losses)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Folders of checkpoints: listing, loading into a model, averaging and removing them.

Names are `model.ckpt-STEP.npz` in output_dir, and in its folders `averaged` and `best`; `checkpoints.file`
describes their content. A corrupt checkpoint is skipped, and the one before it used.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.checkpoints.file import (
    EMA,
    MODEL,
    OPTIMIZER,
    CheckpointNotFoundError,
    CorruptCheckpointError,
    StoredWeights,
    load,
    merge_adapters,
    save,
    verify,
    weights_of,
)
from t2t_revival.errors import T2TError
from t2t_revival.utils.aligned import hand_over
from t2t_revival.utils.files import temporary_name
from t2t_revival.utils.made_of import MadeOf

if TYPE_CHECKING:
    import numpy as np

AVERAGED, BEST = "averaged", "best"  # folders in output_dir
NAME = re.compile(r"model\.ckpt-(\d+)\.npz")
MIXED = "+"  # joins fingerprints where an average mixes checkpoints of different training data
ANOTHER = "give another --output_dir"  # the remedy where a folder is another run's
OF_ANOTHER, OWN = "checkpoint of another model, with", "give one of this model"
WITHOUT_MOMENTS = "without_moments"  # in the meta data of a model that was trained elsewhere: they are 0
QUARANTINED = ".damaged"  # suffix of a corrupt checkpoint that was renamed

Unusable = CorruptCheckpointError | CheckpointNotFoundError
OnDamaged = Callable[[Unusable], None]


@dataclass(frozen=True, order=True)
class Checkpoint:
    """A checkpoint's file.

    Attributes:
        step: number of updates of its training.
        averaged: whether it is an average of several.
        path: the file.
        weights: fingerprint of its weights when it was selected; "" before.
    """

    step: int
    averaged: bool
    path: Path
    weights: str = dataclasses.field(default="", compare=False)

    @property
    def name(self) -> str:
        """The file and the weights, for people and to compare; the file may be removed meanwhile."""
        return f"{self.path.name} with weights {self.weights or weights_of(self.path)}"


def file_name(step: int) -> str:
    """The file name of a checkpoint."""
    return f"model.ckpt-{step}.npz"


def list_checkpoints(output_dir: Path) -> list[Checkpoint]:
    """The checkpoints that a training saved, oldest first, without averages."""
    return in_folder(Path(output_dir), averaged=False)


def list_averaged(output_dir: Path) -> list[Checkpoint]:
    """The averages that t2t-avg-all saved, oldest first."""
    return in_folder(Path(output_dir) / AVERAGED, averaged=True)


def in_folder(folder: Path, averaged: bool) -> list[Checkpoint]:
    """The checkpoints in a folder, which are averages or not, oldest first."""
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(Checkpoint(int(match[1]), averaged, path) for match, path in names if match)


def first_valid(
    checkpoints: Iterable[Checkpoint], count: int, on_damaged: OnDamaged | None = None
) -> list[Checkpoint]:
    """The first `count` checkpoints that still exist and whose weights are valid.

    `on_damaged` is called with the error of each corrupt or removed checkpoint; `None` calls `warnings.warn`.
    """
    valid: list[Checkpoint] = []
    for checkpoint in checkpoints:
        try:
            verify(checkpoint.path, prefixes=(MODEL, EMA))
            valid.append(replace(checkpoint, weights=weights_of(checkpoint.path)))
        except (CorruptCheckpointError, CheckpointNotFoundError) as error:
            (on_damaged or warn)(error)
        if len(valid) == count:
            break
    return valid


def warn(error: Unusable) -> None:
    """Issues `ignored_checkpoint` as a Python warning."""
    warnings.warn(ignored_checkpoint(error), stacklevel=5)


def ignored_checkpoint(error: Unusable) -> str:
    """A warning that a checkpoint is not used, since it is corrupt or was removed after it was chosen."""
    if isinstance(error, CheckpointNotFoundError):
        return f"{error.path} was removed meanwhile: the next one is used"
    return f"{error.fault}, ignored: the one before it is used"


def quarantine(path: Path) -> Path:
    """Renames a corrupt checkpoint, so that it is not read again, and returns its new path."""
    paths = (path.with_name(f"{path.name}{QUARANTINED}{f'-{n}' if n else ''}") for n in itertools.count())
    return path.rename(next(unused for unused in paths if not unused.exists()))


def remove_unfinished(output_dir: Path) -> None:
    """Removes incomplete files of checkpoints that a killed training was writing."""
    pattern = temporary_name(Path("model.ckpt-*.npz")).name
    for folder in (Path(output_dir), Path(output_dir) / BEST):
        for path in folder.glob(pattern):
            path.unlink()


def model_arrays(model: Any) -> dict[str, np.ndarray]:
    """Weights and random states of a model, by their names in a checkpoint. Raises as `by_path`."""
    return {MODEL + path: _copy(variable) for path, variable in by_path(_own_variables(model)).items()}


def optimizer_arrays(optimizer: Any) -> dict[str, np.ndarray]:
    """Moments of an optimizer and averages of weights by their names in a checkpoint. Raises as `by_path`."""
    variables = {OPTIMIZER + path: moment for path, moment in _moments(optimizer).items()}
    variables |= {EMA + weight.path: average for weight, average in optimizer.moving_averages}
    return {name: _copy(variable) for name, variable in variables.items()}


def check_paths(model: Any) -> None:
    """Checks, before a model is trained, that checkpoints can hold its weights; raises as `by_path`."""
    by_path(_own_variables(model))


def _own_variables(model: Any) -> list[Any]:
    """Weights and random states: a compiled model's variables without those of metrics and the optimizer."""
    return [variable for variable in model.variables if variable.path.startswith("transformer/")]


def by_path(variables: Iterable[Any]) -> dict[str, Any]:
    """Returns variables by their paths, which name them in checkpoints.

    Raises:
        T2TError: two of them have the same path, so that one would overwrite the other.
    """
    named: dict[str, Any] = {}
    for variable in variables:
        if named.setdefault(variable.path, variable) is not variable:
            raise T2TError(
                f"two variables have the path {variable.path}, and checkpoints keep one of each path: give "
                "their layers or optimizers different names"
            )
    return named


def _moments(optimizer: Any) -> dict[str, Any]:
    """Returns moments by their names: their paths, numbered where an optimizer gives several the same."""
    named, numbers = {}, Counter[str]()
    for moment in optimizer.moments:
        number = numbers[moment.path]
        named[f"{moment.path}#{number}" if number else moment.path] = moment
        numbers[moment.path] += 1
    return named


def _copy(variable: Any) -> np.ndarray:
    """Copies a variable's values; JAX returns a view of memory that the next step writes to."""
    values = variable.numpy()
    return values if values.flags.writeable else values.copy()


def restore_weights(model: Any, path: Path) -> int:
    """Loads a checkpoint's weights into `model`, and returns its step.

    Raises:
        T2TError: the file is corrupt, or of another model; names the first difference.
    """
    stored, variables = StoredWeights(path), by_path(model.weights)
    check_architecture(model, stored.meta, path)
    _check_shapes(variables, stored.outlines(), MODEL, path)
    for name, variable in variables.items():
        variable.assign(hand_over(stored[MODEL + name], variable.dtype))
    return int(stored.meta["step"])


def restore(model: Any, path: Path) -> dict:
    """Loads weights, random states and optimizer state into a compiled `model`; returns the meta data.

    Raises:
        T2TError: the file is corrupt, an average, or of another model; names the first difference.
    """
    arrays, meta = load(path)
    if "averaged" in meta:
        raise T2TError(
            f"{path}: training cannot resume from an average; give the training's own --output_dir"
        )
    check_architecture(model, meta, path)
    assign(by_path(model.weights), arrays, MODEL, path)
    if not meta.get(WITHOUT_MOMENTS):
        assign(_moments(model.optimizer), arrays, OPTIMIZER, path)
    for weight, average in model.optimizer.moving_averages:
        # Of a training without averages, the weights themselves.
        average.assign(arrays.get(EMA + weight.path, arrays[MODEL + weight.path]))
    for variable in model.non_trainable_variables:  # random states, which come and go with dropout
        if MODEL + variable.path in arrays:
            variable.assign(arrays[MODEL + variable.path])
    model.optimizer.set_updates(meta["step"])
    if meta.get("loss_scale"):
        model.optimizer.set_loss_scale(*meta["loss_scale"])
    return meta


def check_architecture(model: Any, meta: dict, path: Path) -> None:
    """Rejects a checkpoint of another model whose weights have the same names and shapes, as with heads."""
    here = model.hparams.architecture()
    stored = MadeOf({**here, **meta.get("architecture", {})})
    stored.check(MadeOf(here), f"{path}: {OF_ANOTHER}", OWN)


def assign(named: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str, path: Path) -> None:
    """Assigns each variable the array of its name.

    Raises:
        T2TError: an array is missing, unknown or of another shape; nothing is assigned then.
    """
    _check_shapes(named, arrays, prefix, path)
    for name, variable in named.items():
        variable.assign(arrays[prefix + name])


def _check_shapes(
    named: Mapping[str, Any], arrays: Mapping[str, np.ndarray], prefix: str, path: Path
) -> None:
    shapes = {prefix + name: tuple(variable.shape) for name, variable in named.items()}
    own = ((name, array) for name, array in arrays.items() if name.startswith(prefix))
    there = {name: array.shape for name, array in own if name in shapes or _is_weight(array)}
    MadeOf(there).check(MadeOf(dict.fromkeys(there) | shapes), f"{path}: {OF_ANOTHER}", OWN)


def _is_weight(array: np.ndarray) -> bool:
    """Distinguishes weights and moments, which are real numbers, from random states, which are integers."""
    return array.dtype.kind == "f"


def prune(output_dir: Path, count: int) -> None:
    """Removes all but the newest `count` checkpoints, or none if `count` is 0."""
    for checkpoint in list_checkpoints(output_dir)[:-count] if count else []:
        checkpoint.path.unlink(missing_ok=True)  # another process may remove some too


def write_average(checkpoints: list[Checkpoint], folder: Path) -> Path:
    """Section 6.1: writes the mean of the weights of checkpoints, at least one, and returns its path.

    It has the name and the step of the newest.

    Raises:
        T2TError: a checkpoint is corrupt, or they are of different models.
    """
    total: dict[str, np.ndarray] = {}
    data: list[str] = []  # fingerprints of what they were trained on
    for checkpoint in checkpoints:
        arrays, meta = load(checkpoint.path, prefixes=(MODEL,))
        weights = {name: array for name, array in merge_adapters(arrays).items() if _is_weight(array)}
        if total and _shapes(weights) != _shapes(total):
            raise T2TError(f"{checkpoint.path} and {checkpoints[0].path} are of different models")
        data += {meta.get("data") or ""}.difference(data)
        total = {name: array.astype("float64") + total.get(name, 0) for name, array in weights.items()}
    newest = max(checkpoints)
    path = folder / newest.path.name
    mean = {name: (array / len(checkpoints)).astype("float32") for name, array in total.items()}
    names = [checkpoint.path.name for checkpoint in checkpoints]
    known = {"data": MIXED.join(data)} if any(data) else {}
    save(path, mean, {**meta, "step": newest.step, "averaged": names, **known})
    return path


def _shapes(arrays: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(array.shape) for name, array in arrays.items()}

"""Checkpoints of a training: which there are, which is used, and how a model gets what is in one.

Names: `model.ckpt-STEP.npz` in output_dir, `averaged/model.ckpt-STEP.npz` below it; what is in them says
`checkpoint_file`. One that is damaged is left out, and the one before it is used.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.errors import T2TError
from t2t_revival.files import temporary_name
from t2t_revival.training.checkpoint_file import (
    MODEL,
    OPTIMIZER,
    DamagedError,
    GoneError,
    load,
    save,
    trained_on,
    verify,
)

AVERAGED = "averaged"
NAME = re.compile(r"model\.ckpt-(\d+)\.npz")
TRAIN_OR_GIVE = "train with t2t-trainer, or give --checkpoint_path"
MIXED = "+"  # joins the fingerprints of an average of checkpoints of different training data
SET_ASIDE = ".damaged"  # after the name of a checkpoint that is not used any more

OnDamaged = Callable[[DamagedError], None]


@dataclass(frozen=True, order=True)
class Checkpoint:
    """A checkpoint's file.

    Attributes:
        step: updates it was trained for.
        averaged: whether it is the average of several.
        path: the file.
    """

    step: int
    averaged: bool
    path: Path


def file_name(step: int) -> str:
    """A checkpoint's file name."""
    return f"model.ckpt-{step}.npz"


def list_checkpoints(output_dir: Path) -> list[Checkpoint]:
    """The checkpoints that a training wrote, oldest first; averaged ones are not among them."""
    return _in_folder(Path(output_dir), averaged=False)


def list_averaged(output_dir: Path) -> list[Checkpoint]:
    """The averages that t2t-avg-all wrote, oldest first."""
    return _in_folder(Path(output_dir) / AVERAGED, averaged=True)


def _in_folder(folder: Path, averaged: bool) -> list[Checkpoint]:
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted(Checkpoint(int(match[1]), averaged, path) for match, path in names if match)


def to_decode(
    output_dir: Path, checkpoint_path: str | None = None, on_damaged: OnDamaged | None = None
) -> Checkpoint:
    """The checkpoint that is decoded: the given, or else the newest whole one; at the same step, the average.

    A training may go on, and write and remove checkpoints meanwhile.

    Args:
        output_dir: of the training.
        checkpoint_path: a checkpoint's file, with or without ".npz", or a folder of checkpoints.
        on_damaged: is told of each that is left out; None: `warnings.warn`.

    Raises:
        T2TError: there is none; the given file is damaged.
        GoneError: there is no such file.
    """
    if checkpoint_path:
        path = Path(checkpoint_path).expanduser()
        if path.is_dir():
            output_dir = path
        else:
            return _given(path)
    while True:
        found = list_checkpoints(output_dir) + list_averaged(output_dir)
        if whole := newest_whole(found, 1, on_damaged):
            return whole[0]
        if all(checkpoint.path.exists() for checkpoint in found):
            raise T2TError(f"no {'whole ' if found else ''}checkpoint in {output_dir}: {TRAIN_OR_GIVE}")


def newest_whole(
    checkpoints: Iterable[Checkpoint], most: int, on_damaged: OnDamaged | None = None
) -> list[Checkpoint]:
    """The newest `most` checkpoints that are still there and whose weights verify, oldest first.

    Args:
        checkpoints: in any order.
        most: at least 1.
        on_damaged: is told of each that is left out; None: `warnings.warn`.
    """
    whole: list[Checkpoint] = []
    for checkpoint in sorted(checkpoints, reverse=True):
        try:
            verify(checkpoint.path, prefixes=(MODEL,))
        except DamagedError as error:
            (on_damaged or _warn)(error)
            continue
        except GoneError:
            continue
        whole.append(checkpoint)
        if len(whole) == most:
            break
    return whole[::-1]


def split_by_data(found: list[Checkpoint]) -> list[list[Checkpoint]]:
    """Splits checkpoints, oldest first, wherever the training data changed.

    Checkpoints that do not say what they were trained on count as trained on the same data.

    Raises:
        T2TError: as `trained_on`.
    """
    return [list(group) for _, group in groupby(found, lambda checkpoint: trained_on(checkpoint.path))]


def _warn(error: DamagedError) -> None:
    warnings.warn(left_out(error), stacklevel=5)


def left_out(error: DamagedError) -> str:
    """One line that says which checkpoint is not used."""
    return f"{error.fault}, left out: the one before it is used"


def set_aside(path: Path) -> Path:
    """Renames a damaged checkpoint, so that it is not looked at again; nothing is lost.

    Returns:
        Its new path.
    """
    names = (path.with_name(f"{path.name}{SET_ASIDE}{f'-{n}' if n else ''}") for n in count())
    aside = next(name for name in names if not name.exists())
    return path.rename(aside)


def _given(path: Path) -> Checkpoint:
    for candidate in (path, path.with_name(path.name + ".npz")):
        if candidate.is_file():
            step = verify(candidate, prefixes=(MODEL,))["step"]
            return Checkpoint(step, candidate.parent.name == AVERAGED, candidate)
    raise GoneError(path)


def remove_unfinished(output_dir: Path) -> None:
    """Removes what a killed training left of checkpoints that it was writing."""
    for path in Path(output_dir).glob(temporary_name(Path("model.ckpt-*.npz")).name):
        path.unlink()


def model_arrays(model: Any) -> dict[str, np.ndarray]:
    """A model's weights and random states, by the names that they have in a checkpoint."""
    return {MODEL + v.path: np.asarray(v) for v in model.variables if not _is_transient(v)}


def optimizer_arrays(optimizer: Any) -> dict[str, np.ndarray]:
    """An optimizer's moments, by the names that they have in a checkpoint."""
    return {OPTIMIZER + v.path: np.asarray(v) for v in optimizer.moments}


def _is_transient(variable: Any) -> bool:
    """Metrics and the optimizer are among a compiled model's variables; they are not weights."""
    return not variable.path.startswith("transformer/")


def restore_weights(model: Any, path: Path) -> int:
    """Gives `model` a checkpoint's weights.

    Returns:
        The step of the checkpoint.

    Raises:
        T2TError: the file is damaged, or of another model; names the first difference.
    """
    arrays, meta = load(path, prefixes=(MODEL,))
    _check_architecture(model, meta, path)
    assign(model.weights, arrays, MODEL, path)
    return meta["step"]


def restore(model: Any, path: Path) -> dict:
    """Gives a compiled `model` a checkpoint's weights, random states and optimizer state.

    Returns:
        The checkpoint's meta data.

    Raises:
        T2TError: the file is damaged, an average, or of another model; names the first difference.
    """
    arrays, meta = load(path)
    if "averaged" in meta:
        raise T2TError(
            f"{path}: an average, from which no training goes on; give the training's --output_dir"
        )
    _check_architecture(model, meta, path)
    assign(model.weights, arrays, MODEL, path)
    assign(model.optimizer.moments, arrays, OPTIMIZER, path)
    for variable in model.non_trainable_variables:  # random states; a run may go on with other dropout
        if MODEL + variable.path in arrays:
            variable.assign(arrays[MODEL + variable.path])
    model.optimizer.continue_after(meta["step"])
    if meta.get("loss_scale"):
        model.optimizer.continue_with_scale(*meta["loss_scale"])
    return meta


def _check_architecture(model: Any, meta: dict, path: Path) -> None:
    """Refuses a checkpoint of another model where names and shapes of weights do not tell, as of heads."""
    for field, value in model.hparams.architecture().items():
        found = meta.get("architecture", {}).get(field, value)
        if found != value:
            raise T2TError(f"{path}: a checkpoint of another model: {field}={found} there, and {value} here")


def assign(variables: Iterable[Any], arrays: Mapping[str, np.ndarray], prefix: str, path: Path) -> None:
    """Gives each variable the array of its name.

    Raises:
        T2TError: an array is missing, left over or of another shape; nothing was changed then.
    """
    variables = list(variables)
    for variable in variables:
        array = arrays.get(prefix + variable.path)
        if array is None:
            raise T2TError(f"{path}: a checkpoint of another model: it has no {variable.path}")
        if tuple(array.shape) != tuple(variable.shape):
            raise T2TError(
                f"{path}: a checkpoint of another model: {variable.path} is {tuple(array.shape)} there, "
                f"and {tuple(variable.shape)} here"
            )
    known = {prefix + variable.path for variable in variables}
    for name, array in arrays.items():
        if name.startswith(prefix) and name not in known and _is_weight(array):
            raise T2TError(
                f"{path}: a checkpoint of another model: it has {name.removeprefix(prefix)}, unknown here"
            )
    for variable in variables:
        variable.assign(arrays[prefix + variable.path])


def _is_weight(array: np.ndarray) -> bool:
    """Weights and moments are real numbers, random states are integers."""
    return array.dtype.kind == "f"


def keep_newest(output_dir: Path, count: int) -> None:
    """Removes all but the newest `count` checkpoints; 0: keeps all."""
    for checkpoint in list_checkpoints(output_dir)[:-count] if count else []:
        checkpoint.path.unlink(missing_ok=True)  # somebody else may make room too


def average(checkpoints: list[Checkpoint], output_dir: Path) -> Checkpoint:
    """Section 6.1: the mean of the weights of several checkpoints, written beside them.

    Args:
        checkpoints: at least one.
        output_dir: of the training; the average goes to its folder `averaged`.

    Returns:
        The average, whose step is that of the newest.

    Raises:
        T2TError: a checkpoint is damaged, or they are of different models.
    """
    path = write_average(checkpoints, Path(output_dir) / AVERAGED)
    return Checkpoint(max(checkpoints).step, True, path)


def write_average(checkpoints: list[Checkpoint], folder: Path) -> Path:
    """As `average`, into any folder under the newest one's name; gives the file."""
    total: dict[str, np.ndarray] = {}
    data: list[str] = []  # fingerprints of what they were trained on
    for checkpoint in checkpoints:
        arrays, meta = load(checkpoint.path, prefixes=(MODEL,))
        weights = {name: array for name, array in arrays.items() if _is_weight(array)}
        if total and _shapes(weights) != _shapes(total):
            raise T2TError(f"{checkpoint.path} and {checkpoints[0].path} are of different models")
        data += {meta.get("data") or ""}.difference(data)
        total = {name: array.astype(np.float64) + total.get(name, 0) for name, array in weights.items()}
    newest = max(checkpoints)
    path = folder / newest.path.name
    mean = {name: (array / len(checkpoints)).astype(np.float32) for name, array in total.items()}
    names = [checkpoint.path.name for checkpoint in checkpoints]
    known = {"data": MIXED.join(data)} if any(data) else {}
    save(path, mean, {**meta, "step": newest.step, "averaged": names, **known})
    return path


def _shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in arrays.items()}

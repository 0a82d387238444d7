"""The kinds of models that were made elsewhere, told by the content of a file or folder."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from t2t_revival.addons.imports.t2t_folder import FILE_SUFFIX, STATE, index_file
from t2t_revival.errors import T2TError
from t2t_revival.model_folder import RUN_FILE

CONFIG = "config.json"  # of transformers
M2M100_TYPE = "m2m_100"  # model_type of M2M100 and NLLB
MARIAN_CONFIG = "special:model.yml"  # the array of Marian's settings
MARIAN_START = b"\1" + bytes(7)  # of its binary files: their version


class Kind(NamedTuple):
    """A kind of models.

    Attributes:
        name: for messages.
        content: what it is recognised by.
        files: returns what is recognised, in a folder or as the file itself.
    """

    name: str
    content: str
    files: Callable[[Path], list[Path]]


def _of_t2t(path: Path) -> list[Path]:
    if not path.is_dir():
        index = index_file(path.with_name(FILE_SUFFIX.sub("", path.name)))
        return [index] if index.is_file() else []
    state = path / STATE
    return sorted(path.glob("model.ckpt-*.index")) or ([state] if state.is_file() else [])


def _of_transformers(path: Path) -> list[Path]:
    file, model_type = _config(path)
    return [file] if model_type not in (None, M2M100_TYPE) else []


def _of_m2m100(path: Path) -> list[Path]:
    file, model_type = _config(path)
    return [file] if model_type == M2M100_TYPE else []


def _config(path: Path) -> tuple[Path, str | None]:
    """Returns the file of transformers' settings and its model_type; `None` if it is not of transformers."""
    file = path / CONFIG if path.is_dir() else path
    if file.name != CONFIG or not file.is_file():
        return file, None
    try:
        values = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return file, ""  # whose reader says that it is corrupt
    if not isinstance(values, dict):
        return file, ""
    return file, str(values["model_type"]) if "model_type" in values else None


def marian_files(path: Path) -> list[Path]:
    """Returns the models of Marian in a folder, or the file if it is one."""
    files = [*sorted(path.glob("*.npz")), *sorted(path.glob("*.bin"))] if path.is_dir() else [path]
    return [file for file in files if _is_marian(file)]


def _is_marian(path: Path) -> bool:
    try:
        if path.suffix == ".bin":
            with path.open("rb") as file:
                return file.read(len(MARIAN_START)) == MARIAN_START
        with zipfile.ZipFile(path) as archive:
            return f"{MARIAN_CONFIG}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


T2T, TRANSFORMERS, M2M100, MARIAN = KINDS = (
    Kind("tensor2tensor", f"model.ckpt-*.index with {STATE}", _of_t2t),
    Kind("transformers", f"{CONFIG} with a model_type", _of_transformers),
    Kind("M2M100 or NLLB", f"{CONFIG} with model_type={M2M100_TYPE}", _of_m2m100),
    Kind("Marian", f".npz or .bin with {MARIAN_CONFIG}", marian_files),
)


def kind_of(path: Path) -> Kind | None:
    """Returns the kind of the model in a folder, or of a file; `None` if there is none.

    An output_dir of this project has none, nor has a file or folder that does not exist.

    Raises:
        T2TError: a folder has models of two kinds.
    """
    if (path / RUN_FILE).exists():
        return None
    found = {kind: files for kind in KINDS if (files := kind.files(path))}
    if len(found) > 1:
        models = [f"{files[-1].name} is of {kind.name}" for kind, files in found.items()]
        example = next(iter(found.values()))[-1]
        raise T2TError(
            f"{path}: more than one model: {', '.join(models)}: give one of these files, as in "
            f"--checkpoint={shlex.quote(str(example))}"
        )
    return next(iter(found), None)


def kind_to_import(path: Path) -> Kind:
    """Returns the kind of the model in a folder, or of a file.

    Raises:
        T2TError: as `kind_of`; or there is no model that can be imported.
    """
    if kind := kind_of(path):
        return kind
    if path.suffix == ".npz" and path.is_file():
        return MARIAN  # whose reader names the fault
    fault = f"no model: it lacks {', '.join(kind.content for kind in KINDS)}"
    if not path.exists():
        fault = f"no such file or folder, nor is there {index_file(path).name}"
    elif (path / RUN_FILE).exists():
        fault = "an output_dir already: give it to the other commands as it is"
    raise T2TError(f"{path}: {fault}")

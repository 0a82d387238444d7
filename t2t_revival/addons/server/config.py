"""The models that a server has: of its flags, or of a YAML file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from t2t_revival.decoding.options import CTRANSLATE2, ENGINES, FLOAT32, PRECISIONS, TENSORFLOW
from t2t_revival.errors import T2TError, at
from t2t_revival.utils import checked_yaml
from t2t_revival.utils.checked_yaml import check_keys

MODEL_NAME = re.compile(r"\w[\w.-]*")
NAME_IN_CONFIG = re.compile(r'^\s*name:\s*"([^"]+)"', re.MULTILINE)  # as t2t-exporter writes models.config


@dataclass(frozen=True)
class ModelConfig:
    """A model of a server.

    Attributes:
        name: in the paths of requests.
        saved_model: an export_dir, which is watched for new versions, or a version of one.
        output_dir: instead, a training's folder, from which one checkpoint is served.
        checkpoint: which; see `select_checkpoint`.
        keep: number of the newest versions that are served.
        labels: versions by label.
        problem: name of the problem of a saved_model, whose lines and outputs it converts.
        engine: translates for an output_dir; one of `ENGINES`.
        precision: in which CTranslate2 computes; one of `PRECISIONS`.

    Raises:
        T2TError: the engine, or the precision, is not one that the model can have.
    """

    name: str
    saved_model: Path | None = None
    output_dir: Path | None = None
    checkpoint: str | None = None
    keep: int = 1
    labels: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None
    engine: str = TENSORFLOW
    precision: str = FLOAT32

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise T2TError(fault)

    def _faults(self) -> Iterator[str]:
        if self.engine not in ENGINES:
            yield f"engine={self.engine} must be {' or '.join(ENGINES)}"
        if self.precision not in PRECISIONS:
            yield f"precision={self.precision} must be one of {', '.join(PRECISIONS)}"
        if self.engine == CTRANSLATE2 and not self.output_dir:
            yield "engine=ctranslate2 is for an output_dir: a saved_model has TensorFlow's operations"
        if self.precision != FLOAT32 and self.engine == TENSORFLOW:
            yield (
                f"precision={self.precision} is for engine=ctranslate2; for TensorFlow, "
                "t2t-exporter --quantize writes a saved_model in another precision"
            )


OTHER_KEYS = {"keep": int, "labels": dict}  # which are no texts
KEYS = {one.name: OTHER_KEYS.get(one.name, str) for one in fields(ModelConfig)}


def load_config(path: Path) -> list[ModelConfig]:
    """Reads a YAML file with a list of `models`; relative folders in it are relative to it.

    Raises:
        T2TError: it cannot be read or is not valid.
    """
    with at(f"--config={path}"):
        values = checked_yaml.load(path)
        check_keys("the file", values, {"models": list})
        models = []
        for number, entry in enumerate(values.get("models", ()), 1):
            check_keys(f"model {number}", entry, KEYS)
            with at(f"model {number}"):
                models.append(_model(entry, path.parent))
        names = [model.name for model in models]
        if not names:
            raise T2TError("models is missing or empty: list a name and a saved_model or output_dir of each")
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise T2TError(f"two models are called {twice}: give each a name of its own")
    return models


def exported_name(folder: Path) -> str:
    """Returns the name that t2t-exporter gave to a model; of other folders, the folder's own."""
    for place in (folder, folder.parent):
        try:
            found = NAME_IN_CONFIG.search((place / "models.config").read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if found:
            return found[1]
    return folder.resolve().name


def check_name(name: str) -> str:
    """Returns a model's name; raises T2TError if paths cannot have it."""
    if not MODEL_NAME.fullmatch(name):
        raise T2TError(f"{name!r} is not a valid name of a model: use only letters, digits, _, . and -")
    return name


def _model(entry: dict[str, Any], folder: Path) -> ModelConfig:
    paths = {
        key: folder / Path(entry[key]).expanduser() for key in ("saved_model", "output_dir") if entry.get(key)
    }
    for fault in _faults(entry, paths):
        raise T2TError(fault)
    check_name(entry["name"])
    return ModelConfig(**{**entry, **paths})


def _faults(entry: Mapping[str, Any], paths: Collection[str]) -> Iterator[str]:
    if len(paths) != 1:
        yield "give saved_model, an export_dir, or output_dir, a training's folder"
    if "checkpoint" in entry and "output_dir" not in paths:
        yield "checkpoint is for an output_dir"
    if "output_dir" in paths and ("keep" in entry or "labels" in entry):
        yield "keep and labels are for a saved_model: an output_dir has one version"
    if "problem" in entry and "saved_model" not in paths:
        yield "problem is for a saved_model: an output_dir names its own"
    if entry.get("keep", 1) < 1:
        yield f"keep={entry['keep']} must be at least 1"
    labels = entry.get("labels", {})
    if any(not isinstance(label, str) or not isinstance(number, int) for label, number in labels.items()):
        yield "labels must be texts with the number of a version, such as {stable: 1}"
    if not entry.get("name"):
        yield "name is missing"

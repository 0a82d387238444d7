"""Versions of a served model: found in its folder, loaded beside each other, exchanged without a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from t2t_revival.server.predict import RequestError
from t2t_revival.serving.client import Model
from t2t_revival.serving.export_origin import newer_note
from t2t_revival.serving.folder_model import SAVED_MODEL, FolderModel
from t2t_revival.serving.signatures import DEFAULT

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

    from t2t_revival.problems.text_problems import Text2TextProblem
    from t2t_revival.server.inspection import Inspector

LOOK_SECS = 1.0  # between two looks at a folder
LOADING, AVAILABLE, UNLOADING, END = "LOADING", "AVAILABLE", "UNLOADING", "END"  # TensorFlow Serving's states
WARMUP_LINES = ("", "a")


class LoadedModel(Model, Protocol):
    """A model in this process: of a SavedModel, or another one with its signatures."""

    @property
    def signature_defs(self) -> Mapping[str, SignatureDef]:
        """Inputs and outputs of the signatures, by name."""

    def close(self) -> None:
        """Frees the memory of the model."""


@dataclass
class Version:
    """A version of a model and its state.

    Attributes:
        number: the version.
        model: `None` before it is loaded and after it is unloaded.
        state: one of TensorFlow Serving's.
        fault: the reason for which it could not be loaded.
    """

    number: int
    model: LoadedModel | None = None
    state: str = LOADING
    fault: str = ""

    def status(self) -> dict[str, object]:
        """Returns what TensorFlow Serving's REST API says of a version."""
        code = "UNKNOWN" if self.fault else "OK"
        status = {"error_code": code, "error_message": self.fault}
        return {"version": str(self.number), "state": self.state, "status": status}


@dataclass(eq=False)
class ServedModel:
    """A model under a name: the newest of its versions, and others that have a label.

    Attributes:
        name: in the paths of requests.
        folder: an export_dir, with a folder for each version, or one version. `None` of a model that is no
            export, and has one version.
        labels: versions by label, such as "stable".
        keep: number of the newest versions that are served.
        say: called with a line for people when a version is loaded, refused or dropped.
        problem: converts lines to inputs and outputs to texts, of /translate. `None` leaves them as they are.
        inspector: explains outputs; `None` of a model whose training is not here.
        versions: all that were found, by number.
    """

    name: str
    folder: Path | None
    labels: Mapping[str, int] = field(default_factory=dict)
    keep: int = 1
    say: Callable[[str], None] = print
    problem: Text2TextProblem | None = None
    inspector: Inspector | None = None
    versions: dict[int, Version] = field(default_factory=dict)
    _refused: dict[int, float] = field(default_factory=dict)  # time of change of each that is damaged

    @property
    def is_ready(self) -> bool:
        """True if a version answers."""
        return any(version.state == AVAILABLE for version in self.versions.values())

    def find(self, number: int | None = None, label: str | None = None) -> tuple[int, LoadedModel]:
        """Returns the version with a number or a label, or the newest one, and its model.

        Raises:
            RequestError: it is not served.
        """
        if label is not None:
            if label not in self.labels:
                raise RequestError(f"Unrecognized servable version label: {label}")
            number = self.labels[label]
        served = {
            one.number: one.model for one in self.versions.values() if one.state == AVAILABLE and one.model
        }
        found = max(served, default=-1) if number is None else number
        model = served.get(found)
        if model is None:
            asked = "Latest" if number is None else f"Specific, {number}"
            raise RequestError(f"Servable not found for request: {asked}({self.name})", 404)
        return found, model

    def status(self, number: int | None = None, label: str | None = None) -> dict[str, object]:
        """Returns the status of a version or of all.

        Raises:
            RequestError: there is no such version.
        """
        if label is not None:
            number = self.find(label=label)[0]
        found = sorted(self.versions.values(), key=lambda version: -version.number)
        shown = [version for version in found if number in (None, version.number)]
        if not shown:
            wanted = f"version {number}" if number is not None else "any versions"
            raise RequestError(f"Could not find {wanted} of model {self.name}", 404)
        return {"model_version_status": [version.status() for version in shown]}

    async def watch(self, in_use: Callable[[LoadedModel], bool]) -> None:
        """Updates the versions again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECS)
            with suppress(OSError):  # such as of a network file system, which may come back
                await self.update(in_use)

    async def update(self, in_use: Callable[[LoadedModel], bool] = lambda model: False) -> None:
        """Loads new versions; drops others as soon as one of these answers and no request uses them."""
        found = _numbered_folders(self.folder) if self.folder else {}
        wanted = sorted(found)[-self.keep :] + [number for number in self.labels.values() if number in found]
        for number in wanted:
            if number not in self.versions or self._is_mended(number, found[number]):
                await self._load(number, found[number])
        available = [number for number in self.versions if self.versions[number].state == AVAILABLE]
        if any(number in wanted for number in available):
            for number in available:
                if number not in wanted:
                    self.versions[number].state = UNLOADING
        for version in self.versions.values():
            if version.state == UNLOADING and version.model and not in_use(version.model):
                version.model.close()
                version.model, version.state = None, END
                self.say(f"{self.name}: version {version.number} is no longer served")

    def _is_mended(self, number: int, folder: Path) -> bool:
        version = self.versions[number]
        return version.state == END and self._refused.get(number, 0) != _changed(folder)

    async def _load(self, number: int, folder: Path) -> None:
        version = self.versions[number] = Version(number)
        changed = _changed(folder)
        try:
            version.model = await asyncio.get_running_loop().run_in_executor(None, _open, folder)
        except Exception as error:  # whatever it is, the version before goes on
            version.state, version.fault = END, " ".join(str(error).split()) or type(error).__name__
            self._refused[number] = changed
            self.say(f"{self.name}: version {number} is refused: {version.fault}")
            return
        version.state = AVAILABLE
        self.say(f"{self.name}: version {number} is served")
        if note := newer_note(folder):
            self.say(note)


def _open(folder: Path) -> LoadedModel | None:
    """Loads a version and calls it once, so that the first request does not pay for what is done once."""
    model = FolderModel(folder)
    model.predict(DEFAULT, {"inputs": WARMUP_LINES})
    return model


def _changed(folder: Path) -> float:
    try:
        return max(file.stat().st_mtime for file in (folder, folder / SAVED_MODEL))
    except OSError:
        return 0


def _numbered_folders(folder: Path) -> dict[int, Path]:
    """Returns the versions in a folder by number; a folder that is a version itself has its own, or 1."""
    if (folder / SAVED_MODEL).exists():
        return {int(folder.name) if folder.name.isdecimal() else 1: folder}
    files = folder.glob(f"*/{SAVED_MODEL}")
    return {int(file.parent.name): file.parent for file in files if file.parent.name.isdecimal()}

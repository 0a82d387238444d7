"""Versions of a served model: found in its folder, loaded beside each other, exchanged without a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel

from t2t_revival.addons.lexical.tables import NO_PHRASES
from t2t_revival.addons.server.folder_state import FolderState, changed_since, state_of
from t2t_revival.addons.server.inspection import Inspector, Training
from t2t_revival.addons.server.predict import RequestError
from t2t_revival.addons.server.requests import Limits
from t2t_revival.addons.server.translate import Options
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.serving.export_origin import newer_note
from t2t_revival.serving.folder_model import SAVED_MODEL, FolderModel
from t2t_revival.serving.signatures import DEFAULT, INPUTS, WITH_OPTIONS, WITH_SAMPLING

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem
    from t2t_revival.serving.client import LoadedModel

LOOK_SECS = 1.0  # between two looks at a folder
WRITTEN_SECS = 10.0  # since the last change: a version that cannot be loaded then ends a server's start
LOADING, AVAILABLE, UNLOADING, END = "LOADING", "AVAILABLE", "UNLOADING", "END"  # TensorFlow Serving's states
FIRST_LINES = ("", "a")
WARMUP = {  # an input of each name without a default
    "inputs": "a",
    "targets": "a",
    "alternatives": 1,
    "n": 2,
    "tables": NO_PHRASES,
    "prefixes": "a",
    **{name: getattr(DecodeHParams, name) for name in INPUTS},
}


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


@dataclass
class Refusal:
    """A version that could not be loaded, which may be one that is being copied.

    Attributes:
        tried: the state of its folder when it was tried.
        seen: the state at the latest look.
        fault: the reason.
        said: lines for people so far.
    """

    tried: FolderState
    seen: FolderState
    fault: str
    said: set[str] = field(default_factory=set)


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
        prepare: makes the first version of a model that is no export, in a thread.
        problem: converts lines to inputs and outputs to texts, of /translate. `None` leaves them as they are.
        inspector: explains outputs; `None` of a model whose training is not here.
        versions: all that were found, by number.
        is_warm: whether all signatures of the first version were called.
    """

    name: str
    folder: Path | None
    labels: Mapping[str, int] = field(default_factory=dict)
    keep: int = 1
    say: Callable[[str], None] = print
    prepare: Callable[[ServedModel], None] | None = None
    problem: Problem | None = None
    inspector: Inspector | None = None
    versions: dict[int, Version] = field(default_factory=dict)
    is_warm: bool = True
    _refused: dict[int, Refusal] = field(default_factory=dict)

    @property
    def is_ready(self) -> bool:
        """True if a version answers."""
        return any(version.state == AVAILABLE for version in self.versions.values())

    async def start(self, threads: Executor) -> None:
        """Loads the first version, unless there is one.

        Raises:
            T2TError: there is none that can be served.
        """
        if self.is_ready:
            return
        self.is_warm = False
        if self.prepare:
            await asyncio.get_running_loop().run_in_executor(threads, self.prepare, self)
        await self.update(threads=threads)
        while not self.is_ready and any(
            changed_since(one.seen, WRITTEN_SECS) for one in self._refused.values()
        ):
            await asyncio.sleep(LOOK_SECS)
            await self.update(threads=threads)
        if not self.is_ready:
            faults = (version.fault for version in self.versions.values() if version.fault)
            raise T2TError(f"{self.name}: {next(faults, self.nothing_found)}")

    @property
    def nothing_found(self) -> str:
        """The fault where no version was found; empty where there are some."""
        if self.folder is None or _numbered_folders(self.folder):
            return ""
        return f"{self.folder}: no version of a model; t2t-exporter writes one"

    async def warm_up(self, threads: Executor) -> None:
        """Calls the signatures of the first version, so that no request pays for what is done once."""
        if not self.is_warm:
            await asyncio.get_running_loop().run_in_executor(threads, _warm_up, self.find()[1])
            self.is_warm = True

    def serve(self, number: int, model: LoadedModel, engine: str = "") -> None:
        """Serves a version from now on; its messages name the model, not where it lies."""
        model.where = self.name
        self.versions[number] = Version(number, model, AVAILABLE)
        self.say(f"{self.name}: version {number} is served{f' by {engine}' if engine else ''}")

    def _not_yet(self) -> RequestError:
        return RequestError(f"{self.name} is being loaded: try again soon", 503)

    def find(self, number: int | None = None, label: str | None = None) -> tuple[int, LoadedModel]:
        """Returns the version with a number or a label, or the newest one, and its model.

        Raises:
            RequestError: it is not served, or not yet.
        """
        if label is not None:
            if label not in self.labels:
                raise RequestError(f"Unrecognized servable version label: {label}")
            number = self.labels[label]
        if not self.is_ready:
            raise self._not_yet()
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
        if not shown and not self.is_ready:
            raise self._not_yet()
        if not shown:
            wanted = f"version {number}" if number is not None else "any versions"
            raise RequestError(f"Could not find {wanted} of model {self.name}", 404)
        return {"model_version_status": [version.status() for version in shown]}

    async def watch(self, in_use: Callable[[LoadedModel], bool], threads: Executor) -> None:
        """Updates the versions again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECS)
            with suppress(OSError):  # such as of a network file system, which may come back
                await self.update(in_use, threads)

    async def update(
        self, in_use: Callable[[LoadedModel], bool] = lambda model: False, threads: Executor | None = None
    ) -> None:
        """Loads new versions; drops others as soon as one of these answers and no request uses them."""
        found = _numbered_folders(self.folder) if self.folder else {}
        wanted = sorted(found)[-self.keep :] + [number for number in self.labels.values() if number in found]
        self._refused = {number: one for number, one in self._refused.items() if number in found}
        for number in wanted:
            if number not in self.versions or self.versions[number].state == END:
                await self._load_if_changed(number, found[number], threads)
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

    async def _load_if_changed(self, number: int, folder: Path, threads: Executor | None) -> None:
        """Loads a version, unless it was refused and is as it was then, or is being written."""
        state, refusal = state_of(folder), self._refused.get(number)
        if refusal is None:
            await self._load(number, folder, threads)
        elif state != refusal.seen:
            refusal.seen = state
            self._say_once(refusal, f"version {number} is being written: it is loaded when it is complete")
        elif state == refusal.tried:
            self._say_once(refusal, f"version {number} is refused: {refusal.fault}")
        else:
            await self._load(number, folder, threads)

    def _say_once(self, refusal: Refusal, line: str) -> None:
        if line not in refusal.said:
            refusal.said.add(line)
            self.say(f"{self.name}: {line}")

    async def _load(self, number: int, folder: Path, threads: Executor | None) -> None:
        version = self.versions[number] = Version(number)
        state, loop = state_of(folder), asyncio.get_running_loop()
        try:
            model = await loop.run_in_executor(threads, _open, folder)
            if state_of(folder) != state:
                model.close()
                raise T2TError("its files have changed meanwhile")
            if self.is_ready:  # no request waits for this one
                await loop.run_in_executor(threads, _warm_up, model)
        except Exception as error:  # whatever it is, the version before goes on
            fault = " ".join(str(error).split()) or type(error).__name__
            version.state, version.fault = END, fault.replace(str(folder), f"version {number}")
            refusal = self._refused.setdefault(number, Refusal(state, state, fault))
            refusal.tried, refusal.fault = state, fault
            return
        self._refused.pop(number, None)
        self.serve(number, model)
        if note := newer_note(folder):
            self.say(note)


class ModelInfo(BaseModel):
    """A model that answers.

    `samples` tells whether requests may ask for samples, `has_tags` whether texts may begin with a tag,
    `tags` which, where they are known; `trees` whether outputs are trees; `explains` whether /explain and
    /attention know the model, and `explains_unasked` whether they need not load it first. `options` are those
    of the export, where they are known.
    """

    name: str
    version: int
    samples: bool
    has_tags: bool
    tags: list[str]
    trees: bool
    explains: bool
    explains_unasked: bool
    options: Options
    max_beam_size: int
    max_characters: int
    training: Training | None

    @classmethod
    def of(cls, served: ServedModel, limits: Limits) -> ModelInfo:
        """Describes the newest version."""
        version, model = served.find()
        inspector = served.inspector
        options = inspector.options if inspector else Options()
        options.beam_size = min(options.beam_size, limits.max_beam_size)
        options.extra_length = min(options.extra_length, limits.max_extra_length)
        return cls(
            name=served.name,
            version=version,
            samples=WITH_SAMPLING in model.signature_defs,
            has_tags="tag" in model.signature_defs[WITH_OPTIONS].inputs,
            tags=inspector.tags if inspector else [],
            trees=served.problem is not None and not served.problem.targets_are_text,
            explains=inspector is not None and inspector.explains,
            explains_unasked=inspector is not None and inspector.explains_unasked,
            options=options,
            max_beam_size=limits.max_beam_size,
            max_characters=limits.max_characters,
            training=inspector.training if inspector else None,
        )


class ModelsAnswer(BaseModel):
    """The models that answer, and the names of those that are being loaded."""

    models: list[ModelInfo]
    loading: list[str]


def _open(folder: Path) -> LoadedModel:
    """Loads a version and calls it once."""
    model: LoadedModel = FolderModel(folder)
    model.predict(DEFAULT, {"inputs": FIRST_LINES})
    return model


def _warm_up(model: LoadedModel) -> None:
    """Calls each signature once: TensorFlow prepares its graph at the first call, which may take seconds."""
    for signature, definition in model.signature_defs.items():
        with suppress(T2TError):  # an error, too, leaves the graph ready
            required = [name for name in definition.inputs if name not in definition.defaults]
            model.predict(signature, {name: [WARMUP[name]] for name in required})


def _numbered_folders(folder: Path) -> dict[int, Path]:
    """Returns the versions in a folder by number; a folder that is a version itself has its own, or 1."""
    if (folder / SAVED_MODEL).exists():
        return {int(folder.name) if folder.name.isdecimal() else 1: folder}
    files = folder.glob(f"*/{SAVED_MODEL}")
    return {int(file.parent.name): file.parent for file in files if file.parent.name.isdecimal()}

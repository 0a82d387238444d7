"""What a training leaves in its output_dir besides checkpoints: all that is needed to use the model.

hparams.json     the resolved hyperparameters
run.json         problem, hparams set, vocabulary
vocab.*.spm      a copy of the vocabulary; vocab.*.subwords, where it is T2T's
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import checked_json
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary import fingerprint
from t2t_revival.errors import T2TError
from t2t_revival.files import is_file_name, writing
from t2t_revival.hparams import HParams
from t2t_revival.training.lock import check_free

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Text2TextProblem

FILE_NAME = "run.json"
FIELDS = {
    "problem": "str",
    "hparams_set": "str",
    "data_dir": "str",
    "vocabulary": "str",
    "fingerprint": "str",
    "decode_hparams": "dict",
}
WAY_OUT = "put a copy back, or remove it and start t2t-trainer again with the same flags, which writes it"


@dataclass(frozen=True)
class Run:
    """The file run.json.

    Attributes:
        problem: the problem's name.
        hparams_set: name of the hparams set that hparams.json started from.
        data_dir: where the training data was.
        vocabulary: file name of the vocabulary inside output_dir.
        fingerprint: sha256 of the vocabulary.
        decode_hparams: how the problem is decoded if nobody says otherwise.

    Raises:
        T2TError: a name is not one that stays inside a folder.
    """

    problem: str
    hparams_set: str
    data_dir: str
    vocabulary: str
    fingerprint: str
    decode_hparams: dict[str, Any]

    def __post_init__(self) -> None:
        for kind in ("problem", "hparams_set", "vocabulary"):
            if not is_file_name(getattr(self, kind)):
                raise T2TError(f"{kind}: {getattr(self, kind)!r} can be no part of a file's name")

    @classmethod
    def load(cls, output_dir: Path) -> Run:
        """Reads run.json.

        Raises:
            T2TError: there is none, or it is damaged.
        """
        path = Path(output_dir) / FILE_NAME
        if not path.exists():
            raise T2TError(
                f"no trained model in {output_dir}: train one with t2t-trainer, or give --output_dir"
            )
        values = checked_json.load(path, WAY_OUT)
        if {name: type(value).__name__ for name, value in values.items()} != FIELDS:
            raise T2TError(f"{path}: damaged, its fields are not {', '.join(FIELDS)}; {WAY_OUT}")
        try:
            return cls(**values)
        except T2TError as error:
            raise T2TError(f"{path}: damaged, {error}; {WAY_OUT}") from error

    def save(self, output_dir: Path) -> None:
        """Writes run.json, whole or not at all."""
        checked_json.save(output_dir / FILE_NAME, dataclasses.asdict(self))


def plan_run(problem: Text2TextProblem, hparams_set: str, data_dir: Path, output_dir: Path) -> Run:
    """The run.json of a training in `output_dir`; one that is resumed keeps its `decode_hparams`.

    Raises:
        T2TError: there is no data in `data_dir`, or its vocabulary or the run.json that is there is damaged.
    """
    vocabulary = problem.vocabulary(data_dir)
    stored = Run.load(output_dir) if (output_dir / FILE_NAME).exists() else None
    return Run(
        problem=problem.name,
        hparams_set=hparams_set,
        data_dir=str(data_dir.resolve()),
        vocabulary=vocabulary.path.name,
        fingerprint=vocabulary.fingerprint,
        decode_hparams=stored.decode_hparams if stored else problem.decode_hparams(),
    )


def load_hparams(output_dir: Path) -> HParams:
    """The hyperparameters that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or the file is damaged.
    """
    hparams = HParams.load(Path(output_dir))
    if hparams is None:
        raise T2TError(f"no trained model in {output_dir}: there is no hparams.json")
    return hparams


def load_vocabulary(output_dir: Path) -> TextEncoder:
    """The vocabulary that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or the vocabulary is missing, damaged or another one.
    """
    run = Run.load(output_dir)
    path = Path(output_dir) / run.vocabulary
    if fingerprint(path) != run.fingerprint:
        raise T2TError(f"{path}: not the vocabulary that this model was trained with; copy that one here")
    return open_vocabulary(path)


def check_place(output_dir: Path, problem: str, hparams_set: str) -> None:
    """Checks, before anything is done, that a run can go to `output_dir`.

    Raises:
        T2TError: it cannot be written, a trainer works there, or it holds a run of another problem or hparams
            set.
    """
    place = next(folder for folder in (output_dir, *output_dir.absolute().parents) if folder.exists())
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise T2TError(f"cannot write to output_dir {output_dir}: {place} is no folder that you may write to")
    check_free(output_dir)
    if not (output_dir / FILE_NAME).exists():
        return
    found = Run.load(output_dir)
    for what, old, new in (
        ("problem", found.problem, problem),
        ("hparams set", found.hparams_set, hparams_set),
    ):
        if old != new:
            raise T2TError(
                f"{output_dir} holds a run with {what} {old}, not {new}: give another --output_dir"
            )


def check_same(output_dir: Path, run: Run, hparams: HParams) -> None:
    """Checks that a run in `output_dir`, if there is one, is of this vocabulary and model.

    Args:
        output_dir: of the run.
        run: what is to be trained.
        hparams: a run that goes on may change how it trains, but not its model.

    Raises:
        T2TError: it is not.
    """
    if not (output_dir / FILE_NAME).exists():
        return
    if Run.load(output_dir).fingerprint != run.fingerprint:
        raise T2TError(f"{output_dir} holds a run with another vocabulary: give another --output_dir")
    stored, wanted = load_hparams(output_dir).architecture(), hparams.architecture()
    for field, new in wanted.items():
        old = stored.get(field, new)
        if old != new:
            raise T2TError(
                f"{output_dir} holds a model with {field}={old}, not {new}: give another --output_dir"
            )


def save_run(output_dir: Path, run: Run, hparams: HParams, vocabulary: Path) -> None:
    """Writes what `output_dir` has to hold besides checkpoints; each file whole or not at all.

    Args:
        output_dir: made if missing.
        run: goes to run.json.
        hparams: goes to hparams.json.
        vocabulary: file to copy.

    Raises:
        T2TError: it cannot be written.
    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        if not (output_dir / run.vocabulary).exists():
            with writing(output_dir / run.vocabulary) as file:
                file.write(vocabulary.read_bytes())
        hparams.save(output_dir)
        run.save(output_dir)
    except OSError as error:
        raise T2TError(f"cannot write to output_dir {output_dir}: {error.strerror or error}") from error

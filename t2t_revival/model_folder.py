"""`ModelFolder`: the output_dir of a training, with all that is needed to use the model.

run.json             problem, hparams set, vocabulary
hparams.json         the resolved hyperparameters
vocab.*.spm          a copy of the vocabulary, or of both; vocab.*.subwords if it is T2T's
model.ckpt-*.npz     see `checkpoints`
train.csv, dev.csv   see `curve_files`
.training.lock       held by the trainer that works there
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.checkpoints.directory import ANOTHER, list_checkpoints
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, verify
from t2t_revival.curve_files import DEV, has_point
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.auto import AUTO
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import is_file_name, lock, make_folder, write_whole, writing
from t2t_revival.utils.made_of import MadeOf
from t2t_revival.utils.unicode_forms import NFC

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Data

LATER = frozenset({"unicode_form", "format_version"})  # fields of run.json that a file may lack
RUN_FILE, LOCK_FILE = "run.json", ".training.lock"
IMPORTED_DATA = "data"  # folder of data in the output_dir of an imported model
TRAIN_OR_GIVE = "train one with t2t-trainer, or give --output_dir"
OF_MOMENTS = ("freeze", "lora_rank", "optimizer")  # determine what an optimizer has moments of
HINT = "restore a copy, or remove it and start t2t-trainer again with the same flags, which writes it"


@dataclass(frozen=True)
class Run:
    """The file run.json.

    Attributes:
        problem: the problem's name.
        hparams_set: name of the hparams set that hparams.json started from.
        data_dir: where the training data was.
        vocabulary: file name of the vocabulary inside output_dir; of the inputs' where there are two.
        fingerprint: sha256 of the vocabulary.
        decode_hparams: the problem's defaults for decoding.
        target_vocabulary: file name of the targets' vocabulary; empty where there is one for both.
        target_fingerprint: sha256 of the targets' vocabulary.
        unicode_form: Unicode's form of the inputs, "nfc" or "nfd"; empty where they have several.
        format_version: of this file.

    Raises:
        T2TError: a name is not a plain file name.
    """

    problem: str
    hparams_set: str
    data_dir: str
    vocabulary: str
    fingerprint: str
    decode_hparams: dict[str, Any]
    target_vocabulary: str = ""
    target_fingerprint: str = ""
    unicode_form: str = NFC
    format_version: int = checked_json.NEWEST

    def __post_init__(self) -> None:
        target = ["target_vocabulary"] if self.target_vocabulary else []
        for kind in ("problem", "hparams_set", "vocabulary", *target):
            if not is_file_name(name := str(getattr(self, kind))):
                raise T2TError(f"{kind}: {name!r} is not valid: it becomes part of a file name")

    @property
    def names(self) -> list[str]:
        """The file name of the vocabulary, or those of the inputs' and of the targets'."""
        return [self.vocabulary, *([self.target_vocabulary] if self.target_vocabulary else [])]

    @property
    def fingerprints(self) -> list[str]:
        """The sha256 of the vocabulary, or those of the inputs' and of the targets'."""
        return [self.fingerprint, self.target_fingerprint][: len(self.names)]

    @property
    def vocabularies(self) -> dict[str, str]:
        """The sha256 of each vocabulary by file name, in the order of the data: PROBLEM's for PROBLEM_rev."""
        named = list(zip(self.names, self.fingerprints, strict=True))
        return dict(named[::-1] if self.problem.endswith(registry.REVERSED) else named)

    @classmethod
    def load(cls, output_dir: Path) -> Run:
        """Reads run.json; raises T2TError if there is none, or it is corrupt."""
        path = Path(output_dir) / RUN_FILE
        if not path.exists():
            raise T2TError(f"no trained model in {output_dir}: {TRAIN_OR_GIVE}")
        values = checked_json.load(path, HINT)
        checked_json.check_fields(path, values, cls, LATER, HINT)
        try:
            return cls(**values)
        except T2TError as error:
            raise T2TError(f"{path}: corrupt, {error}; {HINT}") from error

    def save(self, output_dir: Path) -> None:
        """Writes run.json atomically."""
        checked_json.save(output_dir / RUN_FILE, dataclasses.asdict(self))


@dataclass(frozen=True)
class ModelFolder:
    """The output_dir of a training; its files are read when they are needed, and only once.

    Attributes:
        path: the folder, which need not exist before `save` or `lock`.
    """

    path: Path

    def prepare(self, problem: str, hparams_set: str, hparams: HParams) -> None:
        """Checks that a training may begin here, or resume; nothing is written.

        A training that is resumed may have other hparams, but those of its model and of its weights.

        Raises:
            T2TError: the folder cannot be written, a trainer works there, or it holds a run of another
                problem, hparams set or model.
        """
        existing = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
        if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
            raise T2TError(
                f"cannot write to output_dir {self.path}: {existing} is not a folder that you may write to"
            )
        self.check_free()
        if not self.has_run:
            return
        run, old = self.run, self.hparams
        made = {"problem": run.problem, "hparams_set": run.hparams_set, **old.architecture()}
        now = {"problem": problem, "hparams_set": hparams_set, **hparams.architecture()}
        for name in OF_MOMENTS:
            made[name], now[name] = getattr(old, name), getattr(hparams, name)
        remedy = f"{ANOTHER}, and --warm_start_from={self.path} to start with its weights"
        MadeOf(made).check(MadeOf(now), f"{self.path} holds a run with", remedy)

    @property
    def has_run(self) -> bool:
        """True once a training has begun."""
        return (self.path / RUN_FILE).exists()

    @cached_property
    def run(self) -> Run:
        """The file run.json; raises as `Run.load`."""
        return Run.load(self.path)

    @cached_property
    def hparams(self) -> HParams:
        """The hyperparameters that the model was trained with.

        Raises:
            T2TError: there is no trained model, or the file is corrupt.
        """
        hparams = HParams.load(self.path)
        if hparams is None:
            raise T2TError(f"no trained model in {self.path}, since it has no hparams.json: {TRAIN_OR_GIVE}")
        return hparams

    @cached_property
    def vocabularies(self) -> Vocabularies:
        """The vocabularies that the model was trained with.

        Raises:
            T2TError: there is no trained model, or a vocabulary is missing, corrupt or not the model's own.
        """
        known = zip((self.path / name for name in self.run.names), self.run.fingerprints, strict=True)
        return Vocabularies.open_known(dict(known), "this model was trained")

    @property
    def vocabulary_files(self) -> list[Path]:
        """The vocabulary, or both, in the order of the data."""
        return [self.path / name for name in self.run.vocabularies]

    def find_data(self, data_dir: str | Path | None = None) -> Data:
        """Opens the given folder of data, or the one that the model was trained from.

        The data of an imported model is in output_dir/data.

        Raises:
            T2TError: there is no data, with the command that makes it for the model's vocabulary; or as
                `Problem.open`.
        """
        problem = registry.problem(self.run.problem)
        folder = Path(data_dir or self.run.data_dir or self.path / IMPORTED_DATA).expanduser()
        if problem.has_data(folder):
            return problem.open(folder)
        source = "FOLDER" if self.run.data_dir else None  # an imported model's is tensor2tensor's own
        made = problem.datagen_command(folder, self.vocabulary_files, source)
        raise T2TError(f"no data for {self.run.problem} in {folder}: give --data_dir, or run ", made)

    def own_data(self, data_dir: str | Path | None = None) -> Data:
        """Opens the data of `find_data`, which has the model's vocabulary.

        Raises:
            T2TError: there is no data, or it has another vocabulary.
        """
        data = self.find_data(data_dir)
        if [made.fingerprint for made in data.metadata.vocabularies] != list(self.run.vocabularies.values()):
            other = self.path / IMPORTED_DATA
            raise T2TError(
                f"{data.folder} was made with another vocabulary than that of the model in {self.path}: give "
                f"the --data_dir that it was trained from, or --data_dir={other}, which this command makes: ",
                data.problem.datagen_command(other, self.vocabulary_files, data.metadata.source),
            )
        return data

    def plan_run(self, data: Data, hparams_set: str) -> Run:
        """The run.json of a training with data; one that is resumed keeps its `decode_hparams`.

        Raises:
            T2TError: its vocabulary is not that of the run that the folder holds.
        """
        problem, (inputs, targets), separate = data.problem, data.vocabularies, data.vocabularies.separate
        form = data.metadata.normalize
        own = problem.decode_hparams() | ({"unicode_form": form} if form else {})
        if hparams_set == AUTO:
            own |= registry.usual_decoding(problem, data.metadata)
        run = Run(
            problem=problem.name,
            hparams_set=hparams_set,
            data_dir=str(data.folder.resolve()),
            vocabulary=inputs.path.name,
            fingerprint=inputs.fingerprint,
            decode_hparams=self.run.decode_hparams if self.has_run else own,
            target_vocabulary=targets.path.name if separate else "",
            target_fingerprint=targets.fingerprint if separate else "",
            unicode_form=data.metadata.unicode_forms[problem.was_reversed],
        )
        self.check_vocabularies(run)
        return run

    def check_vocabularies(self, run: Run) -> None:
        """Checks that the run that the folder holds, if there is one, has the vocabularies of another run."""
        if self.has_run and self.run.fingerprints != run.fingerprints:
            raise T2TError(
                f"{self.path} holds a run with another vocabulary: {ANOTHER}, or another --data_dir that ",
                CommandLine("t2t-datagen", vocab_file=self.vocabulary_files),
                " makes with your other flags",
            )

    def save(self, run: Run, hparams: HParams, *vocabularies: Path) -> None:
        """Writes the files besides checkpoints, each atomically; copies the vocabulary, or both.

        Raises:
            T2TError: the folder cannot be written.
        """
        with writing(f"to output_dir {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            for path, name in zip(vocabularies, run.names, strict=True):
                if not (self.path / name).exists():
                    write_whole(self.path / name, path.read_bytes())
            hparams.save(self.path)
            run.save(self.path)
        vars(self).update(run=run, hparams=hparams)

    def lacks_evaluation(self, step: int, train_steps: int, eval_frequency: int) -> bool:
        """Returns whether a training stopped between its newest checkpoint and the evaluation due after it.

        `step` is the checkpoint's, or 0. With an `eval_frequency` of 0 only the last update is evaluated.
        """
        is_due = step == train_steps or bool(eval_frequency and step % eval_frequency == 0)
        return 0 < step <= train_steps and is_due and not has_point(self.path, DEV, step)

    def nothing_left(self, step: int, train_steps: int) -> T2TError:
        """The error of a training that is already at its last step."""
        return T2TError(
            f"{self.path} is already at step {step}, and train_steps is {train_steps}: "
            "give a larger --train_steps to continue"
        )

    def check_unfinished(self, train_steps: int, eval_frequency: int) -> None:
        """Checks, by the newest checkpoint alone, that there is something left to train or to evaluate.

        A corrupt checkpoint passes: the training will resume from the one before it.

        Raises:
            T2TError: there is nothing.
        """
        newest = max(list_checkpoints(self.path), default=None)
        if newest is None or newest.step < train_steps:
            return
        if not self.lacks_evaluation(newest.step, train_steps, eval_frequency):
            with suppress(CorruptCheckpointError, CheckpointNotFoundError):
                verify(newest.path)
                raise self.nothing_left(newest.step, train_steps)

    def copy_to(self, path: Path) -> None:
        """Writes the files besides checkpoints into a folder of averages of this training's checkpoints.

        Raises:
            T2TError: it holds another run, or cannot be written.
        """
        copy = ModelFolder(path)
        copy.prepare(self.run.problem, self.run.hparams_set, self.hparams)
        copy.check_vocabularies(self.run)
        copy.save(self.run, self.hparams, *(self.path / name for name in self.run.names))
        for name in self.run.names:
            time = (self.path / name).stat().st_mtime_ns
            os.utime(path / name, ns=(time, time))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the folder's lock against other trainers; commands that only read may run meanwhile.

        It is a lock of the kernel, so it ends with its process, also when that is killed. Over NFS it holds
        between machines if the server has locks, as version 4 does; on a file system without locks it rejects
        nobody. A missing folder is created, and removed again if nothing was written into it.

        Raises:
            T2TError: another trainer holds the lock, or the folder cannot be written.
        """
        created = [folder for folder in (self.path, *self.path.parents) if not folder.exists()]
        with writing(f"to output_dir {self.path}"):
            make_folder(self.path)
            descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock(descriptor, self._rejection)
            try:
                yield
            finally:
                if created and os.listdir(self.path) == [LOCK_FILE]:
                    (self.path / LOCK_FILE).unlink()
                    with suppress(OSError):  # not empty: another process wrote something there
                        for folder in created:
                            folder.rmdir()
        finally:
            os.close(descriptor)

    def check_free(self) -> None:
        """Checks that no trainer holds the lock; many processes may check at the same time."""
        try:
            descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR)
        except OSError:  # not there yet, or not writable, which `lock` reports
            return
        try:
            lock(descriptor, self._rejection, shared=True)
        finally:
            os.close(descriptor)

    @property
    def _rejection(self) -> str:
        return (
            f"{self.path} is in use by another t2t-trainer: wait until it ends, or give another --output_dir "
            "(t2t-decoder and the other commands can read it meanwhile)"
        )

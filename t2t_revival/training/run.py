"""The files of an output_dir besides checkpoints: all that is needed to use the model.

hparams.json     the resolved hyperparameters
run.json         problem, hparams set, vocabulary
vocab.*.spm      a copy of the vocabulary, or of both; vocab.*.subwords if it is T2T's
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, verify
from t2t_revival.curve_files import DEV, has_point
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.vocabulary.text_encoder import fingerprint
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line, datagen_command
from t2t_revival.hparams import HParams
from t2t_revival.training.lock import check_free
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import atomic_write, is_file_name, writing

if TYPE_CHECKING:
    from t2t_revival.data.metadata import Metadata
    from t2t_revival.problems.problem import Problem
    from t2t_revival.problems.text_problems import Text2TextProblem

FILE_NAME = "run.json"
IMPORTED_DATA = "data"  # folder of data in the output_dir of an imported model
ANOTHER = "give another --output_dir"
TRAIN_OR_GIVE = "train one with t2t-trainer, or give --output_dir"
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

    def __post_init__(self) -> None:
        target = ["target_vocabulary"] if self.target_vocabulary else []
        for kind in ("problem", "hparams_set", "vocabulary", *target):
            if not is_file_name(getattr(self, kind)):
                raise T2TError(
                    f"{kind}: {getattr(self, kind)!r} is not valid: it becomes part of a file name"
                )

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

    def vocabulary_files(self, output_dir: Path) -> list[Path]:
        """The paths of `vocabularies`."""
        return [output_dir / name for name in self.vocabularies]

    @classmethod
    def load(cls, output_dir: Path) -> Run:
        """Reads run.json.

        Raises:
            T2TError: there is none, or it is corrupt.
        """
        path = Path(output_dir) / FILE_NAME
        if not path.exists():
            raise T2TError(f"no trained model in {output_dir}: {TRAIN_OR_GIVE}")
        fields = dataclasses.fields(cls)
        values = checked_json.load(path, HINT)
        types = {field.name: str(field.type).partition("[")[0] for field in fields}
        if {name: type(value).__name__ for name, value in values.items()} != types:
            raise T2TError(f"{path}: corrupt, its fields are not {', '.join(types)}; {HINT}")
        try:
            return cls(**values)
        except T2TError as error:
            raise T2TError(f"{path}: corrupt, {error}; {HINT}") from error

    def save(self, output_dir: Path) -> None:
        """Writes run.json atomically."""
        checked_json.save(output_dir / FILE_NAME, dataclasses.asdict(self))


def plan_run(problem: Text2TextProblem, hparams_set: str, data_dir: Path, output_dir: Path) -> Run:
    """The run.json of a training in `output_dir`; one that is resumed keeps its `decode_hparams`.

    Raises:
        T2TError: there is no data in `data_dir`, or its vocabulary or the run.json of output_dir is corrupt.
    """
    inputs, targets = vocabularies = problem.vocabularies(data_dir)
    stored = Run.load(output_dir) if (output_dir / FILE_NAME).exists() else None
    return Run(
        problem=problem.name,
        hparams_set=hparams_set,
        data_dir=str(data_dir.resolve()),
        vocabulary=inputs.path.name,
        fingerprint=inputs.fingerprint,
        decode_hparams=stored.decode_hparams if stored else problem.decode_hparams(),
        target_vocabulary=targets.path.name if vocabularies.separate else "",
        target_fingerprint=targets.fingerprint if vocabularies.separate else "",
    )


def load_hparams(output_dir: Path) -> HParams:
    """The hyperparameters that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or the file is corrupt.
    """
    hparams = HParams.load(Path(output_dir))
    if hparams is None:
        raise T2TError(f"no trained model in {output_dir}, since it has no hparams.json: {TRAIN_OR_GIVE}")
    return hparams


def load_vocabularies(output_dir: Path) -> Vocabularies:
    """The vocabularies that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or a vocabulary is missing, corrupt or not the model's own.
    """
    run = Run.load(output_dir)
    paths = [Path(output_dir) / name for name in run.names]
    for path, known in zip(paths, run.fingerprints, strict=True):
        if fingerprint(path) != known:
            raise T2TError(f"{path}: not the vocabulary that this model was trained with; copy that one here")
    return Vocabularies.open(paths)


def load_vocabulary(output_dir: Path) -> TextEncoder:
    """The vocabulary of the inputs, of which most models have no other; see `load_vocabularies`."""
    return load_vocabularies(output_dir).inputs


def check_place(output_dir: Path, problem: str, hparams_set: str) -> None:
    """Checks, before anything is written, that `output_dir` is free for a run of a problem and hparams set.

    Raises:
        T2TError: it cannot be written, a trainer works there, or it holds a run of another problem or hparams
            set.
    """
    existing = next(folder for folder in (output_dir, *output_dir.absolute().parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise T2TError(
            f"cannot write to output_dir {output_dir}: {existing} is not a folder that you may write to"
        )
    check_free(output_dir)
    if not (output_dir / FILE_NAME).exists():
        return
    stored = Run.load(output_dir)
    for what, old, new in (
        ("problem", stored.problem, problem),
        ("hparams set", stored.hparams_set, hparams_set),
    ):
        if old != new:
            raise T2TError(f"{output_dir} holds a run with {what} {old}, not {new}: {ANOTHER}")


def check_same(output_dir: Path, run: Run, hparams: HParams) -> None:
    """Checks that the run in `output_dir`, if there is one, has the same vocabulary and model as `run`.

    Its hparams may differ in how they train the model.

    Raises:
        T2TError: it has not.
    """
    if not (output_dir / FILE_NAME).exists():
        return
    stored = Run.load(output_dir)
    if stored.fingerprints != run.fingerprints:
        make = command_line("t2t-datagen", vocab_file=stored.vocabulary_files(output_dir))
        raise T2TError(
            f"{output_dir} holds a run with another vocabulary: {ANOTHER}, or another --data_dir that {make} "
            "makes with your other flags"
        )
    before = load_hparams(output_dir)
    for field in ("freeze", "lora_rank"):  # which determine what an optimizer has moments of
        old, new = getattr(before, field), getattr(hparams, field)
        if old != new:
            raise T2TError(
                f"{output_dir} holds a run with {field}={old!r}, not {new!r}: {ANOTHER} and "
                f"--warm_start_from={output_dir}"
            )
    known = before.architecture()
    for field, new in hparams.architecture().items():
        if (old := known[field]) != new:
            raise T2TError(f"{output_dir} holds a model with {field}={old}, not {new}: {ANOTHER}")


def find_data(problem: Problem, run: Run, output_dir: Path, data_dir: str | Path | None = None) -> Path:
    """Returns the given folder of data, or the one that the model in `output_dir` was trained from.

    The data of an imported model is in output_dir/data.

    Raises:
        T2TError: there is no data; it has the command that makes it for the model's vocabulary.
    """
    folder = Path(data_dir or run.data_dir or output_dir / IMPORTED_DATA).expanduser()
    if problem.has_data(folder):
        return folder
    source = "FOLDER" if run.data_dir else None  # an imported model's is tensor2tensor's own
    made = datagen_command(problem, folder, run.vocabulary_files(output_dir), source=source)
    raise T2TError(f"no data for {run.problem} in {folder}: give --data_dir, or run {made}")


def data_of_model(problem: Text2TextProblem, run: Run, output_dir: Path, data_dir: Path) -> Metadata:
    """Returns the metadata of data that has the vocabulary of the model in `output_dir`.

    Raises:
        T2TError: there is no data in `data_dir`, or it has another vocabulary.
    """
    metadata = problem.metadata(data_dir)
    if [made.fingerprint for made in metadata.vocabularies] != list(run.vocabularies.values()):
        other = output_dir / IMPORTED_DATA
        raise T2TError(
            f"{data_dir} was made with another vocabulary than that of the model in {output_dir}: give the "
            f"--data_dir that it was trained from, or --data_dir={other}, which this command makes: "
            + datagen_command(problem, other, run.vocabulary_files(output_dir), source=metadata.source)
        )
    return metadata


def save_run(output_dir: Path, run: Run, hparams: HParams, *vocabularies: Path) -> None:
    """Writes the files of `output_dir` besides checkpoints, each atomically; copies the vocabulary, or both.

    Raises:
        T2TError: it cannot be written.
    """
    with writing(f"to output_dir {output_dir}"):
        output_dir.mkdir(parents=True, exist_ok=True)
        for path, name in zip(vocabularies, run.names, strict=True):
            if not (output_dir / name).exists():
                with atomic_write(output_dir / name) as file:
                    file.write(path.read_bytes())
        hparams.save(output_dir)
        run.save(output_dir)


def lacks_evaluation(output_dir: Path, step: int, train_steps: int, eval_frequency: int) -> bool:
    """Returns whether a training stopped between its newest checkpoint and the evaluation due after it.

    `step` is the checkpoint's, or 0. With an `eval_frequency` of 0 only the last update is evaluated.
    """
    is_due = step == train_steps or bool(eval_frequency and step % eval_frequency == 0)
    return 0 < step <= train_steps and is_due and not has_point(output_dir, DEV, step)


def nothing_left(output_dir: Path, step: int, train_steps: int) -> T2TError:
    """The error of a training that is already at its last step."""
    return T2TError(
        f"{output_dir} is already at step {step}, and train_steps is {train_steps}: "
        "give a larger --train_steps to continue"
    )


def check_unfinished(output_dir: Path, train_steps: int, eval_frequency: int) -> None:
    """Checks, by the newest checkpoint alone, that there is something left to train or to evaluate.

    A corrupt checkpoint passes: the training will resume from the one before it.

    Raises:
        T2TError: there is nothing.
    """
    checkpoints = list_checkpoints(output_dir)
    if not checkpoints or checkpoints[-1].step < train_steps:
        return
    newest = checkpoints[-1]
    if lacks_evaluation(output_dir, newest.step, train_steps, eval_frequency):
        return
    try:
        verify(newest.path)
    except (CorruptCheckpointError, CheckpointNotFoundError):
        return
    raise nothing_left(output_dir, newest.step, train_steps)

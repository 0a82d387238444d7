"""`t2t-distill`: trains a student on its teacher's outputs, and compares the two.

t2t-distill --teacher=DIR[,DIR...] --hparams_set=student_tiny [--output_dir=DIR] [--nearest]
            [--original_targets] [--monolingual=FILE,...]
t2t-distill --teacher=DIR[,DIR...] --distilled_dir=DIR --decode_shards=4 --worker_id=0 [--nearest]
            [--monolingual=FILE,...]

Decodes the training sources, and further text, with a teacher; trains a student on the outputs with
t2t-trainer; averages its last checkpoints, unless its learning rate has fallen to 0; and writes a table of
the two models' quality, speed and size to output_dir/distillation.md. Steps that are complete are skipped:
after an interruption, even kill -9, the same command resumes.

With --worker_id it only decodes one worker's share of the text. When all workers are done, the command
without it does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from t2t_revival import registry
from t2t_revival.addons.distillation.comparison import GREEDY, STUDENT, TEACHER, make_table, measure
from t2t_revival.addons.distillation.student_data import make_student_data, student_data_dir
from t2t_revival.addons.distillation.teacher_outputs import TeacherOutputs, read_pairs
from t2t_revival.checkpoints.averaging import average_latest
from t2t_revival.checkpoints.directory import list_averaged, list_checkpoints
from t2t_revival.checkpoints.selection import taking_next
from t2t_revival.cli.support import run_flags, tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.engine_flags import Engine, engine_flags
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import ProgressBar, say, warn_of_corruption
from t2t_revival.cli.support.problem_flags import show_generation
from t2t_revival.cli.support.subcommand import run_command
from t2t_revival.cli.support.text_files import STANDARD_STREAM, read_lines
from t2t_revival.curve_files import DEV, has_point, is_annealed
from t2t_revival.decoding.trained_models import TrainedModel, load_translator, open_models
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.decoded import language_of
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.problems.problem import TRAIN
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import write_whole, writing

DECODING = (
    "teacher",
    "checkpoint",
    "data_dir",
    "decode_hparams",
    "nearest",
    "monolingual",
    "teacher_engine",
    "teacher_precision",
)
COMMON = ("t2t_usr_dir", "debug")
TRAINING = ("hparams_set", "original_targets", *run_flags.NAMES)


@dataclass(frozen=True)
class DistillFlags(run_flags.TrainingFlags, run_flags.ShardFlags, NormalizeFlags):
    exclusive = tuple(("worker_id", name) for name in TRAINING)
    needs = (("decode_shards", "worker_id"), ("worker_id", "distilled_dir", "output_dir"))
    decode_hparams: str = flag("", run_flags.DECODE_HPARAMS)
    engine: Engine = engine_flags("teacher_")
    teacher: tuple[str, ...] = flag(
        (),
        "Folder of the trained teacher; of several, whose probabilities are averaged, their folders.",
        missing="=DIR is missing: the output_dir of a trained model",
    )
    monolingual: tuple[str, ...] = flag(
        (), "Files of further sources, a sentence a line, which have no original targets."
    )
    nearest: bool = flag(
        False,
        "Learn, of the beam_size outputs for a training source, the one nearest its original target by "
        "sentence chrF instead of the most probable one.",
    )
    original_targets: bool = flag(False, "Learn the original targets too.")
    data_dir: str | None = flag(
        None, "Folder of the training sources; by default the one that the teacher was trained from."
    )
    distilled_dir: str = flag(
        "",
        "Folder of the teacher's outputs and the student's data, which several students can share; by "
        "default OUTPUT_DIR/distilled.",
    )
    checkpoint: str | None = run_flags.checkpoint_flag("of the teacher, by default as t2t-decoder.")
    decode_shards: int = run_flags.shards_flag("Each writes the same files as a single one would.")

    def repeated(self, names: Sequence[str]) -> dict[str, object]:
        """The flags among these that the command was called with, for another command."""
        given = {name: self.given[name] for name in names if name in self.given}
        return {name: ",".join(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _distill(flags: DistillFlags) -> None:
    _check_flags(flags)

    def decode_or_train() -> None:
        flags.import_usr_dir()
        folders = [flags.refuse_t2t(Path(name).expanduser(), "teacher") for name in flags.teacher]
        teachers = open_models(folders, "teacher", flags.checkpoint, warn_of_corruption)
        run = teachers[0].folder.run
        if flags.problem not in (None, run.problem):
            raise T2TError(
                f"--problem={flags.problem}: the teacher in {folders[0]} is a model of {run.problem}; omit "
                "the flag"
            )
        of_problem = replace(flags, problem=run.problem)
        if "worker_id" in flags.given:
            _decode(of_problem, _outputs(of_problem, teachers, run))
        else:
            _train_student(of_problem, teachers, run)

    taking_next(decode_or_train, flags.checkpoint, warn_of_corruption)


def _check_flags(flags: DistillFlags) -> None:
    """Rejects flags that are missing, wrong, or without effect beside others."""
    flags.engine.check()
    if flags.engine.is_ctranslate2 and len(flags.teacher) > 1:
        raise T2TError(f"--teacher_engine={flags.engine.name} cannot decode an ensemble: give one --teacher")
    if STANDARD_STREAM in flags.monolingual:
        raise T2TError("--monolingual=-: the text is read more than once; name files")
    if flags.config.strategy == "multi_worker":
        raise T2TError("--strategy=multi_worker: a student is trained on one machine; leave it out")


def _outputs(flags: DistillFlags, teachers: list[TrainedModel], run: Run) -> TeacherOutputs:
    """Returns the outputs that the flags ask for, decoded or not."""
    data = teachers[0].folder.own_data(flags.data_dir)
    for note in data.check_origins():
        say(note)
    monolingual: list[str] = []
    for file in flags.monolingual:
        lines = read_lines(file, "monolingual")
        if not lines:
            raise T2TError(f"--monolingual={file}: the file is empty; leave it out")
        monolingual += lines
    folder = flags.distilled_dir or flags.run_dir() / "distilled"
    return TeacherOutputs(
        Path(folder).expanduser(),
        teachers,
        data,
        run_flags.decode_options(flags.decode_hparams, run, flags.normalize),
        flags.nearest,
        monolingual,
        str(flags.engine),
    )


def _decode(flags: DistillFlags, outputs: TeacherOutputs) -> None:
    """Decodes the share of one worker."""
    shard = flags.shard()
    outputs.stored()
    translator = flags.engine.load_translator(outputs.teachers, outputs.options)
    say(f"decoding with {', '.join(str(teacher.checkpoint.path) for teacher in outputs.teachers)}")
    with ProgressBar("sentences") as bar:
        outputs.decode(translator, shard, bar.update, say)
    if shard.count > 1:
        rest = {**flags.repeated((*DECODING, "t2t_usr_dir")), "distilled_dir": outputs.folder}
        training = CommandLine("t2t-distill", **rest, hparams_set="student_base", output_dir="STUDENT")
        say(f"next, when all {shard.count} workers are done: {training}")


def _train_student(flags: DistillFlags, teachers: list[TrainedModel], run: Run) -> None:
    """Makes what is missing: outputs, data, student and comparison."""
    output_dir = flags.run_dir()
    if output_dir.resolve() in [teacher.folder.path.resolve() for teacher in teachers]:
        raise T2TError(f"--output_dir={output_dir} is the teacher's own folder: give another")
    student = ModelFolder(output_dir)
    hparams = flags.run_hparams(student)
    flags.check_metrics(registry.problem(run.problem))
    student.prepare(run.problem, flags.named_set(), hparams)
    student.check_vocabularies(run)
    outputs = _outputs(flags, teachers, run)
    data_dir = student_data_dir(outputs, flags.original_targets)
    if student.has_run and student.run.data_dir != str(data_dir.resolve()):
        raise T2TError(
            f"{output_dir} holds a model trained on {student.run.data_dir}, not on {data_dir.resolve()}: "
            "give another --output_dir"
        )
    if not outputs.are_complete():
        given = flags.repeated((*DECODING, *COMMON))
        run_command("t2t-distill", {**given, "distilled_dir": outputs.folder, "worker_id": 0})
    with ProgressBar("pairs") as bar:
        progress, vocabularies = partial(show_generation, bar), teachers[0].folder.vocabulary_files
        counts = make_student_data(outputs, flags.original_targets, vocabularies, progress)
    say(f"{counts['pairs']:,} training pairs of {counts['sources']:,} sources in {data_dir}")
    if empty := counts["empty_outputs"]:
        say(f"{empty:,} outputs of the teacher are empty and left out")
    if not has_point(output_dir, DEV, hparams.train_steps):
        places = {"problem": run.problem, "data_dir": data_dir, "output_dir": output_dir}
        training = flags.repeated(("hparams_set", *run_flags.NAMES, *COMMON))
        run_command("t2t-trainer", {**places, **training})
    averages = [average.step for average in list_averaged(output_dir)]
    if not is_annealed(output_dir) and list_checkpoints(output_dir)[-1].step not in averages:
        average_latest(output_dir, hparams.average_checkpoints, on_damaged=warn_of_corruption, on_note=say)
    _compare(flags, outputs, TrainedModel.select(ModelFolder(output_dir), None, warn_of_corruption))
    print(f"next: {CommandLine('t2t-decoder', output_dir=output_dir, t2t_usr_dir=flags.t2t_usr_dir)}")


def _compare(flags: DistillFlags, outputs: TeacherOutputs, student: TrainedModel) -> None:
    """Measures teacher and student, unless that is done; prints and writes the table."""
    path = student.folder.path / "distillation.json"
    models = {TEACHER: outputs.origin()["teacher"], STUDENT: student.name}
    found = checked_json.load(path, "remove it") if path.exists() else {}
    if found.get("models") != models:
        tensorflow_setup.load_backend()
        parallel = tensorflow_setup.num_parallel_batches()
        names = [split for split in outputs.data.metadata.splits if split != TRAIN]
        splits = {name: read_pairs(outputs.files(name)) for name in names}
        found, target_lang = {"models": models}, language_of(outputs.data)
        for name, of, options in (
            (TEACHER, outputs.teachers, ""),
            (STUDENT, [student], ""),
            (GREEDY, [student], "beam_size=1"),
        ):
            say(f"measuring the {name}")
            found[name] = measure(load_translator(of, options, parallel), splits, target_lang)
    table = make_table(models, found)
    with writing(f"to {student.folder.path}"):
        checked_json.save(path, found)
        write_whole(path.with_suffix(".md"), table.markdown().encode())
    print(table.markdown())
    print(f"table    {path.with_suffix('.md')}\ndata     {path}")


main = Command(DistillFlags, _distill, __doc__)

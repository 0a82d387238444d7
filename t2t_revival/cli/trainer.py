"""`t2t-trainer`: trains a problem's model."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.checkpoints.best import best_value
from t2t_revival.cli.support import command, problem_flags, run_flags, tensorflow_setup, training_flags
from t2t_revival.cli.support.best_export import BestExport
from t2t_revival.cli.support.field_flags import field_values
from t2t_revival.cli.support.messages import duration, say, warn_of_corruption
from t2t_revival.curve_files import best_row, is_falling
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams.hparams import HParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN, Data
from t2t_revival.training.events import EARLY, BestEvent, EvaluatedEvent, Event, NoteEvent, StepEvent
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.warm_start import WarmStart
from t2t_revival.visualization.learning_curve import draw_learning_curve

if TYPE_CHECKING:
    from t2t_revival.training.trainer import Result

USAGE = """
t2t-trainer --problem=translate_ende --hparams_set=big
            [--data_source=FOLDER|sample|wmt14|tfds:NAME/CONFIG|hf:OWNER/NAME/CONFIG]

Trains a problem's model; generates the problem's data first where it is missing. Ctrl-C (SIGINT), SIGTERM and
SIGHUP save and stop; the same command resumes from there.
"""
EXIT_STATUS = {
    "SIGINT": command.EXIT_INTERRUPTED,
    "SIGTERM": command.EXIT_TERMINATED,
    "SIGHUP": command.EXIT_HUNG_UP,
}


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-trainer; names and meanings are T2T's where T2T had them."""
    values = command.new_flags()
    problem_flags.define(values)
    run_flags.define(values)
    training_flags.define(values)
    command.define(
        values,
        None,
        warm_start_from="An output_dir, or a checkpoint's file in one, with whose weights and vocabulary a "
        "new run starts, at step 0.",
        freeze="Regular expression: weights whose paths have a match are not trained, such as "
        "'encoder/|embedding'. The same as the hparam.",
    )
    command.define(
        values,
        False,
        warm_start_partial="Take the weights that fit the new model, and name the others.",
        export_best="Write a version of output_dir/export whenever a checkpoint is the best, while the "
        "training goes on.",
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _train, argv)


def _train(values: flags.FlagValues) -> int:
    warm_start = _warm_start(values)
    vocab_files = warm_start.folder.vocabulary_files if warm_start else []
    problem = problem_flags.problem_from(values, vocab_files)
    output_dir = run_flags.output_dir(values)
    hparams = training_flags.hparams(values, output_dir)
    if values.freeze is not None:
        if "freeze=" in values.hparams:
            raise T2TError("--freeze and --hparams=freeze=... are the same: give one of them")
        hparams = hparams.replace(freeze=values.freeze)
    training_flags.check_metrics(values, problem)
    if mixture := problem.requested_mixture:
        _check_corpora(values, [corpus.name for corpus in mixture.corpora])
    _check_best(values)
    folder = ModelFolder.prepare(output_dir, problem.name, values.hparams_set, problem.hparams(hparams))
    if warm_start:
        warm_start.check(problem.name, problem.hparams(hparams))
    several = values.strategy == "multi_worker"
    data_dir = problem_flags.data_dir(values)
    has_data = problem.has_data(data_dir)
    if not has_data:
        if several:
            raise T2TError(
                "--strategy=multi_worker: generate the data first: ",
                problem.datagen_command(data_dir),
            )
        if problem_flags.uses_tensorflow(problem):
            tensorflow_setup.load_tensorflow(values)
            tensorflow_setup.num_training_parts(hparams.batch_size)  # sets threads before TensorFlow starts
        problem_flags.generate_data(problem, values)
    data = problem.open(data_dir)
    for note in data.check_origins() if has_data else ():
        say(note)
    if has_data and not several:  # of several workers, only the chief knows the evaluations
        data.split(TRAIN)
        folder.plan_run(data, values.hparams_set)
        folder.check_unfinished(problem.hparams(hparams).train_steps, values.local_eval_frequency)
    _check_corpora(values, list(data.corpora(DEV)))
    tensorflow_setup.load_backend(values)
    return _run(values, data, hparams, output_dir, warm_start)


def _warm_start(values: flags.FlagValues) -> WarmStart | None:
    if not values.warm_start_from:
        if values.warm_start_partial:
            raise T2TError("--warm_start_partial needs --warm_start_from")
        return None
    path = run_flags.refuse_t2t(Path(values.warm_start_from).expanduser(), values, "warm_start_from")
    return WarmStart.open(path, values.warm_start_partial, warn_of_corruption)


def _run(
    values: flags.FlagValues,
    data: Data,
    hparams: HParams,
    output_dir: Path,
    warm_start: WarmStart | None,
) -> int:
    """Trains; returns the exit status."""
    from t2t_revival.experiment import Experiment

    config = RunConfig(
        output_dir=output_dir,
        warm_start=warm_start,
        num_parallel_batches=tensorflow_setup.num_training_parts(hparams.batch_size),
        **field_values(values, training_flags.RUN_CONFIG_FLAGS),
    )
    experiment = Experiment(
        data,
        hparams,
        values.hparams_set,
        config,
        values.eval_bleu_sentences,
        training_flags.is_batch_size_auto(values),
    )
    say(f"training {data.problem.name} with {values.hparams_set}, output_dir {output_dir}")
    if values.strategy == "multi_worker":
        say("waiting for all workers to start")
    say("building the model")
    with BestExport({"output_dir": output_dir, "t2t_usr_dir": values.t2t_usr_dir}) as export:
        result = experiment.run(partial(_report, export if values.export_best else None))
        if result.stopped_by not in EXIT_STATUS:
            export.finish()
    if result.chief:
        _print_end(values, output_dir, result)
    else:
        say(f"step {result.step}: this worker has finished; the chief has reported and saved")
    return EXIT_STATUS.get(result.stopped_by or "", 0)


def _check_best(values: flags.FlagValues) -> None:
    for flag in ("export_best", "best_metric"):
        if values[flag].present and not values.keep_best:
            raise T2TError(f"--{flag} needs --keep_best above 0")


def _check_corpora(values: flags.FlagValues, corpora: list[str]) -> None:
    """Checks metrics of one corpus, such as bleu/news, against the corpora that have a dev split."""
    known = [name for name in corpora if name]
    for flag in training_flags.METRIC_FLAGS:
        _, slash, corpus = values[flag].value.partition("/")
        if slash and corpus not in known:
            names = ", ".join(known) or "it is no mixture"
            raise T2TError(f"--{flag}={values[flag].value}: no corpus {corpus!r} has a dev split ({names})")


def _report(export: BestExport | None, event: Event) -> None:
    """Prints an event, and exports where the best checkpoint is wanted."""
    say(_describe(event))
    if export and isinstance(event, BestEvent):
        export.ask()
    elif export:
        export.advance()


def _describe(event: Event) -> str:
    """Formats an event as a line."""
    if isinstance(event, NoteEvent):
        return event.text
    if isinstance(event, StepEvent):
        width = len(str(event.train_steps))
        return (
            f"step {event.step:{width}}/{event.train_steps}  loss {event.loss:6.3f}"
            + (f" (smoothed {event.smoothed_loss:.3f})" if event.smoothed_loss != event.loss else "")
            + f"  {event.tokens_per_second:7,.0f} tokens/s  lr {event.learning_rate:.2e}"
            + (f"  {duration(event.seconds_left)} left" if event.seconds_left is not None else "")
        )
    if isinstance(event, EvaluatedEvent):
        scores = "  ".join(f"{name} {value:.4g}" for name, value in event.scores.items())
        return f"step {event.step}  dev: {scores}  ({event.seconds:.0f} s)"
    if isinstance(event, BestEvent):
        return f"step {event.step}  best {event.score} so far, kept in {event.folder.name}/"
    return f"step {event.step}  saved {event.path.name}"


def _print_end(values: flags.FlagValues, output_dir: Path, result: Result) -> None:
    seen = result.seen
    print(
        f"step {result.step}: {seen.target_tokens:,} target tokens in {duration(seen.seconds)}"
        + (f", stopped by {result.stopped_by}" if result.stopped_by else "")
    )
    stopped_early = result.stopped_by == EARLY
    metric = values.eval_early_stopping_metric
    if stopped_early and (row := best_row(output_dir, metric)):
        print(f"best dev {metric}: {row[metric]:.4g} at step {row['step']:.0f}")
    if best := best_value(output_dir):
        score, value, path = best
        use = ": commands use it from now on" if stopped_early else ", for --checkpoint=best"
        print(f"best checkpoint by {score}, {value:.4g}: {path}{use}")
    if result.skipped_updates:
        print(f"{result.skipped_updates:,} updates skipped: their loss or gradients were not finite")
    if result.overflows:
        print(f"{result.overflows:,} updates skipped: their scaled gradients overflowed float16")
    print(f"output_dir: {output_dir}")
    try:
        print(f"learning curve: {draw_learning_curve(output_dir, f'{values.problem}, {values.hparams_set}')}")
    except T2TError as error:
        say(str(error))
    if result.stopped_by in EXIT_STATUS:
        print("next: the same command resumes from here")
    else:
        falling = is_falling(output_dir, ModelFolder(output_dir).hparams.average_checkpoints)
        if falling:
            print("the loss on dev is still falling: train longer before averaging checkpoints")
        following = "t2t-decoder" if stopped_early or falling or values.warm_start_from else "t2t-avg-all"
        print(f"next: {CommandLine(following, **run_flags.named(values))}")


if __name__ == "__main__":
    sys.exit(main())

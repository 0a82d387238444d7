"""`t2t-trainer`: trains a problem's model.

t2t-trainer --problem=translate_ende [--hparams_set=big]
            [--data_source=FOLDER|sample|wmt14|tfds:NAME/CONFIG|hf:OWNER/NAME/CONFIG]

Trains a problem's model; generates the problem's data first where it is missing. Ctrl-C (SIGINT), SIGTERM and
SIGHUP save and stop; the same command resumes from there.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry
from t2t_revival.checkpoints.selection import best_value
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import EXIT_SIGNAL, Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.messages import duration, say, warn_of_corruption
from t2t_revival.cli.support.problem_flags import DataFlags, uses_tensorflow
from t2t_revival.cli.support.run_flags import TrainingFlags
from t2t_revival.cli.support.subcommand import BestExport
from t2t_revival.curve_files import best_row, is_annealed, is_falling
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams.auto import AUTO, EVAL_FREQUENCY, MINUTES, PACE, USUAL, by_usual_size, fitted
from t2t_revival.hparams.hparams import HParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN, Data
from t2t_revival.training.events import EARLY, BestEvent, EvaluatedEvent, Event, NoteEvent, StepEvent
from t2t_revival.training.run_config import RunConfig, WarmStart
from t2t_revival.training.start import Start, check_run
from t2t_revival.visualization.learning_curve import draw_learning_curve

if TYPE_CHECKING:
    from t2t_revival.training.trainer import Result


@dataclass(frozen=True)
class TrainerFlags(DataFlags, TrainingFlags):
    """The flags of t2t-trainer; names and meanings are T2T's where T2T had them."""

    needs = (("warm_start_partial", "warm_start_from"),)
    warm_start_from: str = flag(
        "",
        "An output_dir, or a checkpoint's file in one, with whose weights and vocabulary a new run starts, "
        "at step 0. Without --hparams_set, the new model has the architecture of that one, and is trained "
        "with the hparams of its set.",
    )
    freeze: str | None = flag(
        None,
        "Regular expression: weights whose paths have a match are not trained, such as 'encoder/|embedding'. "
        "The same as the hparam.",
    )
    warm_start_partial: bool = flag(False, "Take the weights that fit the new model, and name the others.")
    export_best: bool = flag(
        False,
        "Write a version of output_dir/export whenever a checkpoint is the best, while the training goes on.",
    )

    def named_set(self) -> str:
        """The value of `--hparams_set`; without it, the set that fits the corpus."""
        return self.hparams_set or AUTO


def _train(flags: TrainerFlags) -> int:
    warm_start = like = None
    if flags.warm_start_from:
        path = flags.refuse_t2t(Path(flags.warm_start_from).expanduser(), "warm_start_from")
        warm_start = WarmStart.open(path, flags.warm_start_partial, warn_of_corruption)
        if not flags.hparams_set:
            like = warm_start.folder.hparams
            flags = replace(flags, hparams_set=warm_start.folder.run.hparams_set)
    problem = flags.named_problem(warm_start.folder.vocabulary_files if warm_start else [])
    folder = ModelFolder(flags.run_dir())
    if warm_start and folder.path.absolute() == warm_start.folder.path:
        raise T2TError(f"--warm_start_from={folder.path} is the output_dir too: give another --output_dir")
    if not flags.hparams_set:
        flags = replace(flags, hparams_set=folder.run.hparams_set if folder.has_run else AUTO)
    fits = flags.hparams_set == AUTO and not folder.has_run and not like
    hparams = _hparams(flags, folder, like)
    updates = hparams.train_steps if flags.train_steps or "train_steps=" in flags.hparams else 0
    minutes = flags.config.train_minutes or MINUTES
    length = minutes * PACE, updates
    if fits:  # and the batch size is that of the length, before there is data
        hparams = _hparams(flags, folder, like, fitted(*USUAL, *length))
    flags.check_metrics(problem)
    if mixture := problem.requested_mixture:
        _check_corpora(flags, [corpus.name for corpus in mixture.corpora])
    for name in ("export_best", "best_metric"):
        if flags.has(name) and not flags.config.keep_best:
            raise T2TError(f"--{name} needs --keep_best above 0")
    config = replace(flags.config, output_dir=folder.path, warm_start=warm_start)
    if flags.hparams_set == AUTO and not flags.has("precision"):
        config = replace(config, precision=tensorflow_setup.fast_precision())
    if flags.hparams_set == AUTO and not flags.has("local_eval_frequency"):
        config = replace(config, eval_frequency=EVAL_FREQUENCY)
    has_data = problem.has_data(flags.data_path)
    if not has_data:
        if fits:
            registry.fit_vocabulary(problem)
        check_run(folder, problem, hparams, flags.named_set(), config)
        if config.strategy == "multi_worker":
            raise T2TError(
                "--strategy=multi_worker: generate the data first: ", problem.datagen_command(flags.data_path)
            )
        if uses_tensorflow(problem):
            tensorflow_setup.load_tensorflow()
            tensorflow_setup.num_training_parts(hparams.batch_size)  # sets threads before TensorFlow starts
        flags.generate_data(problem)
    data, refit = problem.open(flags.data_path), None
    if fits:
        name, usual = registry.usual_hparams(problem, data.metadata, *length)
        hparams = _hparams(flags, folder, like, usual)
        if name == AUTO and not updates:
            config = replace(config, train_minutes=minutes)

            def refit(channels: int, tokens: int) -> HParams:
                read = by_usual_size(tokens, channels)
                return _hparams(flags, folder, like, registry.usual_hparams(problem, data.metadata, read)[1])

        say(_choice(data, name, hparams, config))
    start = Start.prepare(data, hparams, flags.named_set(), config, folder)
    for note in data.check_origins() if has_data else ():
        say(note)
    _check_corpora(flags, list(data.corpora(DEV)))
    tensorflow_setup.load_backend()
    return _run(flags, hparams, start, refit)


def _hparams(
    flags: TrainerFlags, folder: ModelFolder, like: HParams | None, usual: HParams | None = None
) -> HParams:
    """Returns the hparams of the training; see `TrainingFlags.run_hparams`."""
    hparams = flags.run_hparams(folder, like, usual)
    if flags.freeze is None:
        return hparams
    if "freeze=" in flags.hparams:
        raise T2TError("--freeze and --hparams=freeze=... are the same: give one of them")
    return hparams.replace(freeze=flags.freeze)


def _choice(data: Data, name: str, hparams: HParams, config: RunConfig) -> str:
    """Describes the choice for a corpus, and its reason."""
    counts, pieces = data.metadata.splits[TRAIN], data.vocabularies.inputs.size
    why = f"{counts.examples:,} pairs" if data.metadata.source != "sample" else "the sample corpus"
    layers = f"{hparams.encoder_layers}+{hparams.decoder_layers} layers"
    parts = [layers, f"{hparams.hidden_size}/{hparams.filter_size}", f"{pieces:,} pieces"]
    parts += [f"dropout {hparams.layer_prepostprocess_dropout:g}", config.precision]
    if name != AUTO:
        parts.insert(0, f"the set {name}")
    if config.train_minutes:
        parts.append(f"{config.train_minutes:g} minutes at most (--train_minutes)")
    return f"for {why}: {', '.join(parts)}; --hparams_set takes another"


def _run(
    flags: TrainerFlags, hparams: HParams, start: Start, refit: Callable[[int, int], HParams] | None
) -> int:
    """Trains; returns the exit status."""
    from t2t_revival.experiment import Experiment

    data, folder = start.data, start.folder
    parts = tensorflow_setup.num_training_parts(hparams.batch_size)
    config = replace(start.config, num_parallel_batches=parts)
    experiment = Experiment(
        data, hparams, flags.named_set(), config, flags.eval_bleu_sentences, flags.is_batch_size_auto, refit
    )
    say(f"training {data.problem.name} with {flags.hparams_set}, output_dir {folder.path}")
    if config.strategy == "multi_worker":
        say("waiting for all workers to start")
    say("building the model")
    with BestExport({"output_dir": folder.path, "t2t_usr_dir": flags.t2t_usr_dir}) as export:
        result = experiment.run(partial(_report, export if flags.export_best else None), start)
        if result.stopped_by not in signal.Signals.__members__:
            export.finish()
    if result.chief:
        _print_end(flags, folder, result)
    else:
        say(f"step {result.step}: this worker has finished; the chief has reported and saved")
    number = signal.Signals.__members__.get(result.stopped_by or "")
    return EXIT_SIGNAL + number if number else 0


def _check_corpora(flags: TrainerFlags, corpora: list[str]) -> None:
    """Checks metrics of one corpus, such as bleu/news, against the corpora that have a dev split."""
    known = [name for name in corpora if name]
    for name, metric in flags.metrics.items():
        _, slash, corpus = metric.partition("/")
        if slash and corpus not in known:
            names = ", ".join(known) or "it is no mixture"
            raise T2TError(f"--{name}={metric}: no corpus {corpus!r} has a dev split ({names})")


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


def _print_end(flags: TrainerFlags, folder: ModelFolder, result: Result) -> None:
    seen, output_dir = result.seen, folder.path
    print(
        f"step {result.step}: {seen.target_tokens:,} target tokens in {duration(seen.seconds)}"
        + (f", stopped by {result.stopped_by}" if result.stopped_by else "")
    )
    stopped_early = result.stopped_by == EARLY
    metric = flags.config.patience_score
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
        print(f"learning curve: {draw_learning_curve(output_dir, f'{flags.problem}, {flags.hparams_set}')}")
    except T2TError as error:
        say(str(error))
    if result.stopped_by in signal.Signals.__members__:
        print("next: the same command resumes from here")
    else:
        annealed = is_annealed(output_dir)
        falling = not annealed and is_falling(output_dir, folder.hparams.average_checkpoints)
        if annealed and not stopped_early:
            print("the learning rate has fallen to 0: the newest checkpoint, which is used, needs no average")
        if falling:
            print("the loss on dev is still falling: train longer before averaging checkpoints")
        needs_no_average = annealed or stopped_early or flags.warm_start_from
        following = "t2t-decoder" if needs_no_average or falling else "t2t-avg-all"
        print(f"next: {CommandLine(following, **flags.named)}")


main = Command(TrainerFlags, _train, __doc__)

"""`t2t-trainer`: trains a problem's model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli import common, problem_flags, run_flags
from t2t_revival.cli.progress import duration
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line
from t2t_revival.problems.problem import TRAIN, Text2TextProblem

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams
    from t2t_revival.training.loop import Result
    from t2t_revival.training.news import Evaluated, Note, Saved, Step

USAGE = """
t2t-trainer --problem=translate_ende --hparams_set=big [--data_source=FOLDER|sample|wmt14|tfds:NAME/CONFIG]

Trains a problem's model; makes the problem's data first where it is missing. Ctrl-C (SIGINT) and SIGTERM
save and stop; the same command goes on from there.
"""
EXIT_STATUS = {"SIGINT": common.EXIT_INTERRUPTED, "SIGTERM": 143}


def command_flags() -> flags.FlagValues:
    """The flags of t2t-trainer; names and meanings are T2T's where T2T had them."""
    values = common.new_flags()
    problem_flags.define(values)
    run_flags.define(values)
    flags.DEFINE_string(
        "hparams",
        "",
        'Changes to the hparams set, as in "batch_size=2048,num_heads=4".',
        flag_values=values,
    )
    for name, number, text in (
        ("train_steps", 0, "Updates; 0: as the hparams set says."),
        (
            "local_eval_frequency",
            1000,
            "Updates between two evaluations, each with a checkpoint; 0: only the last.",
        ),
        ("save_checkpoints_secs", 600, "Seconds between two checkpoints besides these; 0: none besides."),
        ("keep_checkpoint_max", 20, "Newest checkpoints that are kept; 0: all."),
        ("log_step_count_steps", 100, "Updates between two progress lines; 0: only first and last."),
        ("eval_bleu_sentences", 200, "Dev sentences that are decoded for BLEU, or F1; 0: none."),
        ("eval_early_stopping_steps", 0, "Stop after so many updates without a better score; 0: never."),
    ):
        common.define_integer(name, number, text, lower_bound=0, flag_values=values)
    common.define_integer(
        "max_nonfinite_steps",
        10,
        "An update whose loss or gradients are not finite numbers is left out, and said; after so many in a "
        "row training stops.",
        lower_bound=1,
        flag_values=values,
    )
    common.define_integer(
        "random_seed",
        1,
        "Seed of weights, dropout and order of the data.",
        lower_bound=0,
        upper_bound=2**32 - 1,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "eval_early_stopping_metric",
        "loss",
        ["loss", "perplexity", "accuracy", "bleu", "f1"],
        "Score that early stopping watches.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "eval_early_stopping_metric_delta",
        0.0,
        "By how much a better score must be better.",
        lower_bound=0.0,
        flag_values=values,
    )
    flags.DEFINE_enum(
        "strategy",
        "auto",
        ["auto", "default", "mirrored", "multi_worker"],
        "default: one device; mirrored: all GPUs; auto: mirrored where there are several; multi_worker: all "
        "GPUs of the machines in TF_CONFIG, see t2t-make-tf-configs.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "xla",
        False,
        "Let XLA compile the training step, once for each bucket of lengths: pays off on a GPU; one only.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "precision",
        "float32",
        ["float32", "mixed_bfloat16", "mixed_float16"],
        "What the model computes in; weights are float32 always. mixed_float16, for GPUs without bfloat16, "
        "scales the loss.",
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-trainer`."""
    return common.run(command_flags(), USAGE, _train, argv)


def _train(values: flags.FlagValues) -> int:
    if values.registry_help:
        problem_flags.print_registry(values)
        return 0
    problem = problem_flags.problem_from(values)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"--problem={values.problem} is not a problem of text to text")
    output_dir = run_flags.output_dir(values)
    hparams = _hparams(values, output_dir)
    _check_metric(values, problem)
    from t2t_revival.training.run import check_place

    check_place(output_dir, problem.name, values.hparams_set)
    several = values.strategy == "multi_worker"
    if not problem.has_data(problem_flags.data_dir(values)):
        if several:
            raise T2TError(f"--strategy=multi_worker: make the data first: {problem_flags.same_data(values)}")
        if problem_flags.uses_tensorflow(problem):
            common.load_tensorflow(values)
            common.training_streams(hparams.batch_size)  # later, TensorFlow would have its threads
        problem_flags.generate_data(problem, values)
    elif not several:  # of several workers, the chief alone knows what is evaluated
        _check_unfinished(values, problem, hparams, output_dir)

    common.load_tensorflow(values)
    from t2t_revival.experiment import Experiment
    from t2t_revival.training.settings import Settings

    settings = Settings(
        output_dir=output_dir,
        strategy=values.strategy,
        precision=values.precision,
        xla=values.xla,
        streams=common.training_streams(hparams.batch_size),
        seed=values.random_seed,
        eval_frequency=values.local_eval_frequency,
        save_seconds=values.save_checkpoints_secs,
        nonfinite_steps=values.max_nonfinite_steps,
        keep_checkpoints=values.keep_checkpoint_max,
        log_steps=values.log_step_count_steps,
        patience=values.eval_early_stopping_steps,
        patience_score=values.eval_early_stopping_metric,
        patience_delta=values.eval_early_stopping_metric_delta,
    )
    experiment = Experiment(
        problem,
        hparams,
        values.hparams_set,
        problem_flags.data_dir(values),
        settings,
        values.eval_bleu_sentences,
    )
    print(f"training {problem.name} with {values.hparams_set}, output_dir {output_dir}", file=sys.stderr)
    if several:
        print("waiting for all workers of TF_CONFIG to start", file=sys.stderr, flush=True)
    result = experiment.run(_report)
    if result.chief:
        _tell_end(values, output_dir, result)
    else:
        print(f"step {result.step}: done here; the chief has reported and saved", file=sys.stderr)
    return EXIT_STATUS.get(result.stopped_by or "", 0)


def _check_unfinished(
    values: flags.FlagValues, problem: Text2TextProblem, hparams: HParams, output_dir: Path
) -> None:
    """Refuses a training that has nothing left to do before TensorFlow is imported, which takes seconds."""
    from t2t_revival.training.finished import check_unfinished
    from t2t_revival.training.run import check_same, plan_run

    data_dir, hparams = problem_flags.data_dir(values), problem.hparams(hparams)
    problem.shards(TRAIN, data_dir)
    check_same(output_dir, plan_run(problem, values.hparams_set, data_dir, output_dir), hparams)
    check_unfinished(output_dir, hparams.train_steps, values.local_eval_frequency)


def _check_metric(values: flags.FlagValues, problem: Text2TextProblem) -> None:
    metric = values.eval_early_stopping_metric
    if metric not in problem.eval_metrics():
        known = ", ".join(problem.eval_metrics())
        raise T2TError(f"--eval_early_stopping_metric={metric}: {problem.name} has {known}")
    if metric in ("bleu", "f1") and not values.eval_bleu_sentences:
        raise T2TError(f"--eval_early_stopping_metric={metric} needs --eval_bleu_sentences above 0")


def _hparams(values: flags.FlagValues, output_dir: Path) -> HParams:
    """The stored set where a run goes on, else the named one; with the overrides of the command line."""
    from t2t_revival import registry
    from t2t_revival.hparams.hparams import HParams

    named = registry.hparams(run_flags.hparams_set(values))
    hparams = (HParams.load(output_dir) or named).override(values.hparams)
    return hparams.replace(train_steps=values.train_steps) if values.train_steps else hparams


def _report(news: Step | Evaluated | Saved | Note) -> None:
    print(_line(news), file=sys.stderr, flush=True)


def _line(news: Step | Evaluated | Saved | Note) -> str:
    from t2t_revival.training.news import Evaluated, Note, Step

    if isinstance(news, Note):
        return news.text
    if isinstance(news, Step):
        width = len(str(news.train_steps))
        return (
            f"step {news.step:{width}}/{news.train_steps}  loss {news.loss:6.3f}"
            + (f" (smoothed {news.smoothed_loss:.3f})" if news.smoothed_loss != news.loss else "")
            + f"  {news.tokens_per_second:7,.0f} tokens/s  lr {news.learning_rate:.2e}"
            + (f"  {duration(news.seconds_left)} left" if news.seconds_left is not None else "")
        )
    if isinstance(news, Evaluated):
        scores = "  ".join(f"{name} {value:.4g}" for name, value in news.scores.items())
        return f"step {news.step}  dev: {scores}  ({news.seconds:.0f} s)"
    return f"step {news.step}  saved {news.path.name}"


def _tell_best(output_dir: Path, metric: str) -> None:
    """Prints the best evaluation on the dev data of now."""
    from t2t_revival.training.curve_files import best_row

    if best := best_row(output_dir, metric):
        print(f"best dev {metric}: {best[metric]:.4g} at step {best['step']:.0f}")


def _tell_end(values: flags.FlagValues, output_dir: Path, result: Result) -> None:
    from t2t_revival.training.session import EARLY

    seen = result.seen
    print(
        f"step {result.step}: {seen.target_tokens:,} target tokens in {duration(seen.seconds)}"
        + (f", stopped by {result.stopped_by}" if result.stopped_by else "")
    )
    if result.stopped_by == EARLY:
        _tell_best(output_dir, values.eval_early_stopping_metric)
    if result.left_out:
        print(f"{result.left_out:,} updates left out, whose loss or gradients were not finite")
    if result.overflows:
        print(f"{result.overflows:,} updates left out, whose scaled gradients overflowed float16")
    print(f"output_dir: {output_dir}")
    try:
        from t2t_revival.visualization.learning_curve import draw_learning_curve

        print(f"learning curve: {draw_learning_curve(output_dir, f'{values.problem}, {values.hparams_set}')}")
    except T2TError as error:
        print(error, file=sys.stderr)
    if result.stopped_by in EXIT_STATUS:
        print("next: the same command goes on from here")
    else:
        print(f"next: {command_line('t2t-avg-all', **run_flags.named(values))}")


if __name__ == "__main__":
    sys.exit(main())

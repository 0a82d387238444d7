"""`t2t-avg-all`: averages the last checkpoints of a training, or the last of each."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.checkpoints.averaging import (
    UNKNOWN,
    average_latest,
    check_averages,
    data_change,
    sliding_averages,
)
from t2t_revival.checkpoints.best import mark_stopped_early
from t2t_revival.checkpoints.directory import Checkpoint, list_checkpoints
from t2t_revival.checkpoints.selection import BEST, NEWEST, candidates, mark_average
from t2t_revival.cli.support import command, problem_flags, run_flags, tensorflow_setup, wait_flags
from t2t_revival.cli.support.messages import say, say_skipped, warn_of_corruption, warn_of_skipped
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.checkpoint_evaluation import (
    Evaluation,
    Evaluations,
    best_checkpoint,
    evaluate_checkpoints,
    evaluation_settings,
    run_metric,
)
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.problems.problem import DEV, Data
from t2t_revival.utils.files import check_writable, exclusive_lock

USAGE = """
t2t-avg-all --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--n=20] [--min_steps=0]
t2t-avg-all --model_dir=DIR [--output_dir=DIR/avg] [--n=8] [--wait_minutes=20] [--min_steps=0]

Averages the weights of the last checkpoints (section 6.1 of the paper) and writes the average to
output_dir/averaged. Scores it on the dev split beside the newest and the best checkpoint; commands such as
t2t-decoder use it from then on, unless it is worse. Where the training data has changed, only checkpoints
since then are averaged.

With --model_dir, as in tensor2tensor: for each checkpoint the average of it and the --n - 1 before it, also
while the training is running. The averages go to an --output_dir of their own, which t2t-eval,
t2t-translate-all, t2t-decoder and t2t-exporter read like a training's.
"""
FOLDER = "avg"  # T2T's
SENTENCES = 200  # that are decoded for BLEU or F1, as t2t-eval does


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-avg-all."""
    values = command.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    command.define(
        values, 0, n="Number of checkpoints in an average; 0 takes average_checkpoints of the hparams."
    )
    command.define(
        values,
        None,
        model_dir="Folder of a training: writes one average for each of its checkpoints to --output_dir, by "
        f"default MODEL_DIR/{FOLDER}.",
    )
    command.define(
        values,
        False,
        mix_data="Also average checkpoints from before and after a change of the training data.",
    )
    flags.DEFINE_enum(
        "checkpoint",
        NEWEST,
        (NEWEST, BEST),
        "Checkpoints to average: the last ones, or those that t2t-trainer kept as the best (--keep_best).",
        flag_values=values,
    )
    command.define(
        values,
        False,
        skip_scoring="Make the average the default without scoring it on dev, which takes minutes.",
    )
    run_flags.define_split_dir(values)
    wait_flags.define_min_steps(values, "checkpoint")
    wait_flags.define(values, "checkpoint")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _average, argv)


def _average(values: flags.FlagValues) -> None:
    if values.model_dir:
        _sliding_averages(values)
        return
    if values["wait_minutes"].present:
        raise T2TError("--wait_minutes is for an average of each checkpoint: give --model_dir")
    output_dir, run = run_flags.open_run(values)
    check_writable(output_dir)
    path, steps = average_latest(
        output_dir,
        values.n or ModelFolder(output_dir).hparams.average_checkpoints,
        values.min_steps,
        values.mix_data,
        warn_of_corruption,
        say,
        of_best=values.checkpoint == BEST,
    )
    count = _count(len(steps), "checkpoint")
    print(f"averaged {count} (steps {', '.join(map(str, steps))}): {path}")
    if values.checkpoint != BEST:
        _choose_default(values, output_dir, run, Checkpoint(steps[-1], True, path))
    where = run_flags.named(values)
    if values.checkpoint == BEST:
        where["checkpoint"] = str(path)
    if run.problem not in registry.list_problems():
        where["t2t_usr_dir"] = "YOUR_PACKAGE"
    print(f"next: {CommandLine('t2t-decoder', **where)}")


def _choose_default(values: flags.FlagValues, output_dir: Path, run: Run, average: Checkpoint) -> None:
    """Makes the average the default, unless the newest or the best checkpoint scores better on dev."""
    if values.skip_scoring:
        mark_average(output_dir, average.step, is_worse=False)
        return
    mark_average(output_dir, average.step, is_worse=True)  # until it is scored
    try:
        data = ModelFolder(output_dir).own_data(values.data_dir)
        settings = evaluation_settings(ModelFolder(output_dir), data, DEV, SENTENCES)
    except T2TError as error:
        mark_average(output_dir, average.step, is_worse=False)
        say(f"the average is the default without a score on dev: {error.message(values.t2t_usr_dir)}")
        return
    tensorflow_setup.load_backend(values)
    best = _score(output_dir, data, average, Evaluations(output_dir, DEV, settings))
    if best.averaged:
        mark_average(output_dir, average.step, is_worse=False)
        print("the average is the default of commands from now on")
        return
    if best.checkpoint.startswith(f"{BEST}{os.sep}"):
        mark_stopped_early(output_dir)
    print(
        f"the average is worse, and no default: commands use {best.checkpoint}; --checkpoint=average is for "
        "the average"
    )


def _score(output_dir: Path, data: Data, average: Checkpoint, table: Evaluations) -> Evaluation:
    """Prints the scores of an average, the newest checkpoint and the best one; returns the best of them."""
    from t2t_revival.evaluation.split_scores import CheckpointScores, sample

    newest = candidates(output_dir, NEWEST)[:1]
    others = [
        kept for kept in candidates(output_dir, BEST)[:1] if kept.step not in (own.step for own in newest)
    ]
    rows = []
    for row in evaluate_checkpoints(
        [average, *newest, *others],
        table,
        lambda: CheckpointScores(
            ModelFolder(output_dir),
            data,
            DEV,
            SENTENCES,
            tensorflow_setup.num_parallel_batches(),
        ),
        lambda checkpoint, seconds: say(f"scoring {checkpoint.path.relative_to(output_dir)} on dev"),
        say_skipped,
    ):
        rows.append(row)
        scores = "  ".join(f"{name} {value:.4g}" for name, value in row.scores.items())
        print(f"{row.checkpoint}  dev: {scores}", flush=True)
    references = [target for _, target in sample(data, DEV, SENTENCES)]
    outputs = {row.checkpoint: table.outputs(row) for row in rows}
    best, reason = best_checkpoint(rows, data.problem, outputs, references, run_metric(output_dir))
    print(reason)
    return rows[0] if rows[0].scores == best.scores else best


def _sliding_averages(values: flags.FlagValues) -> None:
    if values["checkpoint"].present:
        raise T2TError("--checkpoint is for a single average: leave out --model_dir")
    model_dir = Path(values.model_dir).expanduser()
    folder = Path(values.output_dir).expanduser() if values.output_dir else model_dir / FOLDER
    run_flags.run_in(values, model_dir)
    model = ModelFolder(model_dir)
    count = values.n or model.hparams.average_checkpoints
    check_averages(folder, model_dir, count, values.mix_data)
    model.copy_to(folder)
    checkpoints = wait_flags.step_files(
        lambda: list_checkpoints(model_dir),
        values.wait_minutes,
        f"a checkpoint in {model_dir}",
        values.min_steps,
    )
    made = 0
    changed_at: list[int] = []

    def on_other_data(checkpoint: Checkpoint, before: str, now: str) -> None:
        changed_at.append(checkpoint.step)
        then = "averages mix them" if values.mix_data else "averages begin again here; --mix_data mixes them"
        say(
            f"warning: step {checkpoint.step} {data_change(bool(before and now))} than the one "
            f"before it ({before or UNKNOWN} -> {now or UNKNOWN}): {then}"
        )

    with exclusive_lock(folder, f"{folder}: another t2t-avg-all is writing there: wait until it ends"):
        for average in sliding_averages(
            checkpoints, count, folder, warn_of_skipped, _warn_of_gap, on_other_data, values.mix_data
        ):
            made += 1
            print(
                f"step {average.step}: {average.path}{'' if average.made else ', there already'}", flush=True
            )
    if not made:
        raise T2TError(
            f"no average: {model_dir} has fewer than {count} valid checkpoints"
            + (" in a row of the same training data" if changed_at and not values.mix_data else "")
            + (f" from step {values.min_steps} on" if values.min_steps else "")
            + ": give a lower --n, or --wait_minutes while it is trained"
        )
    print(f"{_count(made, 'average')} of {_count(count, 'checkpoint')}")
    print(f"next: {CommandLine('t2t-eval', output_dir=folder, t2t_usr_dir=values.t2t_usr_dir)}")


def _count(number: int, kind: str) -> str:
    return f"{number} {kind}{'' if number == 1 else 's'}"


def _warn_of_gap(checkpoint: Checkpoint) -> None:
    say(
        f"warning: step {checkpoint.step} has no average, since the training has removed one of its "
        "checkpoints: give t2t-trainer a larger --keep_checkpoint_max"
    )


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-avg-all`: averages the last checkpoints of a training, or the last of each."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command, problem_flags, run_flags, wait_flags
from t2t_revival.cli.support.messages import say, warn_of_corruption, warn_of_skipped
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line
from t2t_revival.training.checkpoints.averaging import (
    UNKNOWN,
    average_latest,
    data_change,
    moving_averages,
    open_folder,
)
from t2t_revival.training.checkpoints.directory import Checkpoint, list_checkpoints
from t2t_revival.training.checkpoints.selection import BEST, NEWEST
from t2t_revival.training.run import load_hparams
from t2t_revival.utils.files import exclusive_lock

USAGE = """
t2t-avg-all --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--n=20] [--min_steps=0]
t2t-avg-all --model_dir=DIR [--output_dir=DIR/avg] [--n=8] [--wait_minutes=20] [--min_steps=0]

Averages the weights of the last checkpoints (section 6.1 of the paper) and writes the average to
output_dir/averaged; t2t-decoder uses it from then on. Where the training data has changed, only checkpoints
since then are averaged.

With --model_dir, as in tensor2tensor: for each checkpoint the average of it and the --n - 1 before it, also
while the training is running. The averages go to an --output_dir of their own, which t2t-eval,
t2t-translate-all, t2t-decoder and t2t-exporter read like a training's.
"""
FOLDER = "avg"  # T2T's


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
    wait_flags.define_min_steps(values, "checkpoint")
    wait_flags.define(values, "checkpoint")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _average, argv)


def _average(values: flags.FlagValues) -> None:
    if values.model_dir:
        _moving_averages(values)
        return
    if values["wait_minutes"].present:
        raise T2TError("--wait_minutes is for an average of each checkpoint: give --model_dir")
    output_dir, run = run_flags.open_run(values)
    path, steps = average_latest(
        output_dir,
        values.n or None,
        values.min_steps,
        values.mix_data,
        warn_of_corruption,
        say,
        of_best=values.checkpoint == BEST,
    )
    count = _count(len(steps), "checkpoint")
    print(f"averaged {count} (steps {', '.join(map(str, steps))}): {path}")
    where = run_flags.named(values)
    if values.checkpoint == BEST:
        where["checkpoint"] = str(path)
    if run.problem not in registry.list_problems():
        where["t2t_usr_dir"] = "YOUR_PACKAGE"
    print(f"next: {command_line('t2t-decoder', **where)}")


def _moving_averages(values: flags.FlagValues) -> None:
    if values["checkpoint"].present:
        raise T2TError("--checkpoint is for a single average: leave out --model_dir")
    model_dir = Path(values.model_dir).expanduser()
    folder = Path(values.output_dir).expanduser() if values.output_dir else model_dir / FOLDER
    run_flags.run_in(values, model_dir)
    count = values.n or load_hparams(model_dir).average_checkpoints
    open_folder(folder, model_dir, count, values.mix_data)
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
        for average in moving_averages(
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
    print(f"next: {command_line('t2t-eval', output_dir=folder, t2t_usr_dir=values.t2t_usr_dir)}")


def _count(number: int, kind: str) -> str:
    return f"{number} {kind}{'' if number == 1 else 's'}"


def _warn_of_gap(checkpoint: Checkpoint) -> None:
    say(
        f"warning: step {checkpoint.step} has no average, since the training has removed one of its "
        "checkpoints: give t2t-trainer a larger --keep_checkpoint_max"
    )


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-avg-all`: averages the last checkpoints of a training, or the last of each."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags, waiting
from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError
from t2t_revival.files import only_one
from t2t_revival.hints import command_line

if TYPE_CHECKING:
    from t2t_revival.training.checkpoints import Checkpoint

USAGE = """
t2t-avg-all --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--n=20] [--min_steps=0]
t2t-avg-all --model_dir=DIR [--output_dir=DIR/avg] [--n=8] [--wait_minutes=20] [--min_steps=0]

Averages the weights of the last checkpoints (section 6.1 of the paper) and writes the average to
output_dir/averaged; t2t-decoder uses it from then on. Where the training data has changed, only checkpoints
since then are averaged.

With --model_dir, as in tensor2tensor: for each checkpoint the average of it and the --n - 1 before it, also
while a training goes on. They go to an --output_dir of their own, which t2t-eval, t2t-translate-all,
t2t-decoder and t2t-exporter take as they take a training's.
"""
FOLDER = "avg"  # T2T's
UNKNOWN = "unknown"  # instead of a fingerprint of data


def command_flags() -> flags.FlagValues:
    """The flags of t2t-avg-all."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    common.define_integer(
        "n",
        0,
        "How many checkpoints an average has; 0: as the hparams say.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_string(
        "model_dir",
        None,
        f"A training's folder: one average for each checkpoint; --output_dir, by default MODEL_DIR/{FOLDER}, "
        "is where they go.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "mix_data",
        False,
        "Average checkpoints from before and after a change of the training data, too.",
        flag_values=values,
    )
    waiting.define_min_steps(values, "checkpoint")
    waiting.define(values, "checkpoint")
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-avg-all`."""
    return common.run(command_flags(), USAGE, _average, argv)


def _average(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    if values.model_dir:
        _moving(values)
        return
    if values["wait_minutes"].present:
        raise T2TError("--wait_minutes is for an average of each checkpoint: give --model_dir")
    from t2t_revival.training import checkpoints
    from t2t_revival.training.checkpoint_file import GoneError
    from t2t_revival.training.run import load_hparams

    output_dir, run = run_flags.open_run(values)
    count = values.n or load_hparams(output_dir).average_checkpoints
    while True:
        listed = checkpoints.list_checkpoints(output_dir)
        wanted = [checkpoint for checkpoint in listed if checkpoint.step >= values.min_steps]
        found = checkpoints.newest_whole(wanted, count, run_flags.warn_of_damage)
        if not found:
            raise T2TError(
                f"no {'whole ' if wanted else ''}checkpoint in {output_dir}"
                + (f" from step {values.min_steps} on" if values.min_steps else "")
                + ": train with t2t-trainer"
            )
        try:
            found = _of_one_data(found, values.mix_data)
            written = checkpoints.average(found, output_dir)
            break
        except GoneError:
            say("the training has removed a checkpoint meanwhile: once more")
    steps = ", ".join(str(checkpoint.step) for checkpoint in found)
    print(f"averaged {len(found)} checkpoint{'s' if len(found) > 1 else ''} (steps {steps}): {written.path}")
    where = run_flags.named(values)
    if run.problem not in registry.list_problems():
        where["t2t_usr_dir"] = "YOUR_PACKAGE"
    print(f"next: {command_line('t2t-decoder', **where)}")


def _of_one_data(found: list[Checkpoint], mix_data: bool) -> list[Checkpoint]:
    """The checkpoints to average: those of the newest's training data, or with `mix_data` all of them."""
    from t2t_revival.training.checkpoint_file import trained_on
    from t2t_revival.training.checkpoints import split_by_data

    groups = split_by_data(found)
    data = trained_on(found[-1].path)
    if len(groups) == 1:
        if not data and len(found) > 1:
            say("warning: these checkpoints do not name their training data: taken as trained on the same")
        return found
    if mix_data:
        say(f"warning: this average mixes training data: {_described(groups)}")
        return found
    trained = _trained_on_other_data(all(trained_on(group[0].path) for group in groups))
    say(
        f"left out, since step {found[-1].step} {trained} ({data or UNKNOWN}): {_described(groups[:-1])}; "
        "--mix_data averages them too"
    )
    return groups[-1]


def _trained_on_other_data(known: bool) -> str:
    return "was trained on other data" if known else "may have been trained on other data"


def _described(groups: list[list[Checkpoint]]) -> str:
    """Steps and fingerprint of each group of checkpoints of the same training data."""
    from t2t_revival.training.checkpoint_file import trained_on

    return ", ".join(
        f"step{'s' if len(group) > 1 else ''} {', '.join(str(checkpoint.step) for checkpoint in group)} "
        f"({trained_on(group[0].path) or UNKNOWN})"
        for group in groups
    )


def _moving(values: flags.FlagValues) -> None:
    from t2t_revival.training.averaging import moving_averages, open_folder
    from t2t_revival.training.checkpoints import list_checkpoints
    from t2t_revival.training.run import load_hparams

    model_dir = Path(values.model_dir).expanduser()
    folder = Path(values.output_dir).expanduser() if values.output_dir else model_dir / FOLDER
    run_flags.run_in(values, model_dir)
    count = values.n or load_hparams(model_dir).average_checkpoints
    open_folder(folder, model_dir, count, values.mix_data)
    found = waiting.following(
        lambda: list_checkpoints(model_dir),
        values.wait_minutes,
        f"a checkpoint in {model_dir}",
        values.min_steps,
    )
    averages = 0
    other_data: list[int] = []

    def on_other_data(checkpoint: Checkpoint, before: str, now: str) -> None:
        other_data.append(checkpoint.step)
        then = "averages mix them" if values.mix_data else "averages begin again here; --mix_data mixes them"
        say(
            f"warning: step {checkpoint.step} {_trained_on_other_data(bool(before and now))} than the one "
            f"before it ({before or UNKNOWN} -> {now or UNKNOWN}): {then}"
        )

    with only_one(folder, f"{folder}: another t2t-avg-all is at work there"):
        for average in moving_averages(
            found, count, folder, run_flags.say_left_out, _say_gap, on_other_data, values.mix_data
        ):
            averages += 1
            print(
                f"step {average.step}: {average.path}{'' if average.made else ', there already'}", flush=True
            )
    if not averages:
        raise T2TError(
            f"no average: {model_dir} has fewer than {count} whole checkpoints"
            + (" in a row of the same training data" if other_data and not values.mix_data else "")
            + (f" from step {values.min_steps} on" if values.min_steps else "")
            + ": give a lower --n, or --wait_minutes while it is trained"
        )
    print(f"{averages} average{'s' if averages > 1 else ''} of {count} checkpoint{'s' if count > 1 else ''}")
    print(f"next: {command_line('t2t-eval', output_dir=folder, t2t_usr_dir=values.t2t_usr_dir)}")


def _say_gap(checkpoint: Checkpoint) -> None:
    say(
        f"warning: step {checkpoint.step} has no average, since the training has removed one of its "
        "checkpoints: give t2t-trainer a larger --keep_checkpoint_max"
    )


if __name__ == "__main__":
    sys.exit(main())

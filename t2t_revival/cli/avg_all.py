"""`t2t-avg-all`: averages the last checkpoints of a training."""

from __future__ import annotations

import shlex
import sys

from absl import flags

from t2t_revival.cli import common, run_flags

USAGE = """
t2t-avg-all --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--n=20]

Averages the weights of the last checkpoints (section 6.1 of the paper) and writes the average to
output_dir/averaged; t2t-decoder uses it from then on.
"""


def command_flags() -> flags.FlagValues:
    """The flags of t2t-avg-all."""
    values = common.new_flags()
    run_flags.define(values)
    flags.DEFINE_string("problem", None, "What was learned, such as translate_ende.", flag_values=values)
    flags.DEFINE_integer(
        "n", 0, "How many of the last checkpoints; 0: as the hparams say.", lower_bound=0, flag_values=values
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-avg-all`."""
    return common.run(command_flags(), USAGE, _average, argv)


def _average(values: flags.FlagValues) -> None:
    from t2t_revival.errors import T2TError
    from t2t_revival.training import checkpoints
    from t2t_revival.training.run import load_hparams

    output_dir, run = run_flags.open_run(values)
    count = values.n or load_hparams(output_dir).average_checkpoints
    listed = checkpoints.list_checkpoints(output_dir)
    found = checkpoints.newest_whole(listed, count, run_flags.warn_of_damage)
    if not found:
        raise T2TError(f"no {'whole ' if listed else ''}checkpoint in {output_dir}: train with t2t-trainer")
    written = checkpoints.average(found, output_dir)
    steps = ", ".join(str(checkpoint.step) for checkpoint in found)
    print(f"averaged {len(found)} checkpoint{'s' if len(found) > 1 else ''} (steps {steps}): {written.path}")
    print(
        f"next: t2t-decoder --problem={run.problem} --hparams_set={run.hparams_set} "
        f"--output_dir={shlex.quote(str(output_dir))}"
    )


if __name__ == "__main__":
    sys.exit(main())

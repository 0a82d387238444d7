"""`t2t-import-checkpoint`: makes an output_dir of what tensor2tensor trained."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.t2t_import.importer import Imported

USAGE = """
t2t-import-checkpoint --checkpoint=DIR_OR_PREFIX --output_dir=DIR

Reads a checkpoint of tensor2tensor 1.15's model `transformer`, with the hparams.json and flags.txt beside it
and its vocabulary, vocab.*.subwords, and writes an output_dir that the other commands use.
"""


def command_flags() -> flags.FlagValues:
    """The flags of t2t-import-checkpoint."""
    values = common.new_flags()
    problem_flags.define_names(values)
    for name, text in (
        (
            "checkpoint",
            "T2T's output_dir, whose newest checkpoint is taken, or a prefix: DIR/model.ckpt-1000.",
        ),
        ("output_dir", "Where the model goes; must not hold one."),
        (
            "vocab_file",
            "T2T's vocabulary; by default the one beside the checkpoint or in flags.txt's data_dir.",
        ),
        ("hparams_set", "What its hparams set is called here; by default T2T's name, if known, or base."),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    common.define_integer(
        "target_space_id",
        0,
        "T2T's target_space_id of the problem, for one of your own that sets it.",
        lower_bound=0,
        flag_values=values,
    )
    flags.DEFINE_list(
        "ignored_hparams",
        [],
        "Settings in hparams.json that change nothing in the model.",
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-import-checkpoint`."""
    return common.run(command_flags(), USAGE, _import, argv)


def _import(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    for flag in ("checkpoint", "output_dir"):
        if not values[flag].value:
            raise T2TError(f"--{flag} is missing")
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    common.load_tensorflow(values)
    from t2t_revival.t2t_import.importer import Source, import_checkpoint

    source = Source(
        Path(values.checkpoint).expanduser(),
        Path(values.vocab_file).expanduser() if values.vocab_file else None,
        values.problem,
        values.hparams_set,
        values.target_space_id,
        tuple(values.ignored_hparams),
    )
    output_dir = Path(values.output_dir).expanduser()
    _tell(import_checkpoint(source, output_dir), output_dir)


def _tell(imported: Imported, output_dir: Path) -> None:
    run = imported.run
    print(
        f"step {imported.step:,}: {imported.parameters:,} parameters, "
        f"{imported.vocab_size:,} subtokens in {run.vocabulary}"
    )
    print("not imported: the optimizer's state; a training goes on at this step with fresh moments")
    for note in imported.notes:
        print(note)
    where = f"--problem={run.problem} --hparams_set={run.hparams_set}"
    where += f" --output_dir={shlex.quote(str(output_dir))}"
    print(f"output_dir: {output_dir}")
    print(f"next: t2t-decoder {where}")
    vocabulary = shlex.quote(str(output_dir / run.vocabulary))
    print(f"or train on: t2t-trainer {where} --data_dir=NEW_DIR --data_source=... --vocab_file={vocabulary}")


if __name__ == "__main__":
    sys.exit(main())

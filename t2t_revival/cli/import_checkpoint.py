"""`t2t-import-checkpoint`: makes an output_dir of what tensor2tensor trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line, datagen_command

if TYPE_CHECKING:
    from t2t_revival.t2t_import.importer import Imported

USAGE = """
t2t-import-checkpoint --checkpoint=DIR_OR_PREFIX --output_dir=DIR

Reads a checkpoint of tensor2tensor's model `transformer`, with the hparams.json and flags.txt beside it
and its vocabulary, vocab.*.subwords, and writes an output_dir that the other commands use. Versions
1.4 to 1.15 can be read.
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
        ("hparams_set", "Name of its hparams set; by default T2T's, or the nearest that T2T had."),
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
    _tell(import_checkpoint(source, output_dir), output_dir, values.t2t_usr_dir)


def _tell(imported: Imported, output_dir: Path, usr_dir: str | None) -> None:
    run = imported.run
    print(
        f"step {imported.step:,}: {imported.parameters:,} parameters, "
        f"{imported.vocab_size:,} subtokens in {run.vocabulary}"
    )
    print(f"hparams_set: {run.hparams_set}{_changes(imported)}")
    print("not imported: the optimizer's state; a training goes on at this step with fresh moments")
    for note in imported.notes:
        print(note)
    print(f"output_dir: {output_dir}")
    where = {"output_dir": output_dir, "t2t_usr_dir": usr_dir}
    print(f"next: {command_line('t2t-decoder', **where, decode_interactive=True)}")
    data = {"data_dir": output_dir / run_flags.IMPORTED_DATA, "vocab_file": output_dir / run.vocabulary}
    print(
        "or make data to evaluate it and to train on, from a corpus of your own with --data_source=FOLDER: "
        + datagen_command(registry.problem(run.problem), **data)
    )
    names = {"problem": run.problem, "hparams_set": run.hparams_set}
    print(f"and train on: {command_line('t2t-trainer', **names, **where, **data)}")


def _changes(imported: Imported) -> str:
    """The settings in which the model differs from its hparams set."""
    named, found = registry.hparams(imported.run.hparams_set).architecture(), imported.hparams.architecture()
    changes = [f"{name}={value}" for name, value in found.items() if named.get(name, value) != value]
    return f", but with {', '.join(changes)} (in hparams.json)" if changes else ""


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-import-checkpoint`: converts a checkpoint of tensor2tensor to an output_dir."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command, problem_flags, tensorflow_setup
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import IMPORTED_DATA

USAGE = """
t2t-import-checkpoint --checkpoint=DIR_OR_PREFIX --output_dir=DIR

Reads a checkpoint of tensor2tensor's model `transformer`, with the hparams.json and flags.txt beside it
and its vocabulary, vocab.*.subwords, and writes an output_dir that the other commands use. Versions
1.4 to 1.15 can be read.
"""
MISSING = {"checkpoint": "T2T's output_dir or checkpoint", "output_dir": "the folder for the model"}


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-import-checkpoint."""
    values = command.new_flags()
    problem_flags.define_names(values)
    command.define(
        values,
        None,
        checkpoint="T2T's output_dir, whose newest checkpoint is imported, or a prefix: DIR/model.ckpt-1000.",
        output_dir="Folder for the model; must not hold one.",
        vocab_file="T2T's vocabulary, or two, SOURCE,TARGET, in the order of PROBLEM for PROBLEM_rev; by "
        "default what is beside the checkpoint, or in data_dir of flags.txt.",
        hparams_set="Hparams set of the model; by default T2T's, or the nearest of T2T's sets.",
    )
    command.define(
        values, 0, target_space_id="T2T's target_space_id, for a problem of your own that sets it."
    )
    command.define(
        values,
        [],
        ignored_hparams="Hyperparameters in hparams.json to ignore, since they do not change the model.",
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _import, argv)


def _import(values: flags.FlagValues) -> None:
    for flag in MISSING:
        if not values[flag].value:
            raise T2TError(f"--{flag} is missing: it names {MISSING[flag]}")
    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    tensorflow_setup.load_tensorflow_alone(values)
    _import_checkpoint(values)


def _import_checkpoint(values: flags.FlagValues) -> None:
    from t2t_revival.t2t_import.importer import ImportSource, import_checkpoint

    source = ImportSource(
        Path(values.checkpoint).expanduser(),
        [Path(name).expanduser() for name in (values.vocab_file or "").split(",") if name],
        values.problem,
        values.hparams_set,
        values.target_space_id,
        tuple(values.ignored_hparams),
    )
    output_dir = Path(values.output_dir).expanduser()
    imported = import_checkpoint(source, output_dir)
    folder = imported.folder
    run = folder.run
    subtokens = [f"{size:,} subtokens in {name}" for name, size in imported.vocab_sizes.items()]
    print(f"step {imported.step:,}: {imported.parameters:,} parameters, {' and '.join(subtokens)}")
    print(f"hparams_set: {run.hparams_set}{_changes(run.hparams_set, folder.hparams)}")
    print("not imported: the optimizer's state; a training resumes at this step with moments of zero")
    for note in imported.notes:
        print(note)
    print(f"output_dir: {output_dir}")
    where = {"output_dir": output_dir, "t2t_usr_dir": values.t2t_usr_dir}
    print(f"next: {CommandLine('t2t-decoder', **where, decode_interactive=True)}")
    data_dir, vocab_files = output_dir / IMPORTED_DATA, folder.vocabulary_files
    print(
        "or make data to evaluate it and to train on, from a corpus of your own with --data_source=FOLDER: "
        + registry.problem(run.problem).datagen_command(data_dir, vocab_files).message(values.t2t_usr_dir)
    )
    names = {"problem": run.problem, "hparams_set": run.hparams_set}
    data = {"data_dir": data_dir, "vocab_file": vocab_files}
    print(f"and train on: {CommandLine('t2t-trainer', **names, **where, **data)}")


def _changes(hparams_set: str, hparams: HParams) -> str:
    """Describes the hyperparameters in which the model differs from its hparams set."""
    named = registry.hparams(hparams_set).architecture()
    changes = [
        f"{name}={value}" for name, value in hparams.architecture().items() if named.get(name, value) != value
    ]
    return f", but with {', '.join(changes)} (in hparams.json)" if changes else ""


if __name__ == "__main__":
    sys.exit(main())

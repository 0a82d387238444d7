"""`t2t-shortlist`: learns from the training pairs which pieces may translate which."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival.cli.support import command, problem_flags, run_flags, tensorflow_setup
from t2t_revival.cli.support.messages import ProgressBar
from t2t_revival.decoding.translations import Translations, coverage
from t2t_revival.errors import CommandLine
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN, Data
from t2t_revival.utils.files import check_writable

USAGE = """
t2t-shortlist --problem=translate_ende --hparams_set=small [--output_dir=DIR] [--data_dir=DIR]

Learns the most probable translations of each piece of the vocabulary from the training pairs (IBM model 1),
and writes them to output_dir/shortlist.npz. With --decode_hparams="shortlist=on", the model then computes the
scores of a batch's possible translations only, instead of the whole vocabulary's; with shortlist=by_line,
only those of the line itself count, so that its output does not depend on the batch.
"""


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-shortlist."""
    values = command.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    run_flags.define_split_dir(values)
    for name, default, text in (
        ("translations", 50, "Translations of a piece that are in the shortlist of its line."),
        ("frequent", 200, "Most frequent target pieces, which are in all shortlists."),
        ("max_pairs", 1_000_000, "Training pairs to learn from, spread over all of them."),
    ):
        command.define_integer(name, default, text, lower_bound=1, flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _learn, argv)


def _learn(values: flags.FlagValues) -> None:
    output_dir, _ = run_flags.open_run(values)
    data = ModelFolder(output_dir).own_data(values.data_dir)
    check_writable(output_dir)
    tensorflow_setup.load_tensorflow(values)
    _write(values, output_dir, data)


def _write(values: flags.FlagValues, output_dir: Path, data: Data) -> None:
    """Learns the translations, writes them, and prints how many of dev's tokens they have."""
    from t2t_revival.data.examples import read_pairs
    from t2t_revival.data.lexicon import learn_translations

    vocabularies = ModelFolder(output_dir).vocabularies
    pairs = read_pairs(data.split(TRAIN), values.max_pairs)
    with ProgressBar("iterations") as bar:
        learned = learn_translations(
            pairs,
            vocabularies.inputs.size,
            values.translations,
            values.frequent,
            bar.update,
            vocabularies.target_size,
        )
    sizes = vocabularies.fingerprint, vocabularies.target_size or 0
    found = Translations(*learned, *sizes, data.fingerprint(TRAIN))
    path = found.save(output_dir)
    size, share = coverage(found, read_pairs(data.split(DEV), values.max_pairs))
    print(f"learned from {len(pairs.inputs.lengths):,} pairs: {path}")
    print(
        f"dev: {size:,.0f} of {vocabularies.targets.size:,} pieces in the shortlist of a line, with "
        f"{share:.1%} of its target's pieces"
    )
    decoding = CommandLine("t2t-decoder", **run_flags.named(values), decode_hparams="shortlist=on")
    print(f"next: {decoding}")


if __name__ == "__main__":
    sys.exit(main())

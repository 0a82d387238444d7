"""`t2t-parseval`: scores a file of predicted trees against a file of gold trees."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from absl import flags
from nltk.tree import Tree

from t2t_revival.cli import common
from t2t_revival.cli.lines import STANDARD_STREAM, check_one_standard_input, name_of, read
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.parseval import Counts, Parseval, score_corpus
from t2t_revival.parsing.trees import numbered_trees, trees_in

USAGE = """
t2t-parseval --gold=FILE --predicted=FILE

Prints labelled F1, precision and recall of brackets, exact match and crossing brackets, as EVALB
computes them with COLLINS.prm: of all sentences, of those of at most 40 words, and by length.
The gold trees' tags say what is punctuation, so that predicted trees need none.
"""
COLUMNS: dict[str, Callable[[Counts], float]] = {  # title: what stands below it
    "    F1": lambda counts: counts.f1,
    "precision": lambda counts: counts.precision,
    "recall": lambda counts: counts.recall,
    "exact": lambda counts: counts.exact_match,
    "crossing": lambda counts: counts.average_crossing,
    "none crossing": lambda counts: counts.no_crossing,
    "<=2 crossing": lambda counts: counts.two_or_less_crossing,
}

Numbered = list[tuple[int, Tree]]  # trees, each with the line on which it begins


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    form = "in Penn bracketing, plain or .gz, one a line or each over several lines; - is the standard input."
    flags.DEFINE_string("gold", None, f"The trees that are right, {form}", flag_values=values)
    flags.DEFINE_string("predicted", None, f"Trees of the same sentences, {form}", flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return common.run(command_flags(), USAGE, _parseval, argv)


def _parseval(values: flags.FlagValues) -> None:
    check_one_standard_input(values, "gold", "predicted")
    gold, predicted = _trees(values, "gold"), _trees(values, "predicted")
    gold_name, predicted_name = name_of(values.gold), name_of(values.predicted)
    if len(gold) != len(predicted):
        raise T2TError(
            f"{gold_name} has {len(gold)} trees but {predicted_name} has {len(predicted)}; they must be "
            f"of the same sentences, {_parting(values, gold, predicted)}"
        )
    names = [
        f"tree {number} ({gold_name}, line {line}; {predicted_name}, line {our_line})"
        for number, ((line, _), (our_line, _)) in enumerate(zip(gold, predicted, strict=True), start=1)
    ]
    _print_table(score_corpus((tree for _, tree in gold), (tree for _, tree in predicted), names))


def _trees(values: flags.FlagValues, flag: str) -> Numbered:
    if not values[flag].value:
        raise T2TError(f"--{flag}=FILE is missing")
    where = name_of(values[flag].value)
    if values[flag].value == STANDARD_STREAM:
        trees = list(trees_in(read(STANDARD_STREAM), where))
    else:
        trees = list(numbered_trees(Path(where).expanduser()))
    if not trees:
        raise T2TError(f"{where}: there are no trees in it")
    return trees


def _parting(values: flags.FlagValues, gold: Numbered, predicted: Numbered) -> str:
    """Where two files of unequal numbers of trees cease to be of the same sentences."""
    for number, ((line, right), (our_line, ours)) in enumerate(zip(gold, predicted, strict=False), start=1):
        if right.leaves() != ours.leaves():
            return f"but tree {number} of the first (line {line}) and of the second (line {our_line}) are not"
    both = min(len(gold), len(predicted))
    longer, flag = (gold, "gold") if len(gold) > both else (predicted, "predicted")
    return f"but only {name_of(values[flag].value)} has a tree {both + 1} (line {longer[both][0]})"


def _print_table(result: Parseval) -> None:
    rows = {"all": result.overall, "<=40": result.up_to_40, **result.by_length}
    print("  ".join(["words", "sentences", *COLUMNS]))
    for name, counts in rows.items():
        if counts.sentences:
            print(_row(name, counts))
    if result.overall.skipped:
        print(f"sentences of punctuation alone, not counted: {result.overall.skipped}")


def _row(name: str, counts: Counts) -> str:
    numbers = (f"{value(counts):{len(title)}.2f}" for title, value in COLUMNS.items())
    return "  ".join([f"{name:5}", f"{counts.sentences:9}", *numbers])


if __name__ == "__main__":
    sys.exit(main())

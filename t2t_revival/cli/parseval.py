"""`t2t-parseval`: scores a file of predicted trees against a file of gold trees.

t2t-parseval --gold=FILE --predicted=FILE

Prints labelled F1, precision and recall of brackets, exact match and crossing brackets, as EVALB
computes them with COLLINS.prm: of all sentences, of those of at most 40 words, and by length.
Punctuation is recognised by the gold trees' tags; predicted trees need no tags. Sentences without a parse,
as "(())", "()" or a blank line, count in no measure, as in EVALB; their number is printed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, Flags, flag
from t2t_revival.cli.support.text_files import name_of, read_lines
from t2t_revival.errors import T2TError
from t2t_revival.utils.extras import require

if TYPE_CHECKING:
    from nltk.tree import Tree

    from t2t_revival.metrics.parseval import BracketCounts, Parseval

    NumberedTrees = list[tuple[int, Tree]]  # each with the line on which it begins
    Sentences = list[tuple[int, Tree | None]]  # likewise

COLUMNS: dict[str, Callable[[BracketCounts], float]] = {  # by title
    "    F1": lambda counts: counts.f1,
    "precision": lambda counts: counts.precision,
    "recall": lambda counts: counts.recall,
    "exact": lambda counts: counts.exact_match,
    "crossing": lambda counts: counts.average_crossing,
    "none crossing": lambda counts: counts.no_crossing,
    "<=2 crossing": lambda counts: counts.two_or_less_crossing,
}


FORM = "in Penn bracketing, plain or .gz, one a line or each over several lines; - is the standard input."


@dataclass(frozen=True)
class ParsevalFlags(Flags):
    gold: str = flag("", f"Correct trees, {FORM}", missing="=FILE is missing", file=READ)
    predicted: str = flag("", f"Trees of the same sentences, {FORM}", missing="=FILE is missing", file=READ)


def _parseval(flags: ParsevalFlags) -> None:
    """Prints the scores of the predicted trees."""
    require("nltk", "t2t-parseval")
    from t2t_revival.metrics.parseval import score_corpus

    gold_name, predicted_name = name_of(flags.gold), name_of(flags.predicted)
    gold, all_gold = _trees(read_lines(flags.gold, "gold"), gold_name)
    predicted, all_predicted = _trees(read_lines(flags.predicted, "predicted"), predicted_name)
    pairs = [pair for pair in product(all_gold, all_predicted) if len(pair[0]) == len(pair[1])]
    if not pairs:
        difference = _first_difference(gold, predicted, gold_name, predicted_name)
        raise T2TError(
            f"{gold_name} has {len(gold)} trees but {predicted_name} has {len(predicted)}; they must be of "
            f"the same sentences, {difference}"
        )
    both = [(ours, theirs) for ours, theirs in zip(*pairs[0], strict=True) if ours[1] or theirs[1]]
    names = [
        f"tree {number} ({gold_name}, line {line}; {predicted_name}, line {our_line})"
        for number, ((line, _), (our_line, _)) in enumerate(both, start=1)
    ]
    _print_table(score_corpus((right for (_, right), _ in both), (tree for _, (_, tree) in both), names))


def _trees(lines: list[str], name: str) -> tuple[NumberedTrees, list[Sentences]]:
    """Reads the trees in the lines of a file.

    Returns:
        The trees; and what may be its sentences: all lines and trees, those without blank lines, which may
        separate trees, and those with a tree.
    """
    from t2t_revival.parsing.trees import sentences_in

    sentences = list(sentences_in(lines, name))
    trees = [(number, tree) for number, tree in sentences if tree is not None]
    if not trees:
        raise T2TError(f"{name}: contains no trees")
    return trees, [sentences, [each for each in sentences if lines[each[0] - 1].strip()], [*trees]]


def _first_difference(
    gold: NumberedTrees, predicted: NumberedTrees, gold_name: str, predicted_name: str
) -> str:
    """Describes the first trees of different sentences in two files of unequal numbers of trees."""
    for number, ((line, right), (our_line, ours)) in enumerate(zip(gold, predicted, strict=False), start=1):
        if right.leaves() != ours.leaves():
            return f"but tree {number} of the first (line {line}) and of the second (line {our_line}) are not"
    both = min(len(gold), len(predicted))
    longer, name = (gold, gold_name) if len(gold) > both else (predicted, predicted_name)
    return f"but only {name} has a tree {both + 1} (line {longer[both][0]})"


def _print_table(result: Parseval) -> None:
    rows = {"all": result.overall, "<=40": result.up_to_40, **result.by_length}
    print("  ".join(["words", "sentences", *COLUMNS]))
    for name, counts in rows.items():
        if counts.sentences:
            cells = (f"{value(counts):{len(title)}.2f}" for title, value in COLUMNS.items())
            print("  ".join([f"{name:5}", f"{counts.sentences:9}", *cells]))
    if result.overall.skipped:
        print(f"sentences of punctuation alone, not counted: {result.overall.skipped}")
    if errors := result.overall.errors:
        f1 = result.overall.f1_with_errors
        print(f"sentences without a tree, not counted, as in EVALB: {errors} (F1 if they were: {f1:.2f})")


main = Command(ParsevalFlags, _parseval, __doc__)

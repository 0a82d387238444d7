"""Agreement with other scorers, sentence by sentence: PYEVALB, EVALB if installed, and brute force.

    pytest -s tests/metrics/test_parseval_agreement.py

prints how many pairs of trees agree. Pairs are of a tree and of a copy of it with random changes. Trees are
random ones and, where there are any, those of the folder of treebanks in T2T_TREEBANKS, else of
shared/data/treebanks beside the checkout.

PYEVALB has fewer rules than EVALB: it deletes nothing, knows no equal labels, cuts no function tags, and
makes sets of brackets. So it is given trees that are changed by EVALB's rules first (`by_rules`), and each
rule's share in the disagreements is measured by leaving it out.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Collection
from itertools import islice
from pathlib import Path

import pytest
from nltk.tree import Tree

from t2t_revival.metrics.parseval import BracketCounts, Parseval, score, score_corpus
from t2t_revival.parsing.trees import cleaned, read_trees
from tests.support.evalb_rules import (
    RULES,
    Counted,
    by_rules,
    deleted_words,
    perturbed,
    random_tree,
    reference,
    untagged,
)

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

BESIDE = Path(__file__).parents[3] / "shared" / "data" / "treebanks"
TREEBANKS = Path(os.environ.get("T2T_TREEBANKS", BESIDE))
SUFFIXES = {".mrg", ".tree", ".ptb"}
RANDOM_TREES = 500
REAL_TREES = 3000
CHANGES = (0, 1, 2, 4, 8, 16)  # as many to each copy, in turn
EVALB = shutil.which("evalb")
COLLINS = """DEBUG 0
MAX_ERROR 0
CUTOFF_LEN 40
LABELED 1
DELETE_LABEL TOP
DELETE_LABEL -NONE-
DELETE_LABEL ,
DELETE_LABEL :
DELETE_LABEL ``
DELETE_LABEL ''
DELETE_LABEL .
DELETE_LABEL_FOR_LENGTH -NONE-
EQ_LABEL ADVP PRT
"""

Pair = tuple[Tree, Tree]


def changed(trees: list[Tree], source: random.Random) -> list[Pair]:
    return [(tree, perturbed(tree, source, CHANGES[i % len(CHANGES)])) for i, tree in enumerate(trees)]


def random_pairs() -> list[Pair]:
    source = random.Random(1)
    trees = (cleaned(random_tree(source, source.randint(1, 60))) for _ in range(RANDOM_TREES))
    return changed([tree for tree in trees if tree is not None], source)


def real_pairs() -> list[Pair]:
    files = sorted(path for path in TREEBANKS.rglob("*") if path.suffix in SUFFIXES)
    if not files:
        pytest.skip("no treebanks: T2T_TREEBANKS names a folder of .mrg, .tree or .ptb files")
    source = random.Random(2)
    source.shuffle(files)
    trees = (tree for path in files for tree in read_trees(path))
    return changed(list(islice(trees, REAL_TREES)), source)


@pytest.fixture(scope="module", params=[random_pairs, real_pairs], ids=["random", "real"])
def pairs(request: pytest.FixtureRequest) -> list[Pair]:
    return request.param()


def counted(counts: BracketCounts) -> Counted:
    return counts.gold, counts.predicted, counts.matched, counts.crossing


def line(tree: Tree) -> str:
    return " ".join(tree.pformat(margin=sys.maxsize).split())  # not `str`, which tries to fit each subtree


def measures(found: Counted) -> tuple[float, float, int]:
    """Precision, recall, crossing."""
    gold, predicted, matched, crossing = found
    return matched / predicted if predicted else 0.0, matched / gold if gold else 0.0, crossing


def agree(found: Counted, ours: Counted) -> bool:
    return found == ours and measures(found) == pytest.approx(measures(ours), abs=1e-9)


def pyevalb(gold: Tree, predicted: Tree) -> Counted:
    from PYEVALB import parser, scorer

    trees = [parser.create_from_bracket_string(line(tree)) for tree in (gold, predicted)]
    found = scorer.Scorer().score_trees(*trees)
    result = found.gold_brackets, found.test_brackets, found.matched_brackets, found.cross_brackets
    assert (found.prec, found.recall, found.cross_brackets) == pytest.approx(measures(result), abs=1e-9)
    return result


def pyevalb_by_rules(gold: Tree, predicted: Tree, rules: Collection[str]) -> Counted:
    """PYEVALB on changed trees, without the ROOT that both have."""
    deleted = deleted_words(gold)
    found = pyevalb(by_rules(gold, deleted, rules), by_rules(predicted, deleted, rules))
    return found[0] - 1, found[1] - 1, found[2] - 1, found[3]


def test_pyevalb(pairs: list[Pair], request: pytest.FixtureRequest) -> None:
    pytest.importorskip("PYEVALB")
    scored = [(gold, predicted, score(gold, untagged(predicted))) for gold, predicted in pairs]
    kept = [(gold, predicted, counted(counts)) for gold, predicted, counts in scored if counts.sentences]
    assert all(agree(pyevalb_by_rules(*pair, RULES), ours) for *pair, ours in kept)
    others = [(*pair, ours) for *pair, ours in kept if not agree(pyevalb(*pair), ours)]
    print(f"\n{request.node.name}: {len(kept)} pairs, {len(scored) - len(kept)} more are punctuation alone")
    print(f"  as it is, PYEVALB agrees on {len(kept) - len(others)}; after EVALB's rules, on all")
    for rule in RULES:
        rest = [other for other in RULES if other != rule]
        number = sum(not agree(pyevalb_by_rules(*pair, rest), ours) for *pair, ours in others)
        print(f"  of {len(others)} disagreements, {number} come back without the rule {rule!r} alone")
        assert number


def test_brute_force(pairs: list[Pair]) -> None:
    for gold, predicted in pairs:
        counts = score(gold, untagged(predicted))
        assert counts.skipped or counted(counts) == reference(gold, predicted)


@pytest.mark.skipif(not EVALB, reason="evalb is not on PATH")
def test_evalb(pairs: list[Pair], tmp_path: Path) -> None:
    """Compares every sentence's counts, and both summaries to the two decimals that EVALB prints."""
    small = [pair for pair in pairs if all(fits(tree) for tree in pair)]
    rows, summaries = evalb(small, tmp_path)
    ours = [score(gold, untagged(predicted)) for gold, predicted in small]
    for row, counts in zip(rows, ours, strict=True):
        matched, gold, predicted, crossing = map(int, row[5:9])
        assert int(row[1]) == counts.words
        assert int(row[2]) == (2 if counts.skipped else 0)
        assert counts.skipped or (gold, predicted, matched, crossing) == counted(counts)
    result = score_corpus(*zip(*small, strict=True))
    assert summaries == pytest.approx(figures(result), abs=0.005 + 1e-9)
    print(f"\n{len(small)} pairs: EVALB counts the same in each, and sums up the same")


def fits(tree: Tree) -> bool:
    """Returns whether a pair fits EVALB's arrays."""
    brackets = sum(not isinstance(node[0], str) for node in tree.subtrees())
    return len(line(tree)) < 4900 and len(tree.leaves()) < 200 and brackets < 200


def evalb(pairs: list[Pair], folder: Path) -> tuple[list[list[str]], list[float]]:
    """Runs EVALB; returns its rows and the figures of its two summaries. Predicted trees have gold's tags."""
    assert EVALB
    texts = {"gold": [line(gold) for gold, _ in pairs], "test": [line(ours) for _, ours in pairs]}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    (folder / "COLLINS.prm").write_text(COLLINS, encoding="utf-8")
    command = [EVALB, "-p", "COLLINS.prm", "gold", "test"]
    output = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=True).stdout.decode()
    table, _, summary = output.partition("=== Summary ===")
    rows = [row.split() for row in table.splitlines()[3:] if len(row.split()) == 12]
    return rows, [
        float(row.partition("=")[2]) for row in summary.splitlines() if "  = " in row or "= " in row
    ]


def figures(result: Parseval) -> list[float]:
    """EVALB's summaries; its tagging accuracy is 100, as the tags are gold's."""
    return [
        figure
        for counts in (result.overall, result.up_to_40)
        for figure in (
            counts.sentences + counts.skipped,
            0,
            counts.skipped,
            counts.sentences,
            counts.recall,
            counts.precision,
            counts.f1,
            counts.exact_match,
            counts.average_crossing,
            counts.no_crossing,
            counts.two_or_less_crossing,
            100,
        )
    ]

"""Agreement with other scorers, sentence by sentence: PYEVALB, EVALB if installed, and brute force.

    pytest -s tests/metrics/test_parseval_agreement.py

prints how many pairs of trees agree. Pairs are of a tree and of a copy of it with random changes. Trees are
random ones and, where there are any, those of the folder of treebanks in T2T_TREEBANKS, else of
shared/data/treebanks beside the checkout.

PYEVALB has fewer rules than EVALB: it deletes nothing, knows no equal labels, cuts no function tags, and
makes sets of brackets. So it is given trees that are changed by EVALB's rules first (`by_rules`).
"""

import os
import random
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from nltk.tree import Tree

from t2t_revival.metrics.parseval import BracketCounts, score
from t2t_revival.parsing.trees import cleaned, read_trees
from tests.support.evalb_rules import (
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


def pyevalb(gold: Tree, predicted: Tree) -> Counted:
    """PYEVALB on trees changed by EVALB's rules, without the ROOT that both have."""
    from PYEVALB import parser, scorer

    deleted = deleted_words(gold)
    trees = [parser.create_from_bracket_string(line(by_rules(tree, deleted))) for tree in (gold, predicted)]
    found = scorer.Scorer().score_trees(*trees)
    return found.gold_brackets - 1, found.test_brackets - 1, found.matched_brackets - 1, found.cross_brackets


def test_pyevalb(pairs: list[Pair]) -> None:
    pytest.importorskip("PYEVALB")
    scored = [(*pair, score(pair[0], untagged(pair[1]))) for pair in pairs]
    kept = [(gold, predicted, counted(counts)) for gold, predicted, counts in scored if counts.sentences]
    assert all(pyevalb(gold, predicted) == ours for gold, predicted, ours in kept)
    print(f"\n{len(kept)} pairs agree, {len(scored) - len(kept)} more are punctuation alone")


def test_brute_force(pairs: list[Pair]) -> None:
    for gold, predicted in pairs:
        counts = score(gold, untagged(predicted))
        assert counts.skipped or counted(counts) == reference(gold, predicted)


@pytest.mark.skipif(not EVALB, reason="evalb is not on PATH")
def test_evalb(pairs: list[Pair], tmp_path: Path) -> None:
    small = [pair for pair in pairs if all(fits(tree) for tree in pair)]
    for row, (gold_tree, tree) in zip(evalb(small, tmp_path), small, strict=True):
        counts = score(gold_tree, untagged(tree))
        matched, gold, predicted, crossing = map(int, row[5:9])
        assert int(row[1]) == counts.words
        assert int(row[2]) == (2 if counts.skipped else 0)
        assert counts.skipped or (gold, predicted, matched, crossing) == counted(counts)


def fits(tree: Tree) -> bool:
    """Returns whether a pair fits EVALB's arrays."""
    brackets = sum(not isinstance(node[0], str) for node in tree.subtrees())
    return len(line(tree)) < 4900 and len(tree.leaves()) < 200 and brackets < 200


def evalb(pairs: list[Pair], folder: Path) -> list[list[str]]:
    """Runs EVALB; returns its rows. Predicted trees have gold's tags."""
    assert EVALB
    texts = {"gold": [line(gold) for gold, _ in pairs], "test": [line(ours) for _, ours in pairs]}
    for name, lines in texts.items():
        (folder / name).write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")
    (folder / "COLLINS.prm").write_text(COLLINS, encoding="utf-8")
    command = [EVALB, "-p", "COLLINS.prm", "gold", "test"]
    output = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=True).stdout.decode()
    table = output.partition("=== Summary ===")[0]
    return [row.split() for row in table.splitlines()[3:] if len(row.split()) == 12]

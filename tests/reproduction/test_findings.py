"""Findings of section 6.2: the rows compared, and the verdicts."""

import pytest

from t2t_revival import registry
from t2t_revival.metrics.significance import Compared
from t2t_revival.reproduction.table3 import (
    FAILS,
    FINDINGS,
    HOLDS,
    ROWS,
    UNDECIDED,
    Finding,
    verdict,
)

BASE = Compared(30.0, 0.5, None)
WORSE, BETTER, EQUAL = Finding("", "row", -1), Finding("", "row", 1), Finding("", "row", 0)


@pytest.mark.parametrize(
    ("finding", "bleu", "p", "expected"),
    [
        (WORSE, 28.0, 0.001, HOLDS),
        (WORSE, 32.0, 0.001, FAILS),
        (WORSE, 29.5, 0.2, UNDECIDED),
        (BETTER, 32.0, 0.001, HOLDS),
        (BETTER, 28.0, 0.001, FAILS),
        (BETTER, 30.2, 0.2, UNDECIDED),
        (EQUAL, 30.4, 0.01, HOLDS),
        (EQUAL, 28.0, 0.001, FAILS),
        (EQUAL, 29.0, 0.2, UNDECIDED),
    ],
)
def test_a_finding_holds_if_the_difference_is_of_its_kind(finding, bleu, p, expected) -> None:
    assert verdict(finding, BASE, Compared(bleu, 0.5, p)) == expected


def test_findings_are_the_papers() -> None:
    for finding in FINDINGS:
        difference = ROWS[finding.row].bleu - ROWS["base"].bleu
        if finding.direction:
            assert difference * finding.direction > 0, finding
        else:
            assert abs(difference) < 0.11


def test_rows_are_all_of_the_papers_sets() -> None:
    assert set(ROWS) == {"base", "big"} | {n for n in registry.list_hparams() if n.startswith("table3_")}

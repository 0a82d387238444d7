"""The recommended checkpoint, and the reason."""

import math
import random

import pytest

from t2t_revival import registry
from t2t_revival.evaluation.checkpoint_evaluation import Evaluation, best_checkpoint
from t2t_revival.metrics.bleu import sacrebleu_score

PROBLEM = registry.problem("translate_ende")
DRAW = random.Random(3)
REFERENCES = [" ".join(DRAW.choices([f"w{i}" for i in range(60)], k=12)) for _ in range(40)]


def outputs(wrong: int, places: tuple[int, ...] = (2, 7)) -> list[str]:
    """References with errors at some places of the first `wrong` lines."""
    lines = [line.split() for line in REFERENCES]
    for line in lines[:wrong]:
        for place in places:
            line[place] = "x"
    return [" ".join(line) for line in lines]


def row(step: int, loss: float, lines: list[str] | None = None, bleu: float = 0.0) -> Evaluation:
    name = f"model.ckpt-{step}.npz"
    score = sacrebleu_score(lines, REFERENCES).score if lines else bleu
    return Evaluation(step, name, "w", "s", {"loss": loss, "bleu": score})


def no_outputs(_: Evaluation) -> None:
    """No row has any."""


def choose(**decoded: tuple[float, list[str]]) -> tuple[int, str]:
    """The step and the reason, of steps s1, s2, ... with their losses and outputs."""
    rows = [row(int(name[1:]), *found) for name, found in decoded.items()]
    lines = {one.checkpoint: found[1] for one, found in zip(rows, decoded.values(), strict=True)}
    best, reason = best_checkpoint(rows, PROBLEM, lambda row: lines[row.checkpoint], REFERENCES, "de")
    return best.step, reason


def test_bleu_decides_where_it_tells_them_apart() -> None:
    step, reason = choose(s1=(1.0, outputs(35)), s2=(1.2, outputs(5)))
    assert step == 2
    assert reason == f"best BLEU: step 2, {sacrebleu_score(outputs(5), REFERENCES).score:.2f}"


def test_the_loss_decides_within_the_noise() -> None:
    step, reason = choose(s1=(1.0, outputs(11)), s2=(1.2, outputs(10, (3, 8))))
    assert step == 1
    assert reason.startswith("lowest loss: step 1, 1 (BLEU does not decide: ")
    assert " at step 2 and " in reason
    assert " here are within the noise of 40 sentences, p = 0." in reason


def test_the_loss_decides_among_the_best_alone() -> None:
    """The lowest loss of all has a BLEU that is worse for certain."""
    step, reason = choose(
        s1=(1.0, outputs(35)),
        s2=(1.2, outputs(10, (3, 8))),
        s3=(1.1, outputs(11)),
        s4=(1.3, outputs(10, (4, 9))),
    )
    assert step == 3
    assert reason.startswith("lower loss: step 3, 1.1 (BLEU does not decide: ")


def test_a_bleu_below_1_does_not_decide() -> None:
    rows = [row(100, 6.5, bleu=0.29), row(200, 5.9, bleu=0.11), row(300, 6.1, bleu=0.0)]
    best, reason = best_checkpoint(rows, PROBLEM, no_outputs, REFERENCES, "de")
    assert best.step == 200
    assert reason == (
        "lowest loss: step 200, 5.9 (BLEU does not decide: the best, 0.29 at step 100, is below 1)"
    )


def test_without_outputs_the_score_decides() -> None:
    rows = [row(100, 1.0, bleu=20.0), row(200, 1.1, bleu=20.1)]
    assert best_checkpoint(rows, PROBLEM, no_outputs, [], "de") == (rows[1], "best BLEU: step 200, 20.10")


@pytest.mark.parametrize("losses", [(math.nan, 2.0), (3.0, 2.0)])
def test_nothing_decoded(losses: tuple[float, float]) -> None:
    rows = [
        Evaluation(step, "c", "w", "s", {"loss": loss}) for step, loss in zip((1, 2), losses, strict=True)
    ]
    assert best_checkpoint(rows, PROBLEM, no_outputs, [], "de") == (rows[1], "lowest loss: step 2, 2")


def test_a_loss_that_is_no_number_decides_nothing() -> None:
    assert choose(s1=(math.nan, outputs(11)), s2=(1.2, outputs(10, (3, 8))))[0] == 2


@pytest.mark.parametrize(
    ("metric", "step"), [("loss", 1), ("accuracy", 3), ("chrf", 2), ("bleu/news", 2), ("bleu", 2)]
)
def test_the_runs_metric_decides(metric: str, step: int) -> None:
    rows = []
    for number, bleu in ((1, 20.0), (2, 30.0), (3, 25.0)):
        scores = {"loss": float(number), "accuracy": number, "bleu": bleu, "bleu/news": bleu, "chrf": bleu}
        rows.append(Evaluation(number, f"model.ckpt-{number}.npz", "w", "s", scores))
    best, reason = best_checkpoint(rows, PROBLEM, no_outputs, [], "de", metric)
    assert best.step == step
    assert (f"best {metric}, the training's metric: step {step}, " in reason) == (metric != "bleu")

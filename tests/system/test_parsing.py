"""From the sample grammar's trees to parses and F1, by the commands that a user types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.commands import run

pytestmark = pytest.mark.slow
QUICK = "batch_size=1024,learning_rate_warmup_steps=100,layer_prepostprocess_dropout=0.0"


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    place = tmp_path_factory.mktemp("parsing")
    return [
        "--problem=parse_wsj",
        "--hparams_set=tiny",
        f"--data_dir={place / 'data'}",
        f"--output_dir={place / 'model'}",
    ]


@pytest.fixture(scope="module")
def trained(flags: list[str]) -> str:
    """Messages of 200 updates of `tiny` on small batches of the sample's trees."""
    sizes = [
        f"--hparams=deterministic_attention=True,{QUICK}",
        "--train_steps=200",
        "--local_eval_frequency=100",
        "--eval_bleu_sentences=40",
    ]
    return run("t2t-trainer", *flags, "--data_source=sample", *sizes).stderr


def scored(flags: list[str], *options: str) -> tuple[float, str]:
    """F1 on dev, and what is said about repairs."""
    done = run("t2t-decoder", *flags, *options)
    score = re.search(r"F1 (\d+\.\d+) on dev, 500 sentences", done.stdout)
    assert score is not None, done.stdout
    return float(score[1]), done.stderr


@pytest.fixture(scope="module")
def constrained(
    trained: str, flags: list[str], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, float, str]:
    """The dev split, parsed with a beam of 4: file, F1, and what is said."""
    outputs = tmp_path_factory.mktemp("constrained") / "dev.trees"
    return outputs, *scored(flags, f"--decode_to_file={outputs}", "--decode_hparams=beam_size=4")


@pytest.mark.nightly
def test_trees_are_learned_and_no_output_needs_repair(
    trained: str, constrained: tuple[Path, float, str]
) -> None:
    assert len(re.findall(r"f1 \d+", trained)) == 2
    outputs, f1, said = constrained
    assert f1 > 70
    assert "repaired" not in said
    measured = run("t2t-parseval", f"--predicted={outputs}", f"--gold={outputs}.targets")
    assert f"{f1:.2f}" in measured.stdout


@pytest.mark.nightly
def test_a_constrained_beam_is_better_than_repair(
    constrained: tuple[Path, float, str], flags: list[str], tmp_path: Path
) -> None:
    free = "--decode_hparams=beam_size=4,constrained=False"
    repaired, _ = scored(flags, f"--decode_to_file={tmp_path / 'b'}", free)
    assert constrained[1] > repaired - 0.5

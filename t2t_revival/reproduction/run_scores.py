"""Table 2: BLEU or F1 of a training, over a whole split."""

from __future__ import annotations

import sys
from pathlib import Path

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import Measure, measure_of
from t2t_revival.problems.problem import DEV, TEST, Text2TextProblem
from t2t_revival.reproduction.kept import Kept
from t2t_revival.reproduction.runs import Outputs
from t2t_revival.split_scores import CheckpointScores
from t2t_revival.training.checkpoint_file import fingerprint
from t2t_revival.training.checkpoints import Checkpoint
from t2t_revival.training.run import Run

ALL = sys.maxsize


def score(output_dir: Path, checkpoint: Checkpoint, kept: Kept) -> str | None:
    """BLEU of translations or F1 of trees, as in "BLEU 34.56 (test)"; None: neither, or no data to decode.

    The test split, or dev where there is none. What t2t-reproduce has decoded is not decoded again.

    Args:
        output_dir: of the training.
        checkpoint: what decodes.
        kept: gets the score, so that it is measured once.

    Raises:
        T2TError: output_dir is damaged.
    """
    run = Run.load(output_dir)
    problem = registry.problem(run.problem)
    measure = measure_of(problem)
    if measure is None or not isinstance(problem, Text2TextProblem):
        return None
    if found := _of_outputs(output_dir, measure):
        return found
    split = _split(problem, Path(run.data_dir))
    if split is None:
        return None

    def decode() -> float:
        scores = CheckpointScores(output_dir, problem, split, Path(run.data_dir), ALL)
        return scores(checkpoint.path)[measure.metric]

    what = f"{measure.title} of {split}, weights {fingerprint(checkpoint.path)}"
    return _shown(measure, kept.value(what, decode), split)


def _of_outputs(output_dir: Path, measure: Measure) -> str | None:
    """By the files that `Runs.outputs` makes: of the average, where there is one."""
    for split in (TEST, DEV):
        for name in (f"{split}-average", split):
            stem = output_dir / "decoded" / name
            outputs = Outputs(stem.with_suffix(".outputs"), stem.with_suffix(".targets"))
            if outputs.outputs.exists() and outputs.references.exists():
                return _shown(measure, measure.score(*outputs.lines()).score, split)
    return None


def _split(problem: Text2TextProblem, data_dir: Path) -> str | None:
    try:
        splits = problem.metadata(data_dir).splits
    except T2TError:
        return None
    return next((split for split in (TEST, DEV) if split in splits), None)


def _shown(measure: Measure, value: float, split: str) -> str:
    return f"{measure.title} {value:.2f} ({split})"

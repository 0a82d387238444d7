"""Evaluation of the checkpoints of a training, as `t2t-eval` runs it: each is scored once."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints import directory
from t2t_revival.checkpoints.best import list_best
from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.checkpoints.file import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    fingerprint,
)
from t2t_revival.checkpoints.selection import NAMES, NEWEST, candidates, select_checkpoint
from t2t_revival.curve_files import lower_is_better
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.checkpoint_scores import Evaluation, Evaluations, settings_fingerprint
from t2t_revival.evaluation.decoded import tokenizer_setting
from t2t_revival.model_folder import ModelFolder

if TYPE_CHECKING:
    from t2t_revival.evaluation.decoded import Metric
    from t2t_revival.problems.text_problems import Text2TextProblem
    from t2t_revival.training.events import Scores

DECODED = {"bleu", "chrf", "f1"}  # metrics of decoded outputs
LEAST_SCORE = 1.0  # lower values of BLEU or F1 do not tell models apart
MOST_COMPARED = 10  # checkpoints; each bootstrap takes about a second
ScoreCheckpoint = Callable[[Path], tuple["Scores", list[str]]]  # `CheckpointScores`, or a function like it


def evaluation_settings(
    folder: ModelFolder,
    problem: Text2TextProblem,
    split: str,
    data_dir: Path,
    decoded_sentences: int,
    engine: str = "",
) -> str:
    """Fingerprints everything that scores depend on besides the weights.

    `engine` names the engine that decodes, and its precision; it is empty for TensorFlow in float32.

    Raises:
        T2TError: the split is missing or corrupt.
    """
    metadata = problem.metadata(data_dir)
    problem.shards(split, data_dir)
    return settings_fingerprint(
        data=dataclasses.asdict(metadata.splits[split]),
        source=metadata.source,
        decode_hparams=folder.run.decode_hparams,
        decoded_sentences=decoded_sentences,
        **({"engine": engine} if engine else {}),
        **tokenizer_setting(problem),
    )


def checkpoint_lister(output_dir: Path, checkpoint: str | None) -> Callable[[], list[Checkpoint]]:
    """Returns a function that lists the checkpoints to evaluate.

    `checkpoint` is a file, a folder, or one of `selection.NAMES`; `None` takes all of the training's.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    if not checkpoint:
        return lambda: _all(output_dir)
    if checkpoint in NAMES:
        kept = slice(1) if checkpoint == NEWEST else slice(None)
        return lambda: sorted(candidates(output_dir, checkpoint)[kept])
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        return lambda: directory.list_checkpoints(folder)
    checkpoints = [select_checkpoint(output_dir, checkpoint)]
    return lambda: checkpoints


def _all(output_dir: Path) -> list[Checkpoint]:
    """The checkpoints of a training, the best among them, and its averages, oldest first."""
    kept = {checkpoint.step: checkpoint for checkpoint in list_best(output_dir)}
    kept |= {checkpoint.step: checkpoint for checkpoint in directory.list_checkpoints(output_dir)}
    return sorted([*kept.values(), *directory.list_averaged(output_dir)])


def evaluate_checkpoints(
    checkpoints: Iterable[Checkpoint],
    table: Evaluations,
    make_scorer: Callable[[], ScoreCheckpoint],
    on_start: Callable[[Checkpoint, float], None],
    on_skipped: Callable[[Checkpoint, T2TError], None],
) -> Iterator[Evaluation]:
    """Scores checkpoints that have no row in a table yet, and adds their rows.

    Args:
        checkpoints: in the order of their evaluation.
        table: rows of earlier calls, and of this one.
        make_scorer: makes the function that scores; called for the first checkpoint without a row.
        on_start: called before a checkpoint is scored, with the seconds that the last one took, 0 for the
            first.
        on_skipped: called with a checkpoint that is corrupt or was removed, and the error.

    Yields:
        The row of each checkpoint that could be scored.
    """
    score: ScoreCheckpoint | None = None
    seconds = 0.0
    for checkpoint in checkpoints:
        try:
            weights = fingerprint(checkpoint.path)
            row = _find(table, checkpoint.path, weights)
            if row is None:
                on_start(checkpoint, seconds)
                began = time.monotonic()
                score = score or make_scorer()
                scores, outputs = score(checkpoint.path)
                seconds = time.monotonic() - began
                row = table.add(checkpoint.step, checkpoint.path, weights, scores)
                if outputs:
                    table.save_outputs(row, outputs)
        except (CorruptCheckpointError, CheckpointNotFoundError) as error:
            on_skipped(checkpoint, error)
            continue
        yield row


def best_checkpoint(
    rows: Sequence[Evaluation],
    metric: Metric | None,
    outputs: Mapping[str, Sequence[str] | None],
    references: Sequence[str],
    run_metric: str = "",
) -> tuple[Evaluation, str]:
    """Selects the best row, and gives the reason in one line.

    BLEU or F1 decides if it is at least 1 and tells checkpoints apart: of those whose difference from the
    best is within the noise of the sample, by paired bootstrap, the one with the lowest loss is selected.
    Another metric of the run decides alone.

    Args:
        rows: at least one.
        metric: of the decoded outputs; `None` lets the loss decide.
        outputs: decoded outputs by the checkpoint of their row; rows without any, or with those of another
            number of sentences, are not compared.
        references: of the outputs.
        run_metric: the score by which the training chose its best; empty leaves the choice to `metric`.
    """
    measured = [row for row in rows if not math.isnan(row.scores.get(run_metric, math.nan))]
    if measured and not (metric and run_metric == metric.name):
        sign = 1 if lower_is_better(run_metric) else -1
        first = min(measured, key=lambda row: sign * row.scores[run_metric])
        return (
            first,
            f"best {run_metric}, the training's metric: {_name(first)}, {first.scores[run_metric]:.4g}",
        )
    decoded = [row for row in rows if metric and metric.name in row.scores]
    if not (metric and decoded):
        lowest = min(rows, key=_by_loss)
        return lowest, _loss(lowest)
    best = max(decoded, key=lambda row: row.scores[metric.name])
    score = best.scores[metric.name]
    if score < LEAST_SCORE:
        lowest = min(decoded, key=_by_loss)
        worth = f"the best, {score:.2f} at {_name(best)}, is below {LEAST_SCORE:g}"
        return lowest, f"{_loss(lowest)} ({metric.title} does not decide: {worth})"
    for rank, row in enumerate(_lower_losses(decoded, best)):
        both = {name: outputs.get(name) or () for name in (best.checkpoint, row.checkpoint)}
        if not references or any(len(lines) != len(references) for lines in both.values()):
            continue
        compared = metric.compare(both, references)[row.checkpoint]
        if not compared.significant:
            noise = f"within the noise of {len(references)} sentences, p = {compared.p:.2f}"
            worth = f"{score:.2f} at {_name(best)} and {compared.score:.2f} here are {noise}"
            loss = _loss(row, "lower" if rank else "lowest")
            return row, f"{loss} ({metric.title} does not decide: {worth})"
    return best, f"best {metric.title}: {_name(best)}, {score:.2f}"


def _find(table: Evaluations, path: Path, weights: str) -> Evaluation | None:
    """The row of an earlier call; `None` where its decoded outputs are missing, which are compared."""
    row = table.find(path, weights)
    if row and DECODED.intersection(row.scores) and table.outputs(row) is None:
        return None
    return row


def _lower_losses(rows: Sequence[Evaluation], best: Evaluation) -> list[Evaluation]:
    """Rows of lower loss than the best by score, the lowest first; at most `MOST_COMPARED`."""
    return sorted((row for row in rows if _by_loss(row) < _by_loss(best)), key=_by_loss)[:MOST_COMPARED]


def _by_loss(row: Evaluation) -> tuple[bool, float]:
    return math.isnan(row.scores["loss"]), row.scores["loss"]


def _loss(row: Evaluation, rank: str = "lowest") -> str:
    return f"{rank} loss: {_name(row)}, {row.scores['loss']:.4g}"


def _name(row: Evaluation) -> str:
    return f"step {row.step} (average)" if row.averaged else f"step {row.step}"

"""Evaluation of the checkpoints of a training, as `t2t-eval` runs it: each is scored once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.errors import T2TError
from t2t_revival.evaluation.best_checkpoint import best_checkpoint
from t2t_revival.evaluation.checkpoint_scores import Evaluation, Evaluations, settings_fingerprint
from t2t_revival.evaluation.decoded import metric_for
from t2t_revival.hints import datagen_command
from t2t_revival.training.checkpoints import directory
from t2t_revival.training.checkpoints.directory import Checkpoint
from t2t_revival.training.checkpoints.file import (
    CheckpointNotFoundError,
    CorruptCheckpointError,
    fingerprint,
)
from t2t_revival.training.run import IMPORTED_DATA, Run

if TYPE_CHECKING:
    from t2t_revival.problems.text_problems import Text2TextProblem
    from t2t_revival.training.events import Scores

DECODED = {"bleu", "f1"}  # metrics of decoded outputs
ScoreCheckpoint = Callable[[Path], tuple["Scores", list[str]]]  # `CheckpointScores`, or a function like it


def evaluation_settings(
    problem: Text2TextProblem, run: Run, output_dir: Path, split: str, data_dir: Path, decoded_sentences: int
) -> str:
    """Fingerprints everything that scores depend on besides the weights.

    Args:
        problem: of the run.
        run: the training.
        output_dir: of the training.
        split: "dev" or "test".
        data_dir: folder of the split.
        decoded_sentences: sentences that are decoded for BLEU or F1.

    Raises:
        T2TError: the data has another vocabulary than the model, or the split is missing or damaged.
    """
    metadata = problem.metadata(data_dir)
    if metadata.vocab_fingerprint != run.fingerprint:
        other = output_dir / IMPORTED_DATA
        raise T2TError(
            f"{data_dir} was made with another vocabulary than that of the model in {output_dir}: give the "
            f"--data_dir that it was trained from, or --data_dir={other}, which this command makes: "
            + datagen_command(problem, other, output_dir / run.vocabulary)
        )
    problem.shards(split, data_dir)
    return settings_fingerprint(
        data=dataclasses.asdict(metadata.splits[split]),
        source=metadata.source,
        decode_hparams=run.decode_hparams,
        decoded_sentences=decoded_sentences,
    )


def checkpoint_lister(output_dir: Path, checkpoint_path: str | None) -> Callable[[], list[Checkpoint]]:
    """Returns a function that lists the checkpoints to evaluate.

    Args:
        output_dir: of the training.
        checkpoint_path: a checkpoint's file or a folder of them; `None` takes all of the training's, and its
            averages.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    if not checkpoint_path:
        return lambda: sorted(directory.list_checkpoints(output_dir) + directory.list_averaged(output_dir))
    folder = Path(checkpoint_path).expanduser()
    if folder.is_dir():
        return lambda: directory.list_checkpoints(folder)
    checkpoints = [directory.select_checkpoint(output_dir, checkpoint_path)]
    return lambda: checkpoints


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


def recommend_checkpoint(
    rows: list[Evaluation], table: Evaluations, problem: Text2TextProblem, references: list[str]
) -> tuple[Evaluation, str]:
    """Recommends the best of some rows; see `best_checkpoint`.

    Args:
        rows: at least one row of `table`.
        table: has their decoded outputs.
        problem: whose metric decides.
        references: of the decoded outputs.

    Returns:
        The row, and the reason in one line.
    """
    decoded = {row.checkpoint: table.outputs(row) or [] for row in rows}
    comparable = {name: lines for name, lines in decoded.items() if len(lines) == len(references) > 0}
    return best_checkpoint(rows, metric_for(problem), comparable, references)


def _find(table: Evaluations, path: Path, weights: str) -> Evaluation | None:
    """The row of an earlier call; `None` where its decoded outputs are missing, which are compared."""
    row = table.find(path, weights)
    if row and DECODED.intersection(row.scores) and table.outputs(row) is None:
        return None
    return row

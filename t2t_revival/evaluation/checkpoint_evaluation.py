"""Evaluation of the checkpoints of a training, as `t2t-eval` runs it: each is scored once.

output_dir/eval-SPLIT.csv                                  a row for each checkpoint
output_dir/eval-SPLIT/STEP-WEIGHTS-SETTINGS.txt            the decoded outputs of a row, one a line, so that
                                                           rows can be compared sentence by sentence

All functions raise `T2TError` where a file of scores is corrupt, or cannot be written.
"""

from __future__ import annotations

import dataclasses
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints import selection
from t2t_revival.checkpoints.directory import AVERAGED, BEST, Checkpoint, list_averaged, list_checkpoints
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, weights_of
from t2t_revival.curve_files import DEV, CsvTable, Scores, cell, read_curve
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import main_metric, tokenizer_setting
from t2t_revival.metrics.metric import LOSS, main_score, metric_of
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.files import file_lines, write_whole, writing
from t2t_revival.utils.made_of import fingerprint

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Data, Problem

LABELS = ("step", "checkpoint", "weights", "settings")  # all other columns are scores
LEAST_SCORE = 1.0  # lower values of BLEU or F1 do not tell models apart
MOST_COMPARED = 10  # checkpoints; each bootstrap takes about a second
ScoreCheckpoint = Callable[[Path], tuple[Scores, list[str]]]  # `CheckpointScores`, or a function like it


@dataclass(frozen=True)
class Evaluation:
    """The scores of a checkpoint.

    Attributes:
        step: the checkpoint's.
        checkpoint: path of its file relative to output_dir.
        weights: fingerprint of its weights; see `checkpoints.file.weights_of`.
        settings: fingerprint of the data and the decoding that it was measured with.
        scores: by name.
    """

    step: int
    checkpoint: str
    weights: str
    settings: str
    scores: dict[str, float]

    @property
    def averaged(self) -> bool:
        """True for the average that t2t-avg-all writes into output_dir."""
        return Path(self.checkpoint).parent == Path(AVERAGED)


def run_metric(output_dir: Path) -> str:
    """Returns the score by which a training chose its best checkpoint, such as "bleu"; empty without any."""
    kept = selection.best_value(output_dir)
    return kept[0] if kept else ""


def drawn_score(output_dir: Path, rows: Iterable[Mapping[str, float]]) -> str:
    """Returns the score of decoded outputs that pictures of a training show: its metric, or the main one.

    It is empty where no row has any.
    """
    measured = {name for row in rows for name in row}
    names = (run_metric(output_dir), main_score(measured))
    return next((name for name in names if name in measured and metric_of(name).outputs), "")


def dev_score(output_dir: Path, path: Path) -> tuple[str, float] | None:
    """Returns a checkpoint's own score on dev by the run's metric, with its name; `None` if it has none.

    Those of t2t-eval and t2t-avg-all are found by the weights, those of the training by the step, which an
    average does not have. Without a metric of the run it is the main one of the outputs, or the loss.
    """
    weights, folder = weights_of(path), path.parent
    measured = [row.scores for row in _read(_table_path(output_dir, DEV)) if row.weights == weights]
    own_folders = (output_dir.resolve(), (output_dir / BEST).resolve())
    if folder.name != AVERAGED and folder.resolve() in own_folders and not measured:
        step = int(path.stem.rpartition("-")[2])
        measured = [row for row in read_curve(output_dir, DEV) if row["step"] == step]
    scores = measured[-1] if measured else {}
    names = (run_metric(output_dir), main_score(scores))
    return next(((name, scores[name]) for name in names if name in scores), None)


class Evaluations:
    """The evaluations of a CSV file, which is replaced with each one that is added.

    Only rows of the same `settings` are read and added; rows of others, and of checkpoints that were removed,
    stay in the file.
    """

    def __init__(self, output_dir: Path, split: str, settings: str) -> None:
        self.path = _table_path(output_dir, split)
        self._output_dir, self._settings = output_dir.resolve(), settings
        self._rows = _read(self.path)

    @property
    def rows(self) -> list[Evaluation]:
        """Evaluations of the settings by step; an average follows the newest of its checkpoints."""
        rows = (row for row in self._rows if row.settings == self._settings)
        return sorted(rows, key=lambda row: (row.step, row.averaged, row.checkpoint))

    def find(self, path: Path, weights: str) -> Evaluation | None:
        """The row of a checkpoint with these weights; `None` also without its decoded outputs."""
        wanted = (self._name(path), weights)
        row = next((row for row in self.rows if (row.checkpoint, row.weights) == wanted), None)
        lacks_outputs = row and main_score(row.scores) != LOSS and self.outputs(row) is None
        return None if lacks_outputs else row

    def add(
        self, step: int, path: Path, weights: str, scores: dict[str, float], outputs: Sequence[str] = ()
    ) -> Evaluation:
        """Adds a row and its decoded outputs; a row of the same file with other weights is removed."""
        added = Evaluation(step, self._name(path), weights, self._settings, scores)
        if outputs:
            file = self._outputs_path(added)
            with writing(file):
                file.parent.mkdir(exist_ok=True)
                write_whole(file, to_bytes(outputs))
        for row in [row for row in self._rows if row.checkpoint == added.checkpoint]:
            if row.weights != weights:
                self._outputs_path(row).unlink(missing_ok=True)
            elif row.settings != self._settings:
                continue
            self._rows.remove(row)
        self._rows = sorted([*self._rows, added], key=lambda row: (row.step, row.averaged))
        names = dict.fromkeys(name for row in self._rows for name in row.scores)
        cells = (
            {label: getattr(row, label) for label in LABELS}
            | {name: cell(value) for name, value in row.scores.items()}
            for row in self._rows
        )
        with writing(self.path):
            CsvTable(self.path).write(cells, [*LABELS[:2], *names, *LABELS[2:]])
        return added

    def outputs(self, row: Evaluation) -> list[str] | None:
        """The decoded outputs of a row; `None` if their file was removed."""
        path = self._outputs_path(row)
        return file_lines(path) if path.exists() else None

    def _outputs_path(self, row: Evaluation) -> Path:
        return self.path.with_suffix("") / f"{row.step}-{row.weights}-{row.settings}.txt"

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.resolve(), self._output_dir)


def _table_path(output_dir: Path, split: str) -> Path:
    return output_dir / f"eval-{split}.csv"


def _read(path: Path) -> list[Evaluation]:
    """Reads the evaluations of a table, of all settings, in the order of the file."""

    def parse_row(cells: dict[str, str]) -> Evaluation:
        step, checkpoint, weights, settings = (cells[label] for label in LABELS)
        scores = {name: float(text) for name, text in cells.items() if name not in LABELS and text}
        return Evaluation(int(step), checkpoint, weights, settings, scores)

    return CsvTable(path).parse(parse_row)


def evaluation_settings(
    folder: ModelFolder, data: Data, split: str, decoded_sentences: int, engine: str = ""
) -> str:
    """Fingerprints everything that scores depend on besides the weights.

    `engine` names the engine that decodes, and its precision; it is empty for TensorFlow in float32.

    Raises:
        T2TError: the split is missing or corrupt.
    """
    data.split(split)
    settings = {
        "data": dataclasses.asdict(data.metadata.splits[split]),
        "source": data.metadata.source,
        "decode_hparams": folder.run.decode_hparams,
        "decoded_sentences": decoded_sentences,
        "metrics": data.problem.eval_metrics(),
    }
    return fingerprint(settings | ({"engine": engine} if engine else {}) | tokenizer_setting(data))


def checkpoint_lister(output_dir: Path, checkpoint: str | None) -> Callable[[], list[Checkpoint]]:
    """Returns a function that lists the checkpoints to evaluate.

    `checkpoint` is a file, a folder, or one of `selection.NAMES`; `None` takes all of the training's.

    Raises:
        T2TError: the file is missing or corrupt.
    """
    if not checkpoint:

        def all_of_training() -> list[Checkpoint]:
            kept = {
                one.step: one for one in (*selection.list_best(output_dir), *list_checkpoints(output_dir))
            }
            return sorted([*kept.values(), *list_averaged(output_dir)])

        return all_of_training
    if checkpoint in selection.NAMES:
        kept = slice(1) if checkpoint == selection.NEWEST else slice(None)
        return lambda: sorted(selection.candidates(output_dir, checkpoint)[kept])
    folder = Path(checkpoint).expanduser()
    if folder.is_dir():
        return lambda: list_checkpoints(folder)
    checkpoints = [selection.select_checkpoint(output_dir, checkpoint)]
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
            weights = weights_of(checkpoint.path)
            row = table.find(checkpoint.path, weights)
            if row is None:
                on_start(checkpoint, seconds)
                began = time.monotonic()
                score = score or make_scorer()
                measured = score(checkpoint.path)
                seconds = time.monotonic() - began
                row = table.add(checkpoint.step, checkpoint.path, weights, *measured)
        except (CorruptCheckpointError, CheckpointNotFoundError) as error:
            on_skipped(checkpoint, error)
            continue
        yield row


def best_checkpoint(
    rows: Sequence[Evaluation],
    problem: Problem,
    outputs: Callable[[Evaluation], Sequence[str] | None],
    references: Sequence[str],
    target_lang: str,
    run_metric: str = "",
) -> tuple[Evaluation, str]:
    """Selects the best row, and gives the reason in one line.

    BLEU or F1 decides if it is at least 1 and tells checkpoints apart: of those whose difference from the
    best is within the noise of the sample, by paired bootstrap, the one with the lowest loss is selected.
    Another metric of the run decides alone.

    Args:
        rows: at least one.
        problem: without a metric of decoded outputs the loss decides.
        outputs: returns the decoded outputs of a row; rows without any, or with those of another number of
            sentences, are not compared.
        references: of the outputs.
        target_lang: the code of the references' language.
        run_metric: the score by which the training chose its best; empty leaves the choice to that metric.
    """
    metric = main_metric(problem)
    if run_metric and not (metric and run_metric == metric.name):
        first = min(rows, key=lambda row: (_rank(row, run_metric), -row.step))
        if not math.isnan(value := first.scores.get(run_metric, math.nan)):
            return first, f"best {run_metric}, the training's metric: {_name(first)}, {value:.4g}"
    decoded = [row for row in rows if metric and metric.name in row.scores]
    by_loss = sorted(decoded or rows, key=lambda row: _rank(row, LOSS))
    if not (metric and decoded):
        return by_loss[0], _loss(by_loss[0])
    best = max(decoded, key=lambda row: row.scores[metric.name])
    score = best.scores[metric.name]
    if score < LEAST_SCORE:
        worth = f"the best, {score:.2f} at {_name(best)}, is below {LEAST_SCORE:g}"
        return by_loss[0], f"{_loss(by_loss[0])} ({metric.title} does not decide: {worth})"
    lower = [row for row in by_loss if _rank(row, LOSS) < _rank(best, LOSS)][:MOST_COMPARED]
    for row in lower:
        both = {one.checkpoint: outputs(one) or () for one in (best, row)}
        comparable = references and all(len(lines) == len(references) for lines in both.values())
        if not (metric.compare and comparable):
            continue
        compared = metric.compare(both, references, target_lang)[row.checkpoint]
        if not compared.significant:
            noise = f"within the noise of {len(references)} sentences, p = {compared.p:.2f}"
            worth = f"{score:.2f} at {_name(best)} and {compared.score:.2f} here are {noise}"
            loss = _loss(row, "lowest" if row is lower[0] else "lower")
            return row, f"{loss} ({metric.title} does not decide: {worth})"
    return best, f"best {metric.title}: {_name(best)}, {score:.2f}"


def _rank(row: Evaluation, score: str) -> float:
    return metric_of(score).rank(row.scores.get(score, math.nan))


def _loss(row: Evaluation, rank: str = "lowest") -> str:
    return f"{rank} loss: {_name(row)}, {row.scores[LOSS]:.4g}"


def _name(row: Evaluation) -> str:
    return f"step {row.step} (average)" if row.averaged else f"step {row.step}"

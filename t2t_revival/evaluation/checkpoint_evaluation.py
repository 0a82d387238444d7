"""Evaluation of the checkpoints of a training, as `t2t-eval` runs it: each is scored once.

output_dir/eval-SPLIT.csv                                  a row for each checkpoint
output_dir/eval-SPLIT/STEP-WEIGHTS-SETTINGS.txt            the decoded outputs of a row, one a line, so that
                                                           rows can be compared sentence by sentence
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.checkpoints import directory
from t2t_revival.checkpoints.best import best_value, list_best
from t2t_revival.checkpoints.directory import AVERAGED, BEST, Checkpoint
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, fingerprint
from t2t_revival.checkpoints.selection import NAMES, NEWEST, candidates, select_checkpoint
from t2t_revival.curve_files import DEV, Scores, read_curve
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import main_metric, tokenizer_setting
from t2t_revival.metrics.metric import LOSS, main_score, metric_of
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.csv_table import CsvTable
from t2t_revival.utils.files import atomic_write, text_lines

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
        weights: fingerprint of its weights; see `checkpoints.file.fingerprint`.
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
    """Returns the score by which a training chose its best checkpoint, such as "bleu"; empty without any.

    Raises:
        T2TError: best.json is corrupt.
    """
    kept = best_value(output_dir)
    return kept[0] if kept else ""


def drawn_score(output_dir: Path, rows: Iterable[Mapping[str, float]]) -> str:
    """Returns the score of decoded outputs that pictures of a training show: its metric, or the main one.

    It is empty where no row has any.

    Raises:
        T2TError: best.json is corrupt.
    """
    measured = {name for row in rows for name in row}
    names = (run_metric(output_dir), main_score(measured))
    return next((name for name in names if name in measured and metric_of(name).outputs), "")


def dev_score(output_dir: Path, path: Path) -> tuple[str, float] | None:
    """Returns a checkpoint's own score on dev by the run's metric, with its name; `None` if it has none.

    Those of t2t-eval and t2t-avg-all are found by the weights, those of the training by the step, which an
    average does not have. Without a metric of the run it is the main one of the outputs, or the loss.

    Raises:
        T2TError: a file of scores is corrupt, or the checkpoint.
    """
    weights = fingerprint(path)
    scored = [row for row in Evaluations(output_dir, DEV, "").all_rows if row.weights == weights]
    scores = dict(scored[-1].scores) if scored else {}
    own = path.parent.name != AVERAGED and path.parent.resolve() in (
        output_dir.resolve(),
        (output_dir / BEST).resolve(),
    )
    if own and not scores:
        step = int(path.stem.rpartition("-")[2])
        rows = [row for row in read_curve(output_dir, DEV) if row["step"] == step]
        scores = rows[-1] if rows else {}
    names = (run_metric(output_dir), main_score(scores))
    return next(((name, scores[name]) for name in names if name in scores), None)


def settings_fingerprint(**settings: Any) -> str:
    """Fingerprint of the JSON of `settings`, 8 hexadecimal digits."""
    return f"{zlib.crc32(json.dumps(settings, sort_keys=True, default=str).encode()):08x}"


class Evaluations:
    """The evaluations of a CSV file, which is replaced with each one that is added.

    Only rows of the same `settings` are read and added; rows of others, and of checkpoints that were removed,
    stay in the file.
    """

    def __init__(self, output_dir: Path, split: str, settings: str) -> None:
        self.path = output_dir / f"eval-{split}.csv"
        self._output_dir = output_dir
        self._settings = settings
        self._rows = CsvTable(self.path).parse(_evaluation)

    @property
    def all_rows(self) -> list[Evaluation]:
        """Evaluations of all settings, in the order of the file."""
        return list(self._rows)

    @property
    def rows(self) -> list[Evaluation]:
        """Evaluations of the settings by step; an average follows the newest of its checkpoints."""
        rows = (row for row in self._rows if row.settings == self._settings)
        return sorted(rows, key=lambda row: (row.step, row.averaged, row.checkpoint))

    def find(self, path: Path, weights: str) -> Evaluation | None:
        """The row of a checkpoint with these weights."""
        wanted = (self._name(path), weights)
        return next((row for row in self.rows if (row.checkpoint, row.weights) == wanted), None)

    def add(self, step: int, path: Path, weights: str, scores: dict[str, float]) -> Evaluation:
        """Adds a row; one of the same file with other weights is removed.

        Raises:
            T2TError: the file cannot be written.
        """
        added = Evaluation(step, self._name(path), weights, self._settings, scores)
        for row in [row for row in self._rows if _replaces(added, row)]:
            self._rows.remove(row)
            self._outputs_path(row).unlink(missing_ok=True)
        self._rows = sorted([*self._rows, added], key=lambda row: (row.step, row.averaged))
        names = dict.fromkeys(name for row in self._rows for name in row.scores)
        columns = [*LABELS[:2], *names, *LABELS[2:]]
        cells = [
            {label: getattr(row, label) for label in LABELS}
            | {name: f"{value:.6g}" for name, value in row.scores.items()}
            for row in self._rows
        ]
        try:
            CsvTable(self.path).write(cells, columns)
        except OSError as error:
            raise T2TError(f"cannot write {self.path}: {error.strerror or error}") from error
        return added

    def save_outputs(self, row: Evaluation, outputs: list[str]) -> None:
        """Writes the decoded outputs of a row, atomically.

        Raises:
            T2TError: the file cannot be written.
        """
        path = self._outputs_path(row)
        try:
            path.parent.mkdir(exist_ok=True)
            with atomic_write(path) as file:
                file.write("".join(f"{line}\n" for line in outputs).encode())
        except OSError as error:
            raise T2TError(f"cannot write {path}: {error.strerror or error}") from error

    def outputs(self, row: Evaluation) -> list[str] | None:
        """The decoded outputs of a row; `None` if their file was removed.

        Raises:
            T2TError: the file is not UTF-8.
        """
        path = self._outputs_path(row)
        return text_lines(path.read_bytes(), str(path)) if path.exists() else None

    def _outputs_path(self, row: Evaluation) -> Path:
        return self.path.with_suffix("") / f"{row.step}-{row.weights}-{row.settings}.txt"

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.resolve(), self._output_dir.resolve())


def _replaces(new: Evaluation, old: Evaluation) -> bool:
    if new.checkpoint != old.checkpoint:
        return False
    return new.weights != old.weights or new.settings == old.settings


def _evaluation(cells: dict[str, str]) -> Evaluation:
    """The evaluation in a row of the file."""
    step, checkpoint, weights, settings = (cells[label] for label in LABELS)
    scores = {name: float(cell) for name, cell in cells.items() if name not in LABELS and cell}
    return Evaluation(int(step), checkpoint, weights, settings, scores)


def evaluation_settings(
    folder: ModelFolder, data: Data, split: str, decoded_sentences: int, engine: str = ""
) -> str:
    """Fingerprints everything that scores depend on besides the weights.

    `engine` names the engine that decodes, and its precision; it is empty for TensorFlow in float32.

    Raises:
        T2TError: the split is missing or corrupt.
    """
    data.split(split)
    return settings_fingerprint(
        data=dataclasses.asdict(data.metadata.splits[split]),
        source=data.metadata.source,
        decode_hparams=folder.run.decode_hparams,
        decoded_sentences=decoded_sentences,
        metrics=data.problem.eval_metrics(),
        **({"engine": engine} if engine else {}),
        **tokenizer_setting(data.problem),
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
    problem: Problem,
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
        problem: without a metric of decoded outputs the loss decides.
        outputs: decoded outputs by the checkpoint of their row; rows without any, or with those of another
            number of sentences, are not compared.
        references: of the outputs.
        run_metric: the score by which the training chose its best; empty leaves the choice to that metric.
    """
    metric = main_metric(problem)
    measured = [row for row in rows if not math.isnan(row.scores.get(run_metric, math.nan))]
    if measured and not (metric and run_metric == metric.name):
        chosen = metric_of(run_metric)
        first = min(measured, key=lambda row: (chosen.rank(row.scores[run_metric]), -row.step))
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
        if not (references and metric.compare) or any(
            len(lines) != len(references) for lines in both.values()
        ):
            continue
        compared = metric.compare(both, references, problem.target_lang)[row.checkpoint]
        if not compared.significant:
            noise = f"within the noise of {len(references)} sentences, p = {compared.p:.2f}"
            worth = f"{score:.2f} at {_name(best)} and {compared.score:.2f} here are {noise}"
            loss = _loss(row, "lower" if rank else "lowest")
            return row, f"{loss} ({metric.title} does not decide: {worth})"
    return best, f"best {metric.title}: {_name(best)}, {score:.2f}"


def _find(table: Evaluations, path: Path, weights: str) -> Evaluation | None:
    """The row of an earlier call; `None` where its decoded outputs are missing, which are compared."""
    row = table.find(path, weights)
    if row and main_score(row.scores) != LOSS and table.outputs(row) is None:
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

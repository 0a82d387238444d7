"""BLEU of each translation `FOLDER/NAME-STEP` that t2t-translate-all makes, without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from t2t_revival.errors import T2TError
from t2t_revival.metrics.bleu import CorpusScore, read_lines, sacrebleu_score
from t2t_revival.utils.files import atomic_write
from t2t_revival.utils.score_events import ScoreEvents

NAME = re.compile(r"[^.].*-(\d+)")
LOWERCASE = {"BLEU_uncased": True, "BLEU_cased": False}  # T2T's tags
LAST_STEP = "last_evaluated_step"
ScoresByTag = dict[str, CorpusScore]


@dataclass(frozen=True, order=True)
class TranslationFile:
    """A file of translations, and the step of the checkpoint that made them."""

    step: int
    path: Path


def list_translations(folder: Path) -> list[TranslationFile]:
    """The files of a folder whose names end with a step, lowest first; none if there is no folder.

    Files that are still being written have hidden names, and are not listed.
    """
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(TranslationFile(int(match[1]), path) for match, path in names if match)


def bleu_by_tag(
    translations: list[str], *references: list[str], variant: str = "both", target_lang: str = ""
) -> ScoresByTag:
    """Scores translations with sacreBLEU, under T2T's tags; `variant` is "cased", "uncased" or "both"."""
    return {
        tag: sacrebleu_score(translations, *references, lowercase=lowercase, target_lang=target_lang)
        for tag, lowercase in LOWERCASE.items()
        if variant in ("both", tag.removeprefix("BLEU_"))
    }


@dataclass(frozen=True)
class ScoredTranslation:
    """A translation and its scores.

    Attributes:
        file: the translation.
        lines: its text.
        written_at: its modification time in seconds since 1970.
        scores: BLEU by tag.
    """

    file: TranslationFile
    lines: list[str]
    written_at: float
    scores: ScoresByTag


@dataclass
class TranslationScorer:
    """Scores translations of one text as they come.

    Attributes:
        references: one text or several, each with a line for each of a translation's.
        reference: the name of the first one's file.
        variant: see `bleu_by_tag`.
        target_lang: as in `sacrebleu_score`.
        on_fault: called with a message on each file that cannot be scored.
        num_scored: files scored so far.
        faults: files that could not be scored, each with its number of lines; `None` where it is unreadable.
    """

    references: list[list[str]]
    reference: str
    variant: str
    target_lang: str
    on_fault: Callable[[str], None]
    num_scored: int = 0
    faults: dict[TranslationFile, int | None] = field(default_factory=dict)

    def score(self, files: Iterable[TranslationFile]) -> Iterator[ScoredTranslation]:
        """Yields the scores of each file that has a line for each reference."""
        for file in files:
            try:
                written_at = file.path.stat().st_mtime
                lines = read_lines(file.path)
            except (T2TError, FileNotFoundError) as error:
                self._add_fault(file, None, str(error))
                continue
            if len(lines) != len(self.references[0]):
                counts = f"has {len(lines)} lines but {self.reference} has {len(self.references[0])}"
                self._add_fault(file, len(lines), f"{file.path} {counts}")
                continue
            self.num_scored += 1
            scores = bleu_by_tag(lines, *self.references, variant=self.variant, target_lang=self.target_lang)
            yield ScoredTranslation(file, lines, written_at, scores)

    def raise_faults(self) -> None:
        """Raises an error where files could not be scored; it names the reference if that alone differs."""
        if not self.faults:
            return
        counts = set(self.faults.values())
        if not self.num_scored and len(counts) == 1 and None not in counts:
            raise T2TError(
                f"{self.reference} has {len(self.references[0])} lines but every translation has "
                f"{counts.pop()}: give the --reference of the text that was translated"
            )
        names = ", ".join(file.path.name for file in self.faults)
        least = min(file.step for file in self.faults)
        raise T2TError(
            f"not scored: {names}; delete these files, make them again with t2t-translate-all, and score "
            f"them with --min_steps={least}"
        )

    def _add_fault(self, file: TranslationFile, lines: int | None, fault: str) -> None:
        self.faults[file] = lines
        self.on_fault(f"{fault}; skipped")


class LastStep:
    """The step up to which scores were written to an event_dir (T2T's `last_evaluated_step.txt`).

    Each `tag_suffix` of the scores has a step of its own.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self._path = event_dir / f"{LAST_STEP}{tag_suffix.replace('/', '_')}.txt"

    def read(self) -> int | None:
        """Reads the step; `None` if there is none yet.

        Raises:
            T2TError: the file is corrupt.
        """
        if not self._path.exists():
            return None
        try:
            return int(self._path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise T2TError(f"{self._path}: corrupt, not a number; remove it, or give --min_steps") from error

    def write(self, step: int) -> None:
        """Writes the step atomically."""
        with atomic_write(self._path) as file:
            file.write(f"{step}\n".encode())


class BleuCurves:
    """Curves of BLEU for TensorBoard, whose file is made with the first score; a context manager.

    Args:
        event_dir: their folder.
        tag_suffix: the end of the curves' tags.

    Attributes:
        last_step: the step up to which they have scores; `None` where they have none.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self.event_dir = event_dir
        self._suffix = tag_suffix
        self._last = LastStep(event_dir, tag_suffix)
        self.last_step = self._last.read()
        self._events: ScoreEvents | None = None

    def __enter__(self) -> BleuCurves:
        return self

    def __exit__(self, *error: object) -> None:
        if self._events:
            self._events.close()

    def add(self, scored: ScoredTranslation, zero_at: Callable[[], float] | None = None) -> None:
        """Adds a point to each curve.

        Args:
            scored: the translation.
            zero_at: returns the time of a BLEU of 0 at step 0, with which the curves begin; `None` begins
                them with the first score.

        Raises:
            T2TError: the event file cannot be written.
        """
        scores = {f"{tag}{self._suffix}": bleu.score for tag, bleu in scored.scores.items()}
        try:
            if self._events is None:
                self._events = ScoreEvents(self.event_dir)
                if zero_at:
                    self._events.add(0, zero_at(), dict.fromkeys(scores, 0.0))
            self._events.add(scored.file.step, scored.written_at, scores)
            self._last.write(scored.file.step)
        except OSError as error:
            reason = error.strerror or error
            raise T2TError(f"cannot write to --event_dir={self.event_dir}: {reason}") from error


def oldest_file_time(folder: Path) -> float:
    """The time of a folder's oldest file; t2t-translate-all writes one that is as old as the training."""
    return min(path.stat().st_mtime for path in folder.iterdir() if path.is_file())

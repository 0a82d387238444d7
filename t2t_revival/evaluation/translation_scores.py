"""BLEU of each translation `FOLDER/NAME-STEP` that t2t-translate-all makes, without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from t2t_revival.errors import T2TError
from t2t_revival.metrics.bleu import CorpusScore, read_lines, sacrebleu_score
from t2t_revival.utils.files import atomic_write, writing
from t2t_revival.utils.score_events import ScoreEvents

NAME = re.compile(r"[^.].*-(\d+)")
LOWERCASE = {"BLEU_uncased": True, "BLEU_cased": False}  # T2T's tags


class TranslationFile(NamedTuple):
    """A file of translations, and the step of the checkpoint that made them."""

    step: int
    path: Path


class ScoredTranslation(NamedTuple):
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
    scores: dict[str, CorpusScore]


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
) -> dict[str, CorpusScore]:
    """Scores translations with sacreBLEU, under T2T's tags; `variant` is "cased", "uncased" or "both"."""
    return {
        tag: sacrebleu_score(translations, *references, lowercase=lowercase, target_lang=target_lang)
        for tag, lowercase in LOWERCASE.items()
        if variant in ("both", tag.removeprefix("BLEU_"))
    }


def score_translations(
    files: Iterable[TranslationFile],
    references: Sequence[list[str]],
    reference: str,
    score: Callable[..., dict[str, CorpusScore]],
    on_fault: Callable[[str], None],
) -> Iterator[ScoredTranslation]:
    """Yields the scores of translations of one text as they come.

    Args:
        files: the translations.
        references: one text or several, each with a line for each of a translation's.
        reference: the name of the first one's file.
        score: called with the lines of a translation and each reference; see `bleu_by_tag`.
        on_fault: called with a message on each file that cannot be scored.

    Raises:
        T2TError: at the end, if files could not be scored; it names the reference if that alone differs.
    """
    num_scored, expected = 0, len(references[0])
    faults: dict[TranslationFile, int | None] = {}  # with their numbers of lines; `None`: unreadable
    for file in files:
        faults[file] = None
        try:
            written_at = file.path.stat().st_mtime
            lines = read_lines(file.path)
        except (T2TError, FileNotFoundError) as error:
            on_fault(f"{error}; skipped")
            continue
        if len(lines) != expected:
            faults[file] = len(lines)
            on_fault(f"{file.path} has {len(lines)} lines but {reference} has {expected}; skipped")
            continue
        del faults[file]
        num_scored += 1
        yield ScoredTranslation(file, lines, written_at, score(lines, *references))
    counts = set(faults.values())
    if not num_scored and len(counts) == 1 and None not in counts:
        raise T2TError(
            f"{reference} has {expected} lines but every translation has {counts.pop()}: give the "
            "--reference of the text that was translated"
        )
    if faults:
        names = ", ".join(file.path.name for file in faults)
        raise T2TError(
            f"not scored: {names}; delete these files, make them again with t2t-translate-all, and score "
            f"them with --min_steps={min(faults).step}"
        )


def last_step_file(event_dir: Path, tag_suffix: str = "") -> Path:
    """Returns T2T's note of the step up to which scores with a suffix of tags were written."""
    return event_dir / f"last_evaluated_step{tag_suffix.replace('/', '_')}.txt"


class BleuCurves:
    """Curves of BLEU for TensorBoard, whose file is made with the first score; a context manager.

    Args:
        event_dir: their folder.
        tag_suffix: the end of the curves' tags.

    Attributes:
        last_step: the step up to which they have scores; `None` where they have none.

    Raises:
        T2TError: the note of the last step is corrupt.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self.event_dir, self._suffix = event_dir, tag_suffix
        self._note = last_step_file(event_dir, tag_suffix)
        self._events: ScoreEvents | None = None
        try:
            self.last_step = int(self._note.read_text(encoding="utf-8")) if self._note.exists() else None
        except ValueError as error:
            raise T2TError(f"{self._note}: corrupt, not a number; remove it, or give --min_steps") from error

    def __enter__(self) -> BleuCurves:
        return self

    def __exit__(self, *error: object) -> None:
        if self._events:
            self._events.close()

    def add(self, scored: ScoredTranslation, zero_in: Path | None = None) -> None:
        """Adds a point to each curve.

        Args:
            scored: the translation.
            zero_in: the folder of translations; curves begin with a BLEU of 0 at step 0, at the time of its
                oldest file: t2t-translate-all writes one that is as old as the training. `None` begins them
                with the first score.

        Raises:
            T2TError: the event file cannot be written.
        """
        scores = {f"{tag}{self._suffix}": bleu.score for tag, bleu in scored.scores.items()}
        with writing(f"to --event_dir={self.event_dir}"):
            if self._events is None:
                self._events = ScoreEvents(self.event_dir)
                if zero_in:
                    oldest = min(path.stat().st_mtime for path in zero_in.iterdir() if path.is_file())
                    self._events.add(0, oldest, dict.fromkeys(scores, 0.0))
            self._events.add(scored.file.step, scored.written_at, scores)
            with atomic_write(self._note) as file:
                file.write(f"{scored.file.step}\n".encode())

"""`t2t-bleu --translations_dir`: scores a folder of translations by step."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli import waiting
from t2t_revival.cli.lines import say, warn_of_tabs
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import Bleu, read_lines, sacrebleu_score
from t2t_revival.evaluation.translations import LastStep, TranslationFile, list_translations

if TYPE_CHECKING:
    from t2t_revival.evaluation.score_events import ScoreEvents

LOWERCASE = {"BLEU_uncased": True, "BLEU_cased": False}  # T2T's tags
Scores = dict[str, Bleu]  # by tag


def tags_of(variant: str) -> dict[str, bool]:
    """T2T's tags of a `--bleu_variant`, each with whether lower-cased text is scored."""
    return {tag: low for tag, low in LOWERCASE.items() if variant in ("both", tag.removeprefix("BLEU_"))}


def score_folder(values: flags.FlagValues, references: list[str], reference: str) -> None:
    """Scores each translation, prints step and BLEU, and writes them to `--event_dir`.

    Args:
        values: t2t-bleu's flags.
        references: a line for each of a translation's.
        reference: the name of their file.

    Raises:
        T2TError: there is nothing to score, or a file could not be scored; the others are.
    """
    folder = Path(values.translations_dir).expanduser()
    events = _Events(Path(values.event_dir).expanduser(), values.tag_suffix) if values.event_dir else None
    done = events.last.read() if events and values.min_steps < 0 else None
    least = max(values.min_steps, 0) if done is None else done + 1
    zero = least == 0 if values.report_zero is None else values.report_zero
    if events and zero:
        events.zero_at = lambda: _oldest(folder)
    found = waiting.following(
        lambda: list_translations(folder), values.wait_minutes, f"a translation in {folder}", least
    )
    with events or nullcontext():
        scored, faults = _score(found, references, reference, values.bleu_variant, events)
    if faults:
        raise T2TError(_faults_text(faults, bool(scored), len(references), reference))
    if scored:
        _tell_best(scored)
        if events:
            print(f"next: {shlex.join(['tensorboard', f'--logdir={events.folder}'])}")
    elif done is not None:
        print(f"nothing new after step {done}; --min_steps=0 scores all again")
    else:
        least_said = f" of {least} steps or more" if least else ""
        raise T2TError(
            f"no translation NAME-STEP{least_said} in {folder}: make some with t2t-translate-all, or give "
            "--wait_minutes"
        )


def _score(
    found: Iterable[TranslationFile],
    references: list[str],
    reference: str,
    variant: str,
    events: _Events | None,
) -> tuple[dict[TranslationFile, Scores], dict[TranslationFile, int | None]]:
    """Scores the files as they come.

    Returns:
        The scores; and the files that have none, each with its number of lines, None where it is unreadable.
    """
    scored: dict[TranslationFile, Scores] = {}
    faults: dict[TranslationFile, int | None] = {}
    for file in found:
        try:
            written = file.path.stat().st_mtime
            lines = read_lines(file.path)
        except (T2TError, FileNotFoundError) as error:
            say(f"warning: {error}, left out")
            faults[file] = None
            continue
        if len(lines) != len(references):
            say(
                f"warning: {file.path} has {len(lines)} lines but {reference} has {len(references)}, left out"
            )
            faults[file] = len(lines)
            continue
        warn_of_tabs(lines, references, file.path)
        scores = {tag: sacrebleu_score(lines, references, low) for tag, low in tags_of(variant).items()}
        if not scored:
            print("  ".join(["    step", *scores, "file"]))
        scored[file] = scores
        numbers = (f"{bleu.score:{len(tag)}.2f}" for tag, bleu in scores.items())
        print("  ".join([f"{file.step:8}", *numbers, file.path.name]), flush=True)
        if events:
            events.add(file.step, written, scores)
    return scored, faults


def _faults_text(
    faults: dict[TranslationFile, int | None], others_scored: bool, lines: int, reference: str
) -> str:
    """Says which side is at fault: the reference, where all translations agree and it alone differs."""
    counts = set(faults.values())
    if not others_scored and len(counts) == 1 and None not in counts:
        return (
            f"{reference} has {lines} lines but every translation has {counts.pop()}: give the --reference "
            "of the text that was translated"
        )
    names = ", ".join(file.path.name for file in faults)
    return (
        f"not scored: {names}; remove them, make them again with t2t-translate-all, and score them with "
        f"--min_steps={min(file.step for file in faults)}"
    )


class _Events:
    """The events in `--event_dir`, whose file is made with the first score; a context manager.

    Attributes:
        folder: `--event_dir`.
        last: the step up to which it has scores.
        zero_at: gives the time of a BLEU of 0 at step 0; None: there is none.
    """

    def __init__(self, folder: Path, tag_suffix: str) -> None:
        self.folder = folder
        self.last = LastStep(folder, tag_suffix)
        self.zero_at: Callable[[], float] | None = None
        self._suffix = tag_suffix
        self._file: ScoreEvents | None = None

    def __enter__(self) -> _Events:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file:
            self._file.close()

    def add(self, step: int, wall_time: float, scores: Scores) -> None:
        """Adds a point to each curve."""
        try:
            if self._file is None:
                self._file = self._begin(scores)
            self._file.add(step, wall_time, {f"{tag}{self._suffix}": b.score for tag, b in scores.items()})
            self.last.write(step)
        except OSError as error:
            raise T2TError(f"cannot write to --event_dir={self.folder}: {error.strerror or error}") from error

    def _begin(self, scores: Scores) -> ScoreEvents:
        from t2t_revival.evaluation.score_events import ScoreEvents

        file = ScoreEvents(self.folder)
        if self.zero_at:
            file.add(0, self.zero_at(), {f"{tag}{self._suffix}": 0.0 for tag in scores})
        return file


def _oldest(folder: Path) -> float:
    """When the oldest file was written: t2t-translate-all leaves one that is as old as the training."""
    return min(path.stat().st_mtime for path in folder.iterdir() if path.is_file())


def _tell_best(scored: dict[TranslationFile, Scores]) -> None:
    tag = list(next(iter(scored.values())))[-1]
    best = max(scored, key=lambda file: scored[file][tag].score)
    print(f"best {tag}: step {best.step}, {scored[best][tag]}")

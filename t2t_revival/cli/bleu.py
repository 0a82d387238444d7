"""`t2t-bleu`: scores a file of translations, or a folder of them, against a file of references.

t2t-bleu --translation=FILE --reference=FILE[,FILE] [--target_lang=de]
t2t-bleu --translations_dir=DIR --reference=FILE[,FILE] [--event_dir=DIR] [--wait_minutes=20]

Prints sacreBLEU (uncased and cased) and chrF2 of plain text, with their signatures. Languages without
spaces between words need --target_lang, which chooses their tokenizers: zh, ja-mecab, ko-mecab or char.
Without it the tokenizer is 13a, sacreBLEU's default.

With one reference, in a language with spaces, also BLEU as tensor2tensor's t2t-bleu computes it and, with
--target_lang, as the paper reports it: of text tokenised for that language, with German compounds split at
hyphens. Only sacreBLEU is comparable to sacreBLEU.

With --translations_dir, as in tensor2tensor: sacreBLEU of each file of a folder that t2t-translate-all
fills, or is still filling. With --event_dir the scores also go to TensorBoard; a second run continues after
the last step of the first.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from t2t_revival.cli.support import wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, Flags, flag
from t2t_revival.cli.support.messages import say, warn_of_forms, warn_of_tabs
from t2t_revival.cli.support.text_files import name_of, read_parallel
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.metrics import bleu as metrics
from t2t_revival.metrics.bleu import DEFAULT, CorpusScore, primary_code
from t2t_revival.utils.files import file_lines, write_whole, writing
from t2t_revival.utils.score_events import ScoreEvents

NAME = re.compile(r"[^.].*-(\d+)")  # of a translation; files that are still being written have hidden names
LOWERCASE = {"BLEU_uncased": True, "BLEU_cased": False}  # T2T's tags
OF_FOLDER = ("event_dir", "tag_suffix", "min_steps", "wait_minutes", "report_zero")  # flags
FORM = "one a line, plain or .gz; - is the standard input."


@dataclass(frozen=True)
class BleuFlags(Flags):
    exclusive = (("translation", "translations_dir"),)
    needs = tuple((name, "translations_dir") for name in OF_FOLDER)
    translation: str = flag("", f"File of translations, {FORM}", file=READ)
    target_lang: str = flag(
        "",
        "Language of the files, such as de or zh-CN: decides sacreBLEU's tokenizer, by default 13a, and adds "
        "BLEU as the paper reports it. Needed for Chinese, Japanese, Korean, Thai and other languages "
        "without spaces between words.",
    )
    translations_dir: str = flag(
        "", "Folder of translations with names that end with -STEP, instead of --translation."
    )
    event_dir: str = flag("", "Folder for TensorBoard's events BLEU_cased and BLEU_uncased.")
    reference: tuple[str, ...] = flag(
        (),
        f"File of references, {FORM} Several files, separated by commas or each with its own --reference, "
        "are several references of each line.",
        repeated=True,
        missing="=FILE is missing",
        file=READ,
    )
    tag_suffix: str = flag("", "Suffix of the events' tags.")
    bleu_variant: str = flag("both", "Variants of sacreBLEU.", choices=("cased", "uncased", "both"))
    min_steps: int = flag(
        -1, "Skip translations of fewer steps; -1 skips those up to the last step in --event_dir.", least=-1
    )
    wait_minutes: int = flag(0, wait_flags.waiting_for("translation"))
    report_zero: bool | None = flag(
        None,
        "Begin the events with BLEU 0 at step 0, at the time of the folder's oldest file; by default where "
        "the first translations are scored.",
    )


class TranslationFile(NamedTuple):
    """A file of translations, and the step of the checkpoint that made them."""

    step: int
    path: Path


class BleuCurves:
    """Curves of BLEU for TensorBoard in a folder, whose file is made with the first score; a context manager.

    Attributes:
        note: T2T's file with the last step.
        last_step: the step up to which curves of this suffix have scores; `None` where they have none.

    Raises:
        T2TError: the note is corrupt; or events cannot be written.
    """

    def __init__(self, event_dir: Path, tag_suffix: str = "") -> None:
        self.event_dir, self._suffix = event_dir, tag_suffix
        self.note = event_dir / f"last_evaluated_step{tag_suffix.replace('/', '_')}.txt"
        self._events: ScoreEvents | None = None
        try:
            self.last_step = int(self.note.read_text(encoding="utf-8")) if self.note.exists() else None
        except ValueError as error:
            raise T2TError(f"{self.note}: corrupt, not a number; remove it, or give --min_steps") from error

    def __enter__(self) -> BleuCurves:
        return self

    def __exit__(self, *error: object) -> None:
        if self._events:
            self._events.close()

    def add(
        self, step: int, written_at: float, scores: Mapping[str, CorpusScore], zero_in: Path | None
    ) -> None:
        """Adds a point to each curve, at the time of a translation in s since 1970.

        With the folder `zero_in` of the translations, curves begin with a BLEU of 0 at step 0, at the time of
        its oldest file: t2t-translate-all writes one that is as old as the training.
        """
        points = {f"{tag}{self._suffix}": bleu.score for tag, bleu in scores.items()}
        with writing(f"to --event_dir={self.event_dir}"):
            if self._events is None:
                self._events = ScoreEvents(self.event_dir)
                if zero_in:
                    oldest = min(path.stat().st_mtime for path in zero_in.iterdir() if path.is_file())
                    self._events.add(0, oldest, dict.fromkeys(points, 0.0))
            self._events.add(step, written_at, points)
            write_whole(self.note, f"{step}\n".encode())


def _bleu(flags: BleuFlags) -> None:
    language = flags.target_lang
    if language and not re.fullmatch("[a-z]{2,3}", primary_code(language)):
        raise T2TError(did_you_mean(language, metrics.MOSES_LANGUAGES, "target language"))
    files = [
        ("reference", file)
        for value in flags.reference  # a file whose own name has a comma is one
        for file in ([value] if Path(value).expanduser().exists() else value.split(","))
    ]
    if not flags.translations_dir:
        if not flags.translation:
            raise T2TError("--translation=FILE is missing")
        files.insert(0, ("translation", flags.translation))
    texts, name = read_parallel(*files), name_of(files[0][1])
    if not texts[0]:
        raise T2TError(f"{name}: the file is empty")
    (_score_folder if flags.translations_dir else _score_file)(flags, name, *texts)


def _score_file(flags: BleuFlags, name: str, translations: list[str], *references: list[str]) -> None:
    scores = _scores(flags, translations, references, name)
    for tag, bleu in scores.items():
        print(f"{tag} = {bleu}")
    print(f"chrF2 = {metrics.chrf_score(translations, *references)}")
    if len(references) == 1 and all(bleu.tokenizer == DEFAULT for bleu in scores.values()):
        _print_by_spaces(translations, references[0], list(scores), flags.target_lang)


def _print_by_spaces(translations: list[str], references: list[str], tags: list[str], language: str) -> None:
    """Prints the scores of tokenizers that need spaces between words, and take one reference."""
    as_t2t = (
        f"{tag.removeprefix('BLEU_')} {metrics.t2t_bleu(translations, references, lowercase):.2f}"
        for tag, lowercase in LOWERCASE.items()
        if tag in tags
    )
    print(f"as T2T's t2t-bleu (its own tokeniser; not comparable to sacreBLEU): {', '.join(as_t2t)}")
    code = primary_code(language)
    if code and code in metrics.MOSES_LANGUAGES:
        compounds = ", compounds split" if code == "de" else ""
        paper = metrics.paper_style_bleu(translations, references, code)
        print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _score_folder(flags: BleuFlags, name: str, *references: list[str]) -> None:
    """Prints the BLEU of each translation as it appears, and writes it to `--event_dir`."""
    folder = Path(flags.translations_dir).expanduser()
    curves = BleuCurves(Path(flags.event_dir).expanduser(), flags.tag_suffix) if flags.event_dir else None
    last_step = curves.last_step if curves and flags.min_steps < 0 else None
    min_steps = max(flags.min_steps, 0) if last_step is None else last_step + 1
    begins_with_zero = min_steps == 0 if flags.report_zero is None else flags.report_zero
    files = wait_flags.step_files(
        lambda: list_translations(folder), flags.wait_minutes, f"a translation in {folder}", min_steps
    )
    scored: dict[TranslationFile, dict[str, CorpusScore]] = {}
    with curves or nullcontext():
        for file, written_at, lines in _translations(files, len(references[0]), name):
            scores = _scores(flags, lines, references, file.path)
            if not scored:
                print("  ".join(["    step", *scores, "file"]))
            scored[file] = scores
            cells = (f"{bleu.score:{len(tag)}.2f}" for tag, bleu in scores.items())
            print("  ".join([f"{file.step:8}", *cells, file.path.name]), flush=True)
            if curves:
                curves.add(file.step, written_at, scores, folder if begins_with_zero else None)
    if scored:
        *_, tag = next(iter(scored.values()))
        best = max(scored, key=lambda file: scored[file][tag].score)
        print(f"best {tag}: step {best.step}, {scored[best][tag]}")
        if curves:
            print(f"next: {shlex.join(['tensorboard', f'--logdir={curves.event_dir}'])}")
    elif last_step is not None:
        print(f"nothing new after step {last_step}; --min_steps=0 scores all again")
    else:
        at_least = f" of {min_steps} steps or more" if min_steps else ""
        raise T2TError(
            f"no translation NAME-STEP{at_least} in {folder}: make some with t2t-translate-all, or give "
            "--wait_minutes"
        )


def list_translations(folder: Path) -> list[TranslationFile]:
    """The files of a folder whose names end with a step, lowest first; none if there is no folder."""
    if not folder.is_dir():
        return []
    names = ((NAME.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(TranslationFile(int(match[1]), path) for match, path in names if match)


def _translations(
    files: Iterable[TranslationFile], expected: int, reference: str
) -> Iterator[tuple[TranslationFile, float, list[str]]]:
    """Yields translations as they come, each with its modification time and its lines.

    Warns of each file that cannot be read, or has others than the expected lines of the reference, and raises
    `T2TError` for all at the end; it names the reference if that alone differs.
    """
    counts: dict[TranslationFile, int] = {}  # of lines; 0: empty or unreadable
    for file in files:
        counts[file] = 0
        try:
            written_at, lines = file.path.stat().st_mtime, file_lines(file.path)
        except (T2TError, FileNotFoundError) as error:
            say(f"warning: {error}; skipped")
            continue
        counts[file] = len(lines)
        if len(lines) == expected:
            yield file, written_at, lines
        else:
            say(f"warning: {file.path} has {len(lines)} lines but {reference} has {expected}; skipped")
    faults = [file for file, count in counts.items() if count != expected]
    different = {*counts.values()}
    if faults and len(different) == 1 and 0 not in different:
        raise T2TError(
            f"{reference} has {expected} lines but every translation has {different.pop()}: give the "
            "--reference of the text that was translated"
        )
    if faults:
        names = ", ".join(file.path.name for file in faults)
        raise T2TError(
            f"not scored: {names}; delete these files, make them again with t2t-translate-all, and score "
            f"them with --min_steps={min(faults).step}"
        )


def _scores(
    flags: BleuFlags, translations: list[str], references: Sequence[list[str]], name: object
) -> dict[str, CorpusScore]:
    """Scores translations with sacreBLEU, by T2T's tags; warns of lines that are written in another way."""
    for warn in (warn_of_tabs, warn_of_forms):
        warn(translations, references[0], name)
    language = flags.target_lang
    return {
        tag: metrics.sacrebleu_score(translations, *references, lowercase=lowercase, target_lang=language)
        for tag, lowercase in LOWERCASE.items()
        if flags.bleu_variant in ("both", tag.removeprefix("BLEU_"))
    }


main = Command(BleuFlags, _bleu, __doc__)

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
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from t2t_revival.cli.support import text_files, wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, Flags, flag
from t2t_revival.cli.support.messages import say, warn_of_forms, warn_of_tabs
from t2t_revival.cli.support.text_files import STANDARD_STREAM, name_of
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.evaluation import translation_scores as scoring
from t2t_revival.metrics import bleu as metrics
from t2t_revival.metrics.bleu import DEFAULT, primary_code

FORM = "one a line, plain or .gz; - is the standard input."


@dataclass(frozen=True)
class BleuFlags(Flags):
    """The flags of t2t-bleu."""

    exclusive = (("translation", "translations_dir"),)
    needs = (
        ("event_dir", "translations_dir"),
        ("tag_suffix", "translations_dir"),
        ("min_steps", "translations_dir"),
        ("wait_minutes", "translations_dir"),
        ("report_zero", "translations_dir"),
    )
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


def _bleu(flags: BleuFlags) -> None:
    language = flags.target_lang
    if language and not re.fullmatch("[a-z]{2,3}", primary_code(language)):
        raise T2TError(did_you_mean(language, metrics.MOSES_LANGUAGES, "target language"))
    (_score_folder if flags.translations_dir else _score_file)(flags, language)


def _score_file(flags: BleuFlags, language: str) -> None:
    names = _reference_files(flags)
    if not flags.translation:
        raise T2TError("--translation=FILE is missing")
    translations, references = _lines(flags.translation), [*map(_lines, names)]
    for name, lines in zip(names, references, strict=True):
        if len(translations) != len(lines):
            raise T2TError(
                f"{name_of(flags.translation)} has {len(translations)} lines but {name_of(name)} has "
                f"{len(lines)}; they must be line by line of the same text"
            )
    for warn in (warn_of_tabs, warn_of_forms):
        warn(translations, references[0], name_of(flags.translation))
    scores = scoring.bleu_by_tag(translations, *references, variant=flags.bleu_variant, target_lang=language)
    for tag, bleu in scores.items():
        print(f"{tag} = {bleu}")
    print(f"chrF2 = {metrics.chrf_score(translations, *references)}")
    if len(references) == 1 and all(bleu.tokenizer == DEFAULT for bleu in scores.values()):
        _print_by_spaces(translations, references[0], list(scores), language)


def _print_by_spaces(translations: list[str], references: list[str], tags: list[str], language: str) -> None:
    """Prints the scores of tokenizers that need spaces between words, and take one reference."""
    as_t2t = (
        f"{tag.removeprefix('BLEU_')} {metrics.t2t_bleu(translations, references, lowercase):.2f}"
        for tag, lowercase in scoring.LOWERCASE.items()
        if tag in tags
    )
    print(f"as T2T's t2t-bleu (its own tokeniser; not comparable to sacreBLEU): {', '.join(as_t2t)}")
    code = primary_code(language)
    if code and code in metrics.MOSES_LANGUAGES:
        compounds = ", compounds split" if code == "de" else ""
        paper = metrics.paper_style_bleu(translations, references, code)
        print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _score_folder(flags: BleuFlags, language: str) -> None:
    """Prints the BLEU of each translation as it appears, and writes it to `--event_dir`."""
    folder = Path(flags.translations_dir).expanduser()
    names = _reference_files(flags)
    references = [*map(_lines, names)]
    for name, lines in zip(names, references, strict=True):
        if len(lines) != len(references[0]):
            raise T2TError(f"{names[0]} has {len(references[0])} lines but {name} has {len(lines)}")
    curves = (
        scoring.BleuCurves(Path(flags.event_dir).expanduser(), flags.tag_suffix) if flags.event_dir else None
    )
    last_step = curves.last_step if curves and flags.min_steps < 0 else None
    min_steps = max(flags.min_steps, 0) if last_step is None else last_step + 1
    begins_with_zero = min_steps == 0 if flags.report_zero is None else flags.report_zero
    files = wait_flags.step_files(
        lambda: scoring.list_translations(folder), flags.wait_minutes, f"a translation in {folder}", min_steps
    )
    score = partial(scoring.bleu_by_tag, variant=flags.bleu_variant, target_lang=language)
    scored: list[scoring.ScoredTranslation] = []
    with curves or nullcontext():
        for translation in scoring.score_translations(
            files, references, name_of(names[0]), score, lambda fault: say(f"warning: {fault}")
        ):
            file, scores = translation.file, translation.scores
            for warn in (warn_of_tabs, warn_of_forms):
                warn(translation.lines, references[0], file.path)
            if not scored:
                print("  ".join(["    step", *scores, "file"]))
            scored.append(translation)
            cells = (f"{bleu.score:{len(tag)}.2f}" for tag, bleu in scores.items())
            print("  ".join([f"{file.step:8}", *cells, file.path.name]), flush=True)
            if curves:
                curves.add(translation, folder if begins_with_zero else None)
    if scored:
        tag = list(scored[0].scores)[-1]
        best = max(scored, key=lambda translation: translation.scores[tag].score)
        print(f"best {tag}: step {best.file.step}, {best.scores[tag]}")
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


def _reference_files(flags: BleuFlags) -> list[str]:
    """Returns the files of --reference; a file whose own name has a comma is one."""
    return [
        name
        for value in flags.reference
        for name in ([value] if Path(value).expanduser().exists() else value.split(","))
    ]


def _lines(path: str) -> list[str]:
    """Reads the lines of a file, which must not be empty, or of the standard input."""
    if path == STANDARD_STREAM:
        return text_files.read_lines(path, "reference")
    return metrics.read_lines(Path(path).expanduser())


main = Command(BleuFlags, _bleu, __doc__)

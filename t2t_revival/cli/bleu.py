"""`t2t-bleu`: scores a file of translations, or a folder of them, against a file of references."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from pathlib import Path

from absl import flags

from t2t_revival.cli.support import command, wait_flags
from t2t_revival.cli.support.messages import say, warn_of_tabs
from t2t_revival.cli.support.text_files import STANDARD_STREAM, check_one_standard_input, name_of, read_flag
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import chrf_score, paper_style_bleu, read_lines, t2t_bleu
from t2t_revival.evaluation.translation_scores import (
    LOWERCASE,
    BleuCurves,
    ScoredTranslation,
    TranslationScorer,
    bleu_by_tag,
    list_translations,
    oldest_file_time,
)

USAGE = """
t2t-bleu --translation=FILE --reference=FILE [--target_lang=de]
t2t-bleu --translations_dir=DIR --reference=FILE [--event_dir=DIR] [--wait_minutes=20]

Prints sacreBLEU (uncased and cased) and chrF2 of plain text, with their signatures, and BLEU as
tensor2tensor's t2t-bleu computes it. With --target_lang also BLEU as the paper reports it: of text
tokenised for that language, with German compounds split at hyphens. Only sacreBLEU is comparable to
sacreBLEU.

With --translations_dir, as in tensor2tensor: sacreBLEU of each file of a folder that t2t-translate-all
fills, or is still filling. With --event_dir the scores also go to TensorBoard; a second run continues after
the last step of the first.
"""
FILE_FLAGS = ("target_lang",)
FOLDER_FLAGS = ("event_dir", "tag_suffix", "min_steps", "wait_minutes", "report_zero")


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-bleu."""
    values = command.new_flags()
    form = "one a line, plain text; - is the standard input."
    command.define(
        values,
        None,
        translation=f"File of translations, {form}",
        reference=f"File of references, {form}",
        target_lang="Language of both files, such as de: adds BLEU as the paper reports it.",
        translations_dir="Folder of translations with names that end with -STEP, instead of --translation.",
        event_dir="Folder for TensorBoard's events BLEU_cased and BLEU_uncased.",
    )
    command.define(values, "", tag_suffix="Suffix of the events' tags.")
    flags.DEFINE_enum(
        "bleu_variant", "both", ["cased", "uncased", "both"], "Variants of sacreBLEU.", flag_values=values
    )
    command.define_integer(
        "min_steps",
        -1,
        "Skip translations of fewer steps; -1 skips those up to the last step in --event_dir.",
        lower_bound=-1,
        flag_values=values,
    )
    wait_flags.define(values, "translation")
    flags.DEFINE_bool(
        "report_zero",
        None,
        "Begin the events with BLEU 0 at step 0, at the time of the folder's oldest file; by default where "
        "the first translations are scored.",
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _bleu, argv)


def _bleu(values: flags.FlagValues) -> None:
    if values.translation and values.translations_dir:
        raise T2TError("--translation and --translations_dir cannot be combined: give one of them")
    of_folder = bool(values.translations_dir)
    for flag in FILE_FLAGS if of_folder else FOLDER_FLAGS:
        if values[flag].present:
            other = "translation=FILE" if of_folder else "translations_dir=DIR"
            raise T2TError(f"--{flag} needs --{other}")
    if of_folder:
        _score_folder(values)
    else:
        _score_file(values)


def _score_file(values: flags.FlagValues) -> None:
    check_one_standard_input(values, "translation", "reference")
    translations, references = _lines(values, "translation"), _lines(values, "reference")
    if len(translations) != len(references):
        raise T2TError(
            f"{name_of(values.translation)} has {len(translations)} lines but "
            f"{name_of(values.reference)} has {len(references)}; they must be line by line of the same text"
        )
    warn_of_tabs(translations, references, name_of(values.translation))
    lang = values.target_lang
    paper = paper_style_bleu(translations, references, lang) if lang else None
    by_tag = bleu_by_tag(translations, references, values.bleu_variant)
    for tag, bleu in by_tag.items():
        print(f"{tag} = {bleu}")
    print(f"chrF2 = {chrf_score(translations, references)}")
    as_t2t = (
        f"{tag.removeprefix('BLEU_')} {t2t_bleu(translations, references, LOWERCASE[tag]):.2f}"
        for tag in by_tag
    )
    print(f"as T2T's t2t-bleu (its own tokeniser; not comparable to sacreBLEU): {', '.join(as_t2t)}")
    if paper:
        compounds = ", compounds split" if lang == "de" else ""
        print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _score_folder(values: flags.FlagValues) -> None:
    """Prints the BLEU of each translation as it appears, and writes it to `--event_dir`."""
    folder = Path(values.translations_dir).expanduser()
    references = _lines(values, "reference")
    curves = BleuCurves(Path(values.event_dir).expanduser(), values.tag_suffix) if values.event_dir else None
    last_step = curves.last_step if curves and values.min_steps < 0 else None
    min_steps = max(values.min_steps, 0) if last_step is None else last_step + 1
    begins_with_zero = min_steps == 0 if values.report_zero is None else values.report_zero
    files = wait_flags.step_files(
        lambda: list_translations(folder), values.wait_minutes, f"a translation in {folder}", min_steps
    )
    scorer = TranslationScorer(
        references, name_of(values.reference), values.bleu_variant, lambda fault: say(f"warning: {fault}")
    )
    scored: list[ScoredTranslation] = []
    with curves or nullcontext():
        for translation in scorer.score(files):
            file, scores = translation.file, translation.scores
            warn_of_tabs(translation.lines, references, file.path)
            if not scored:
                print("  ".join(["    step", *scores, "file"]))
            scored.append(translation)
            cells = (f"{bleu.score:{len(tag)}.2f}" for tag, bleu in scores.items())
            print("  ".join([f"{file.step:8}", *cells, file.path.name]), flush=True)
            if curves:
                curves.add(translation, (lambda: oldest_file_time(folder)) if begins_with_zero else None)
    scorer.raise_faults()
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


def _lines(values: flags.FlagValues, flag: str) -> list[str]:
    """Reads the lines of a file, which must not be empty, or of the standard input."""
    path = values[flag].value
    if path and path != STANDARD_STREAM:
        return read_lines(Path(path).expanduser())
    return read_flag(values, flag)


if __name__ == "__main__":
    sys.exit(main())

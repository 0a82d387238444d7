"""`t2t-bleu`: scores a file of translations, or a folder of them, against a file of references."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival.cli import common, waiting
from t2t_revival.cli.bleu_folder import score_folder, tags_of
from t2t_revival.cli.lines import (
    STANDARD_STREAM,
    check_one_standard_input,
    name_of,
    read,
    warn_of_tabs,
)
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import (
    chrf_score,
    paper_style_bleu,
    read_lines,
    sacrebleu_score,
    t2t_bleu,
)

USAGE = """
t2t-bleu --translation=FILE --reference=FILE [--target_lang=de]
t2t-bleu --translations_dir=DIR --reference=FILE [--event_dir=DIR] [--wait_minutes=20]

Prints sacreBLEU (uncased and cased) and chrF2 of plain text, with their signatures, and BLEU as
tensor2tensor's t2t-bleu computes it. With --target_lang also BLEU as the paper reports it: of text
tokenised for that language, with German compounds split at hyphens. Only sacreBLEU is comparable to
sacreBLEU.

With --translations_dir, as in tensor2tensor: sacreBLEU of each file of a folder that t2t-translate-all
fills, also while it does; with --event_dir for TensorBoard as well, where a second run goes on after the
last step of the first.
"""
OF_FILE, OF_FOLDER = ("target_lang",), ("event_dir", "tag_suffix", "min_steps", "wait_minutes", "report_zero")


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    for name in ("translation", "reference"):
        text = f"The {name}s, one a line, plain text; - is the standard input."
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_string(
        "target_lang",
        None,
        "Language of both, such as de: adds the paper's score, which needs a tokeniser for it.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "bleu_variant", "both", ["cased", "uncased", "both"], "Which sacreBLEU.", flag_values=values
    )
    flags.DEFINE_string(
        "translations_dir",
        None,
        "A folder of translations, whose names end with -STEP, instead of --translation.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "event_dir", None, "Where TensorBoard's events BLEU_cased and BLEU_uncased go.", flag_values=values
    )
    flags.DEFINE_string("tag_suffix", "", "What the events' tags end with.", flag_values=values)
    common.define_integer(
        "min_steps",
        -1,
        "Leave out translations of fewer steps; -1: those up to the last step that went to event_dir.",
        lower_bound=-1,
        flag_values=values,
    )
    waiting.define(values, "translation")
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
    return common.run(command_flags(), USAGE, _bleu, argv)


def _bleu(values: flags.FlagValues) -> None:
    if values.translation and values.translations_dir:
        raise T2TError("--translation and --translations_dir do not go together: give one of them")
    of_folder = bool(values.translations_dir)
    for flag in OF_FILE if of_folder else OF_FOLDER:
        if values[flag].present:
            other = "translation=FILE" if of_folder else "translations_dir=DIR"
            raise T2TError(f"--{flag} goes with --{other}")
    if of_folder:
        score_folder(values, _lines(values, "reference"), name_of(values.reference))
        return
    check_one_standard_input(values, "translation", "reference")
    translations, references = _lines(values, "translation"), _lines(values, "reference")
    if len(translations) != len(references):
        raise T2TError(
            f"{name_of(values.translation)} has {len(translations)} lines but "
            f"{name_of(values.reference)} has {len(references)}; they must be of the same text"
        )
    warn_of_tabs(translations, references, name_of(values.translation))
    _print_scores(translations, references, values.bleu_variant, values.target_lang)


def _print_scores(
    translations: list[str], references: list[str], variant: str, target_lang: str | None
) -> None:
    paper = paper_style_bleu(translations, references, target_lang) if target_lang else None
    for tag, lowercase in tags_of(variant).items():
        print(f"{tag} = {sacrebleu_score(translations, references, lowercase)}")
    print(f"chrF2 = {chrf_score(translations, references)}")
    as_t2t = (
        f"{tag.removeprefix('BLEU_')} {t2t_bleu(translations, references, lowercase):.2f}"
        for tag, lowercase in tags_of(variant).items()
    )
    print(f"as T2T's t2t-bleu (its own tokeniser; not comparable to sacreBLEU): {', '.join(as_t2t)}")
    if paper:
        compounds = ", compounds split" if target_lang == "de" else ""
        print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _lines(values: flags.FlagValues, flag: str) -> list[str]:
    if not values[flag].value:
        raise T2TError(f"--{flag}=FILE is missing")
    if values[flag].value == STANDARD_STREAM:
        return read(STANDARD_STREAM)
    return read_lines(Path(values[flag].value).expanduser())


if __name__ == "__main__":
    sys.exit(main())

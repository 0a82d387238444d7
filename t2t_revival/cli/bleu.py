"""`t2t-bleu`: scores a file of translations, or a folder of them, against a file of references."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival.cli import common, waiting
from t2t_revival.cli.bleu_folder import score_folder
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import chrf_score, paper_style_bleu, read_lines, sacrebleu_score

USAGE = """
t2t-bleu --translation=FILE --reference=FILE [--target_lang=de]
t2t-bleu --translations_dir=DIR --reference=FILE [--event_dir=DIR] [--wait_minutes=20]

Prints sacreBLEU (uncased and cased) and chrF2 of plain text, with their signatures, and BLEU as
the paper reports it: of tokenised text, German compounds split at hyphens. The last is not
comparable to sacreBLEU.

With --translations_dir, as in tensor2tensor: sacreBLEU of each file of a folder that t2t-translate-all
fills, also while it does; with --event_dir for TensorBoard as well, where a second run goes on after the
last step of the first.
"""
OF_FILE, OF_FOLDER = ("target_lang",), ("event_dir", "tag_suffix", "min_steps", "wait_minutes", "report_zero")


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    flags.DEFINE_string("translation", None, "The translations, one a line, plain text.", flag_values=values)
    flags.DEFINE_string("reference", None, "The references, one a line, plain text.", flag_values=values)
    flags.DEFINE_string(
        "target_lang", "de", "Language of both, for the tokeniser of the paper's score.", flag_values=values
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
        score_folder(values, _lines(values, "reference"))
        return
    translations, references = _lines(values, "translation"), _lines(values, "reference")
    if len(translations) != len(references):
        raise T2TError(
            f"{values.translation} has {len(translations)} lines but "
            f"{values.reference} has {len(references)}; they must be of the same text"
        )
    paper = paper_style_bleu(translations, references, values.target_lang)
    compounds = ", compounds split" if values.target_lang == "de" else ""
    if values.bleu_variant != "cased":
        print(f"BLEU_uncased = {sacrebleu_score(translations, references, lowercase=True)}")
    if values.bleu_variant != "uncased":
        print(f"BLEU_cased   = {sacrebleu_score(translations, references)}")
    print(f"chrF2        = {chrf_score(translations, references)}")
    print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _lines(values: flags.FlagValues, flag: str) -> list[str]:
    if not values[flag].value:
        raise T2TError(f"--{flag}=FILE is missing")
    return read_lines(Path(values[flag].value).expanduser())


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-bleu`: scores a file of translations against a file of references."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival.cli import common
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import chrf_score, paper_style_bleu, read_lines, sacrebleu_score

USAGE = """
t2t-bleu --translation=FILE --reference=FILE [--target_lang=de]

Prints sacreBLEU (uncased and cased) and chrF2 of plain text, with their signatures, and BLEU as
the paper reports it: of tokenised text, German compounds split at hyphens. The last is not
comparable to sacreBLEU.
"""


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    flags.DEFINE_string("translation", None, "The translations, one a line, plain text.", flag_values=values)
    flags.DEFINE_string("reference", None, "The references, one a line, plain text.", flag_values=values)
    flags.DEFINE_string(
        "target_lang", "de", "Language of both, for the tokeniser of the paper's score.", flag_values=values
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return common.run(command_flags(), USAGE, _bleu, argv)


def _bleu(values: flags.FlagValues) -> None:
    translations, references = _lines(values, "translation"), _lines(values, "reference")
    if len(translations) != len(references):
        raise T2TError(
            f"{values.translation} has {len(translations)} lines but "
            f"{values.reference} has {len(references)}; they must be of the same text"
        )
    paper = paper_style_bleu(translations, references, values.target_lang)
    compounds = ", compounds split" if values.target_lang == "de" else ""
    print(f"BLEU_uncased = {sacrebleu_score(translations, references, lowercase=True)}")
    print(f"BLEU_cased   = {sacrebleu_score(translations, references)}")
    print(f"chrF2        = {chrf_score(translations, references)}")
    print(f"paper-style BLEU (Moses tokens{compounds}; not comparable to sacreBLEU) = {paper}")


def _lines(values: flags.FlagValues, flag: str) -> list[str]:
    if not values[flag].value:
        raise T2TError(f"--{flag}=FILE is missing")
    return read_lines(Path(values[flag].value).expanduser())


if __name__ == "__main__":
    sys.exit(main())

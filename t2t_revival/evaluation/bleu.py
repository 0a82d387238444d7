"""BLEU and chrF of translations (section 6.1), without TensorFlow.

sacreBLEU scores are comparable between papers. The paper's own 28.4 is not one: it was computed on
tokenised text with compounds split at hyphens, as T2T's get_ende_bleu.sh does; `paper_style_bleu` does the
same and is to be compared with such numbers alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.files import text_lines

COMPOUND_HYPHEN = re.compile(r"(\S)-(\S)")
SPLIT_COMPOUND = r"\1 ##AT##-##AT## \2"


@dataclass(frozen=True)
class Bleu:
    """A corpus score. `str` gives all of it in one line."""

    score: float  # 0 to 100
    signature: str  # how it was computed
    details: str  # n-gram precisions, brevity penalty and lengths

    def __str__(self) -> str:
        return " ".join(filter(None, [f"{self.score:.2f}", self.signature, self.details]))


def sacrebleu_score(hypotheses: list[str], references: list[str], lowercase: bool = False) -> Bleu:
    """BLEU by sacreBLEU on plain text: tokeniser 13a, exponential smoothing, one reference each.

    Raises:
        T2TError: there are no lines, or unequal numbers of them.
    """
    from sacrebleu.metrics import BLEU

    return _score(BLEU(lowercase=lowercase), hypotheses, references)


def chrf_score(hypotheses: list[str], references: list[str]) -> Bleu:
    """chrF2 by sacreBLEU on plain text: character n-grams up to 6, recall counts twice.

    Raises:
        T2TError: there are no lines, or unequal numbers of them.
    """
    from sacrebleu.metrics import CHRF

    return _score(CHRF(), hypotheses, references)


def paper_style_bleu(hypotheses: list[str], references: list[str], target_lang: str = "de") -> Bleu:
    """Tokenised, case-sensitive BLEU without smoothing, as the paper and T2T's get_ende_bleu.sh report it.

    Both sides, given as plain text, get ASCII punctuation and the Moses tokeniser; German compounds are
    split at hyphens ("atat" in the signature). Then BLEU counts what spaces separate, as Moses'
    multi-bleu.perl does.

    Args:
        hypotheses: plain text lines.
        references: plain text lines, as many.
        target_lang: two letters, the language of both.

    Raises:
        T2TError: there are no lines, unequal numbers of them, or the language is unknown to the tokeniser.
    """
    from sacrebleu.metrics import BLEU

    _check_lines(hypotheses, references)
    tokenised = (_paper_tokens(lines, target_lang) for lines in (hypotheses, references))
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    bleu = _score(metric, *tokenised)
    tokens = f"tok:moses-{target_lang}" + ("-atat" if target_lang == "de" else "")
    return replace(bleu, signature=bleu.signature.replace("tok:none", tokens))


def read_lines(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without their ends and a byte order mark.

    Raises:
        T2TError: the file is missing, empty, or not UTF-8 (the line is named).
    """
    if not path.is_file():
        raise T2TError(f"{path}: no such file")
    lines = text_lines(path.read_bytes(), str(path))
    if not lines:
        raise T2TError(f"{path}: the file is empty")
    return lines


def _score(metric: object, hypotheses: list[str], references: list[str]) -> Bleu:
    _check_lines(hypotheses, references)
    result = metric.corpus_score(hypotheses, [references])  # type: ignore[attr-defined]
    signature = str(metric.get_signature())  # type: ignore[attr-defined]
    details = str(result).partition(f" = {result.score:.2f} ")[2]
    return Bleu(result.score, signature, details)


def _check_lines(hypotheses: list[str], references: list[str]) -> None:
    if len(hypotheses) != len(references):
        raise T2TError(f"{len(hypotheses)} translations but {len(references)} references")
    if not hypotheses:
        raise T2TError("there is nothing to score: no translations")


def _paper_tokens(lines: list[str], language: str) -> list[str]:
    from sacremoses import MosesPunctNormalizer, MosesTokenizer
    from sacremoses.corpus import NonbreakingPrefixes

    known = set(NonbreakingPrefixes().available_langs.values())
    if language not in known:
        raise T2TError(did_you_mean(language, known, "target language"))
    ascii_punctuation, moses = MosesPunctNormalizer(language).replace_unicode_punct, MosesTokenizer(language)
    tokenised = [moses.tokenize(ascii_punctuation(line), return_str=True) for line in lines]
    if language != "de":
        return tokenised
    return [COMPOUND_HYPHEN.sub(SPLIT_COMPOUND, line) for line in tokenised]

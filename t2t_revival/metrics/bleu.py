"""BLEU and chrF of translations (section 6.1), without TensorFlow.

sacreBLEU scores are comparable between papers. The paper's own 28.4 is not a sacreBLEU score: it was computed
on tokenised text with compounds split at hyphens, as T2T's get_ende_bleu.sh does. `paper_style_bleu` does the
same; compare it only with such scores.

All scores raise `T2TError` where there are no lines, or unequal numbers of them, or others than strings.

sacreBLEU counts words by a tokenizer. The default, 13a, splits at spaces and punctuation: a Chinese sentence
would be one word, and BLEU 0 wherever a single character is wrong. The code of the target language decides:

- Chinese, Japanese and Korean: sacreBLEU's `zh`, `ja-mecab` and `ko-mecab`;
- other languages without spaces, such as Thai: `char`, since sacreBLEU's `spm` and `flores200` would
  download models;
- where the library of a tokenizer is not installed: `char`;
- all others, and where the language is unknown: 13a.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.utils.texts import texts_of

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU


COMPOUND_HYPHEN = re.compile(r"(\S)-(\S)")
LAST_PLANE = 0x20000  # no punctuation and no symbols have code points from here on
SPLIT_COMPOUND = r"\1 ##AT##-##AT## \2"
MOSES = (  # languages of sacremoses, which takes half a second to import
    "as bn ca cs de el en es et fi fr ga gu hi hu is it kn lt lv ml mni mr nl or pa pl pt ro ru sk sl sv ta "
    "tdt te yue zh"
)
MOSES_LANGUAGES = frozenset(MOSES.split())
NO_4_GRAMS = "no 4-grams: each translation has fewer than 4 tokens"
Tokenizer = Callable[[str], str]  # separates words by spaces
DEFAULT, CHARACTERS = "13a", "char"
CHINESE, JAPANESE, KOREAN = "zh", "ja-mecab", "ko-mecab"
LIBRARIES = {JAPANESE: "sacrebleu[ja]", KOREAN: "sacrebleu[ko]"}
CODES = {  # of ISO 639, and of scripts by ISO 15924
    CHINESE: "zh zho chi cmn yue wuu hak gan lzh nan hani hans hant",
    JAPANESE: "ja jpn ryu jpan hira kana hrkt",
    KOREAN: "ko kor kore hang",
    CHARACTERS: "th tha lo lao km khm my mya bur shn mnw ksw bo bod tib dz dzo nod khb tdd "
    "thai laoo khmr mymr tibt lana talu tale java bali",
}
OF_CODE = {code: name for name, codes in CODES.items() for code in codes.split()}


def bleu_metric(language: str, **options: Any) -> BLEU:
    """Makes sacreBLEU's metric with the tokenizer of a language, which its signature names.

    Args:
        language: code of the references' language, such as "zh", "zh-CN", "zho_Hant" or "jpn"; may be empty.
        **options: of sacreBLEU's BLEU.
    """
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize=tokenizer_name(language), **options)


@cache
def tokenizer_for(language: str) -> Tokenizer:
    """Returns the tokenizer of `bleu_metric`."""
    tokenizer: Tokenizer = bleu_metric(language).tokenizer
    return tokenizer


@cache
def tokenizer_name(language: str) -> str:
    """Returns the name of a language's tokenizer, or `char` where its library is not installed."""
    from sacrebleu.metrics import BLEU

    name = _of_code(language)
    try:
        BLEU(tokenize=name)
    except (ImportError, RuntimeError, AssertionError):  # sacreBLEU asserts that the dictionary is its own
        return CHARACTERS
    return name


def primary_code(language: str) -> str:
    """Returns a language's code without region and script: "pt" of "pt-BR"."""
    return re.split("[^a-z]", language.lower(), maxsplit=1)[0]


def missing_library(language: str) -> str:
    """Returns what to install for BLEU of a text's words instead of its characters; empty for nothing."""
    name = _of_code(language)
    if tokenizer_name(language) == name:
        return ""
    return f"counts characters, since {name} is not installed: pip install '{LIBRARIES[name]}'"


def _of_code(language: str) -> str:
    if scripts := re.findall("[^a-z]([a-z]{4})(?![a-z])", language.lower()):
        return OF_CODE.get(scripts[0], DEFAULT)  # such as zh-Latn, which has spaces
    return OF_CODE.get(primary_code(language), DEFAULT)


@dataclass(frozen=True)
class CorpusScore:
    """A score of all lines; `str` puts all of it in one line."""

    score: float  # 0 to 100
    signature: str  # how it was computed
    details: str = ""  # n-gram precisions, brevity penalty and lengths
    tokenizer: str = ""  # that of BLEU
    note: str = ""  # such as why the score is 0 even for a perfect translation

    def __str__(self) -> str:
        score = " ".join(filter(None, [f"{self.score:.2f}", self.signature, self.details]))
        return f"{score}; {self.note}" if self.note else score


def sacrebleu_score(
    hypotheses: list[str], *references: list[str], lowercase: bool = False, target_lang: str = ""
) -> CorpusScore:
    """BLEU by sacreBLEU on plain text, with exponential smoothing.

    Args:
        hypotheses: the translations.
        *references: one list or several, each with a line for each translation.
        lowercase: whether case is ignored.
        target_lang: decides the tokenizer: see `bleu_metric`.
    """
    bleu = _score(bleu_metric(target_lang, lowercase=lowercase), hypotheses, *references)
    return replace(bleu, note="; ".join(filter(None, [bleu.note, missing_library(target_lang)])))


def chrf_score(hypotheses: list[str], *references: list[str]) -> CorpusScore:
    """chrF2 by sacreBLEU on plain text: character n-grams up to 6, recall counts twice."""
    from sacrebleu.metrics import CHRF

    return _score(CHRF(), hypotheses, *references)


def t2t_bleu(hypotheses: list[str], references: list[str], lowercase: bool = False) -> float:
    """BLEU as T2T's `t2t-bleu` computes it (its `bleu_hook.py`), 0 to 100.

    The tokeniser is mteval-v14's international one: punctuation is split off except next to a digit, symbols
    always, a backslash never. An order of n-grams that has no match counts as half a match, the next one as a
    quarter. Orders for which every line is too short count as matched. It differs from sacreBLEU's `tok:intl`
    in that last point, in backslashes, and next to numerals that are not decimal digits.
    """
    from sacrebleu.metrics import BLEU

    hypotheses, references = _lines(hypotheses, references)
    hypothesis_tokens, reference_tokens = (
        [_t2t_tokens(line.lower() if lowercase else line) for line in lines]
        for lines in (hypotheses, references)
    )
    counted = BLEU(tokenize="none", force=True).corpus_score(hypothesis_tokens, [reference_tokens])
    if not counted.sys_len:
        return 0.0
    log_precisions, smoothing = 0.0, 1.0
    for matches, total in zip(counted.counts, counted.totals, strict=True):
        if total and not matches:
            smoothing /= 2
        if total:
            log_precisions += math.log((matches or smoothing) / total)
    log_brevity = min(0.0, 1 - counted.ref_len / counted.sys_len)
    return 100 * math.exp(log_precisions / len(counted.totals) + log_brevity)


def paper_style_bleu(hypotheses: list[str], references: list[str], target_lang: str) -> CorpusScore:
    """Tokenised, case-sensitive BLEU without smoothing, as the paper and T2T's get_ende_bleu.sh report it.

    Both sides, plain text in `target_lang` (two letters), get ASCII punctuation and the Moses tokeniser; in
    German only, compounds are split at hyphens ("atat" in the signature). Then BLEU counts the tokens between
    spaces, as Moses' multi-bleu.perl does.

    Raises:
        T2TError: the language is unknown to the tokeniser.
    """
    from sacrebleu.metrics import BLEU
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    if target_lang not in MOSES_LANGUAGES:
        raise T2TError(did_you_mean(target_lang, MOSES_LANGUAGES, "target language"))
    ascii_punctuation = MosesPunctNormalizer(target_lang).replace_unicode_punct
    moses, tokenised = MosesTokenizer(target_lang), []
    for lines in _lines(hypotheses, references):
        tokens = [moses.tokenize(ascii_punctuation(line), return_str=True) for line in lines]
        if target_lang == "de":
            tokens = [COMPOUND_HYPHEN.sub(SPLIT_COMPOUND, line) for line in tokens]
        tokenised.append(tokens)
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    bleu = _score(metric, *tokenised)
    tokenizer = f"tok:moses-{target_lang}" + ("-atat" if target_lang == "de" else "")
    return replace(bleu, signature=bleu.signature.replace("tok:none", tokenizer))


def _score(metric: Any, hypotheses: list[str], *references: list[str]) -> CorpusScore:
    checked = [_lines(hypotheses, each) for each in references]
    result = metric.corpus_score(checked[0][0], [each for _, each in checked])
    details = str(result).partition(f" = {result.score:.2f} ")[2]
    too_short = not all(getattr(result, "totals", ()))
    tokenizer = getattr(metric, "tokenizer_signature", "")
    return CorpusScore(
        result.score, str(metric.get_signature()), details, tokenizer, NO_4_GRAMS if too_short else ""
    )


def _lines(hypotheses: list[str], references: list[str]) -> tuple[list[str], list[str]]:
    """Returns both, checked."""
    hypotheses, references = texts_of(hypotheses, "translations"), texts_of(references, "references")
    if len(hypotheses) != len(references):
        raise T2TError(f"{len(hypotheses)} translations but {len(references)} references")
    if not hypotheses:
        raise T2TError("there is nothing to score: no translations")
    return hypotheses, references


def _t2t_tokens(line: str) -> str:
    """A line with a space between any two tokens of T2T's tokeniser."""
    for pattern, separated in _t2t_separators():
        line = pattern.sub(separated, line)
    return line


@cache
def _t2t_separators() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns and replacements of `_t2t_tokens`, in order."""
    of_kind: dict[str, list[str]] = {"P": [], "S": []}
    for character in map(chr, range(LAST_PLANE)):
        of_kind.get(unicodedata.category(character)[0], []).append(character)
    of_kind["P"].remove("\\")
    punctuation, symbols = (f"([{re.escape(''.join(characters))}])" for characters in of_kind.values())
    return (
        (re.compile(rf"([^\d]){punctuation}"), r"\1 \2 "),
        (re.compile(rf"{punctuation}([^\d])"), r" \1 \2"),
        (re.compile(symbols), r" \1 "),
    )

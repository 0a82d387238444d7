"""The tokenizer with which sacreBLEU counts the words of a language.

The default, 13a, splits at spaces and punctuation. A Chinese sentence would be one word, and BLEU 0 wherever
a single character is wrong. All BLEU of this project is counted with one of these:

- Chinese, Japanese and Korean: sacreBLEU's `zh`, `ja-mecab` and `ko-mecab`;
- other languages without spaces, such as Thai: `char`, since sacreBLEU's `spm` and `flores200` would
  download models;
- where the library of a tokenizer is not installed: `char`;
- all others: 13a.

Where the language's code does not decide (none is given, "many", "de"), the script of the references does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU

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
SCRIPTS = {
    JAPANESE: "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f",  # kana
    CHINESE: "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    KOREAN: "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3",
    CHARACTERS: "\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaa7f",
    DEFAULT: "",
}
LETTERS = {name: re.compile(f"[{characters}]") for name, characters in SCRIPTS.items() if characters}
LETTERS[DEFAULT] = re.compile(rf"[^\W\d_{''.join(SCRIPTS.values())}]")
SHARE = 0.1  # of the lines; a script of fewer is that of foreign names


def bleu_metric(language: str, references: Sequence[str], **options: Any) -> BLEU:
    """Makes sacreBLEU's metric with the tokenizer of a language, which its signature names.

    Text of several scripts has each line tokenized by its own, and a signature such as tok:13a+zh.

    Args:
        language: code of the references' language, such as "zh", "zh-CN", "zho_Hant" or "jpn"; may be empty.
        references: lines whose script decides where the language does not.
        **options: of sacreBLEU's BLEU.
    """
    from sacrebleu.metrics import BLEU

    names = _usable(language, references)
    if len(names) == 1:
        return BLEU(tokenize=names[0], **options)
    metric = BLEU(tokenize="none", force=True, **options)
    metric.tokenizer, metric.tokenizer_signature = _tokenize_by_script, "+".join(names)
    return metric


def tokenizer_for(language: str, references: Sequence[str]) -> Tokenizer:
    """Returns the tokenizer of `bleu_metric`."""
    names = _usable(language, references)
    return _tokenizer(names[0]) if len(names) == 1 else _tokenize_by_script


def name_of_code(language: str) -> str:
    """Returns the name of the tokenizer that a language's code decides; empty where the text must."""
    wanted = _of_code(language)
    return usable(wanted) if wanted else ""


def primary_code(language: str) -> str:
    """Returns a language's code without region and script: "pt" of "pt-BR"."""
    return re.split("[^a-z]", language.lower(), maxsplit=1)[0]


def missing_libraries(language: str, references: Sequence[str]) -> str:
    """Returns what to install for BLEU of a text's words instead of its characters; empty for nothing."""
    return "; ".join(
        f"counts characters, since {name} is not installed: pip install '{LIBRARIES[name]}'"
        for name in sorted(_wanted(language, references))
        if usable(name) != name
    )


@cache
def usable(name: str) -> str:
    """Returns the name of a tokenizer, or `char` where its library is not installed."""
    try:
        _tokenizer(name)
    except (ImportError, RuntimeError, AssertionError):  # sacreBLEU asserts that the dictionary is its own
        return CHARACTERS
    return name


@cache
def _tokenizer(name: str) -> Tokenizer:
    """Makes one of sacreBLEU's tokenizers."""
    from sacrebleu.metrics import BLEU

    made: Tokenizer = BLEU(tokenize=name).tokenizer
    return made


def _tokenize_by_script(line: str) -> str:
    """Separates the words of a line by spaces, with the tokenizer of its script."""
    return _tokenizer(usable(_of_script(line) or DEFAULT))(line)


def _usable(language: str, references: Sequence[str]) -> list[str]:
    return sorted(set(map(usable, _wanted(language, references))))


def _wanted(language: str, references: Sequence[str]) -> set[str]:
    """Returns the tokenizers of a language, or of the scripts of a text, installed or not."""
    if of_code := _of_code(language):
        return {of_code}
    counts = Counter(filter(None, map(_of_script, references)))
    if counts[JAPANESE] >= counts[CHINESE]:  # lines without kana among Japanese ones
        counts[JAPANESE] += counts.pop(CHINESE, 0)
    least = SHARE * counts.total()
    return {name for name, count in counts.items() if count > least} or {DEFAULT}


def _of_code(language: str) -> str:
    if scripts := re.findall("[^a-z]([a-z]{4})(?![a-z])", language.lower()):
        return OF_CODE.get(scripts[0], DEFAULT)  # such as zh-Latn, which has spaces
    return OF_CODE.get(primary_code(language), "")


def _of_script(line: str) -> str:
    """Returns the tokenizer of most letters of a line; empty without letters."""
    counts = {name: len(letters.findall(line)) for name, letters in LETTERS.items()}
    if counts[JAPANESE]:
        counts[JAPANESE] += counts.pop(CHINESE)
    name = max(counts, key=lambda name: counts[name])
    return name if counts[name] else ""

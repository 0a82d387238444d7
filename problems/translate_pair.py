"""Translation between any two languages, without a class of its own: `translate_fi_en`."""

import re
from collections.abc import Sequence
from typing import Any

from t2t_revival.problems.problem import Problem
from t2t_revival.registration import REVERSED

CODE = (
    r"[a-z]{2,3}(?:_(?:[A-Z][a-z]{3}|[A-Z]{2}|\d{3}))*"  # of a language, its script and its region (RFC 5646)
)
NAME = re.compile(rf"translate_({CODE})_({CODE})")
ALIKE = re.compile(r"translate_[A-Za-z]{2,3}[_-]?[A-Za-z]{2,3}([_-]?\w{2,4})*")  # but for marks and case


def explain(name: str) -> str:
    """Explains the name of a problem of languages with regions or scripts; "" for other names."""
    base = name.removesuffix(REVERSED)
    if not ALIKE.fullmatch(base) or not (re.search("[A-Z-]", base) or base.count("_") > 2):
        return ""
    return (
        f"unknown problem {name!r}: a problem of two languages is named after their codes, such as "
        "translate_en_pt, translate_en_pt_BR or translate_zh_Hans_en"
    )


class TranslatePair(Problem):
    """Text of one language to text of another one; its data is a corpus of one's own.

    Args:
        languages: codes of source and target, two or three letters each, such as ("fi", "en"); with script
            or region, as "zh_Hans" and "pt_BR".
        **settings: see `Problem`.
    """

    default_source = ""

    def __init__(self, languages: Sequence[str], **settings: Any) -> None:
        self.source_lang, self.target_lang = languages
        super().__init__(**settings)

    @property
    def name(self) -> str:
        source, target = self.source_lang, self.target_lang
        return f"translate_{target}_{source}{REVERSED}" if self._forward else f"translate_{source}_{target}"

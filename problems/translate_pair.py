"""Translation between any two languages, without a class of its own: `translate_fi_en`."""

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

from t2t_revival.problems.problem import Problem
from t2t_revival.registration import REVERSED

CODE = r"[a-z]{2,3}(?:_[A-Z][a-z]{3})?(?:_(?:[A-Z]{2}|\d{3}))?"  # of a language, its script and its region
NAME = re.compile(rf"translate_({CODE})_({CODE})")


def near_name(name: str) -> str:
    """Returns the name of two languages that differs from a name in case and separators alone; "" if none."""
    base = name.removesuffix(REVERSED)
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", base.replace("-", "_")).removeprefix("translate_").split("_")
    ways = [(word.lower(), word.upper() if len(word) < 4 else word.title()) for word in words[:6]]
    found = filter(NAME.fullmatch, ("_".join(["translate", *way]) for way in product(*ways)))
    letters = re.sub("[_-]", "", base)
    nearest = min(found, key=lambda each: sum(map(str.__ne__, each.replace("_", ""), letters)), default="")
    return nearest and nearest + name[len(base) :]


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

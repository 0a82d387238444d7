"""Translation between any two languages, without a class of its own: `translate_fi_en`."""

import re
from collections.abc import Sequence
from typing import Any

from t2t_revival.problems.problem import Problem
from t2t_revival.registration import REVERSED

NAME = re.compile(r"translate_([a-z]{2,3})_([a-z]{2,3})")


class TranslatePair(Problem):
    """Text of one language to text of another one; its data is a corpus of one's own.

    Args:
        languages: codes of source and target, two or three letters each, such as ("fi", "en").
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

"""`Description`: an exported model, as it describes itself."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.data.vocabulary import Vocabularies, open_vocabulary
from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.lines.calls import Call
from t2t_revival.serving.client import text_of
from t2t_revival.serving.signatures import DESCRIBE
from t2t_revival.utils.unicode_forms import NFC

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

LIMITS = ("max_length_ratio", "max_length_factor")  # of outputs, which no request changes


@dataclass(frozen=True)
class Description:
    """An exported model as whoever asks it must know it; its signature `DESCRIBE` tells it.

    Attributes:
        vocabularies: of source and target.
        max_length: maximum number of tokens of an input, EOS included.
        max_length_ratio: see `DecodeHParams`.
        aligns: whether the model aligns words, by its signature `SCORE`.
        unicode_form: Unicode's form of lines that are like the training data; "" if any is right.
        max_length_factor: see `DecodeHParams`.
    """

    vocabularies: Vocabularies
    max_length: int
    max_length_ratio: float
    aligns: bool
    unicode_form: str = NFC
    max_length_factor: float = 0.0

    @classmethod
    def of(cls, translator: Translator, aligns: bool) -> Description:
        """Returns the description of a model that is served as a translator has it."""
        options = translator.options
        limits = {name: getattr(options, name) for name in LIMITS}
        form = "" if options.unicode_form else translator.trained_form
        return cls(translator.vocabularies, translator.max_length, aligns=aligns, unicode_form=form, **limits)

    @classmethod
    async def asked(cls) -> Description:
        """Returns the description that a model tells, by one `Call`.

        Raises:
            T2TError: there is no response, or the model has none.
        """
        (text,) = (await Call(DESCRIBE, {"inputs": [""]}))["description"]
        values = json.loads(text_of(text))
        files = values.pop("vocabularies")
        opened = [open_vocabulary(Path(name), base64.b64decode(content)) for name, content in files]
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        return cls(vocabularies=Vocabularies.of(opened), **known)

    def to_json(self) -> str:
        """Returns the description as an exported model holds it."""
        vocabularies = [
            (one.path.name, base64.b64encode(one.content).decode()) for one in self.vocabularies.all
        ]
        names = [field.name for field in fields(self) if field.name != "vocabularies"]
        values = {name: getattr(self, name) for name in names}
        return json.dumps({"vocabularies": vocabularies, **values})

    @cached_property
    def spelling(self) -> Any:
        """The spelling of phrases, for tables of a search."""
        return addon("spelling")(self.vocabularies.targets)

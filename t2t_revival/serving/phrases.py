"""What an exported model tells of itself, and the tables of phrases that whoever asks it makes by that."""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_revival.data.vocabulary import Vocabularies, open_vocabulary
from t2t_revival.decoding.lexical_tables import LexicalTables
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.phrases import OTHER_CLASSES, Spelling
from t2t_revival.serving.client import text_of
from t2t_revival.serving.signatures import DESCRIBE, Inputs

if TYPE_CHECKING:
    from t2t_revival.serving.client import Model

Requests = Generator[Inputs, Mapping[str, Any], dict[int, list[Translation]]]


@dataclass(frozen=True)
class Description:
    """What whoever asks an exported model must know of it; its signature `DESCRIBE` tells it.

    Attributes:
        vocabularies: of source and target.
        max_length: maximum number of tokens of an input, EOS included.
        max_length_ratio: see `DecodeHParams`.
        aligns: whether the model aligns words, by its signature `SCORE`.
    """

    vocabularies: Vocabularies
    max_length: int
    max_length_ratio: float
    aligns: bool

    @classmethod
    def of(cls, model: Model) -> Description:
        """Returns the description that a model tells.

        Raises:
            T2TError: there is no response, or the model has none.
        """
        (text,) = model.predict(DESCRIBE, {"inputs": [""]})["description"]
        values = json.loads(text_of(text))
        files = values.pop("vocabularies")
        opened = [open_vocabulary(Path(name), base64.b64decode(content)) for name, content in files]
        return cls(vocabularies=Vocabularies(opened[0], opened[-1]), **values)

    def to_json(self) -> str:
        """Returns the description as an exported model holds it."""
        vocabularies = [
            (one.path.name, base64.b64encode(one.content).decode()) for one in self.vocabularies.all
        ]
        values = {name: getattr(self, name) for name in ("max_length", "max_length_ratio", "aligns")}
        return json.dumps({"vocabularies": vocabularies, **values})

    @cached_property
    def spelling(self) -> Spelling:
        """Spells phrases."""
        return Spelling(self.vocabularies.targets)


def pack(tables: LexicalTables) -> list[str]:
    """Returns a text for each sentence: web-safe base64 of int32, little-endian.

    They are the numbers of phrases, of states and of tokens in the alphabet, and then the sentence's row of
    each table. Sentences of any sizes can therefore be one batch of a server.
    """
    phrases = tables.costs.shape[1]
    sizes = [phrases, tables.gains.shape[1] // phrases, tables.alphabet.shape[1]]
    rows = np.concatenate([np.tile(sizes, (len(tables.costs), 1)), *tables], axis=1).astype("<i4")
    return [base64.urlsafe_b64encode(row.tobytes()).decode() for row in rows]


NO_PHRASES = pack(
    LexicalTables(
        alphabet=np.array([[-1]]),
        transitions=np.zeros((1, OTHER_CLASSES + 1), int),
        ended=np.array([[False]]),
        gains=np.array([[0]]),
        next_tokens=np.array([[0]]),
        costs=np.array([[1]]),
        overlaps=np.array([[0]]),
        required=np.array([[0]]),
        forbidden=np.array([[False]]),
        reserved=np.array([[1]]),
    )
)[0]

"""Tables of phrases as text, as exported models take them; `packed_tables.unpack` unpacks them."""

from __future__ import annotations

import base64

import numpy as np

from t2t_revival.addons.lexical.phrases import OTHER_CLASSES
from t2t_revival.addons.lexical.tables import LexicalTables


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

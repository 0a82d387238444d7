"""Shortlists: the tokens that may translate a source; logits of all others need not be computed.

Reference: Jean et al., 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section
3.3; Marian's `--shortlist`; CTranslate2's vocabulary map.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD, UNK
from t2t_revival.decoding.options import BY_LINE, DecodeHParams
from t2t_revival.decoding.translations import Translations
from t2t_revival.errors import T2TError


class Shortlist:
    """Selects the tokens of a batch: translations of its pieces, these themselves, and frequent tokens.

    The pieces themselves are selected where source and target have the same vocabulary.

    Args:
        translations: of the model's vocabularies.
        by_line: whether a line may use its own tokens only, so that its output does not depend on its batch.
            Otherwise it may use those of all lines of its batch.

    Attributes:
        variables: variables that a SavedModel must hold.
    """

    def __init__(self, translations: Translations, by_line: bool) -> None:
        self._by_line = by_line
        vocab_size = translations.target_vocab_size or len(translations.best)
        self._copies = not translations.target_vocab_size
        frequent = np.isin(np.arange(vocab_size), [*translations.frequent, PAD, EOS, UNK])
        self._best = tf.Variable(translations.best, trainable=False, dtype=tf.int32)
        self._frequent = tf.Variable(frequent, trainable=False)
        self.variables = [self._best, self._frequent]

    def select(self, source_ids: Any, prefixes: Any = None) -> tuple[Any, Any]:
        """Returns the tokens of a batch, and which of them each line may use.

        Args:
            source_ids: int32 [batch, source], padded with 0.
            prefixes: beginnings of the outputs, int32 [batch, longest], which are selected too; or `None`.

        Returns:
            Ids, int32 [tokens], ascending, with PAD and EOS; and bool [batch, 1, tokens], or () if all lines
            may use all.
        """
        batch = tf.shape(source_ids)[0]
        best = tf.reshape(tf.gather(self._best, source_ids), [batch, -1])
        more = [source_ids] if self._copies else []
        selected = tf.concat([best, *more, *([] if prefixes is None else [prefixes])], axis=1)
        vocab_size = self._frequent.shape[0]
        if not self._by_line:
            places = tf.reshape(selected, [-1, 1])
            chosen = tf.scatter_nd(places, tf.ones_like(places[:, 0]), [vocab_size]) > 0
            return _ids(chosen | self._frequent), ()
        lines = tf.broadcast_to(tf.range(batch)[:, None], tf.shape(selected))
        places = tf.stack([lines, selected], axis=2)  # [batch, selected, 2]
        chosen = tf.scatter_nd(places, tf.ones_like(selected), [batch, vocab_size]) > 0
        chosen |= self._frequent[None]
        ids = _ids(tf.reduce_any(chosen, axis=0))
        return ids, tf.gather(chosen, ids, axis=1)[:, None]


def _ids(chosen: Any) -> Any:
    return tf.cast(tf.where(chosen)[:, 0], tf.int32)


def places_of(ids: Any, tokens: Any) -> Any:
    """Returns the places of ids, [batch, length], in `tokens`, ascending, which have them all."""
    return tf.reshape(tf.searchsorted(tokens, tf.reshape(ids, [-1])), tf.shape(ids))


def shortlist_of(options: DecodeHParams, translations: Translations | None) -> Shortlist | None:
    """Returns a new shortlist as the options ask for; `None` if they do not.

    Raises:
        T2TError: there are no translations.
    """
    if not options.has_shortlist:
        return None
    if translations is None:
        raise T2TError(f"decode_hparams: shortlist={options.shortlist} needs translations")
    return Shortlist(translations, options.shortlist == BY_LINE)

"""Shortlists: the tokens that may translate a source; logits of all others need not be computed.

Reference: Jean et al., 2015, "On Using Very Large Target Vocabulary for Neural Machine Translation", section
3.3; Marian's `--shortlist`; CTranslate2's vocabulary map.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from t2t_revival.data.lexicon import most_probable, translation_probabilities
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD, UNK
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line
from t2t_revival.utils.files import atomic_write

if TYPE_CHECKING:
    from t2t_revival.data.examples import Pairs
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder

FILE_NAME = "shortlist.npz"
BY_LINE = "by_line"


@dataclass(frozen=True)
class Translations:
    """The most probable translations of each piece, as `t2t-shortlist` learns them.

    Attributes:
        best: target pieces of each source piece, best first, padded with 0; int32 [vocab, best].
        frequent: the most frequent target pieces, which all shortlists have; int32 [frequent].
        fingerprint: sha256 of the vocabulary.
    """

    best: np.ndarray
    frequent: np.ndarray
    fingerprint: str

    @property
    def digest(self) -> str:
        """First 16 digits of a SHA-256 of all tokens."""
        return hashlib.sha256(self.best.tobytes() + self.frequent.tobytes()).hexdigest()[:16]

    def save(self, output_dir: Path) -> Path:
        """Writes the file of an output_dir, atomically; returns its path."""
        content = io.BytesIO()
        np.savez_compressed(
            content, best=self.best, frequent=self.frequent, fingerprint=np.array(self.fingerprint)
        )
        path = output_dir / FILE_NAME
        with atomic_write(path) as file:
            file.write(content.getvalue())
        return path

    @classmethod
    def load(cls, output_dir: Path, fingerprint: str) -> Translations:
        """Reads the file of an output_dir, which must be of the vocabulary with a fingerprint.

        Raises:
            T2TError: there is none, it is corrupt, or it is of another vocabulary.
        """
        path = output_dir / FILE_NAME
        learning = command_line("t2t-shortlist", output_dir=output_dir)
        if not path.exists():
            raise T2TError(f"decode_hparams: shortlist: no {path}; to learn it, run {learning}")
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found = cls(arrays["best"], arrays["frequent"], str(arrays["fingerprint"]))
        except Exception as error:  # NumPy and zipfile raise many kinds for a corrupt file
            raise T2TError(f"{path}: corrupt ({error}); to learn it again, run {learning}") from error
        if found.fingerprint != fingerprint:
            raise T2TError(
                f"{path}: its vocabulary is not that of this model; to learn it again, run {learning}"
            )
        return found


def learn_translations(
    pairs: Pairs,
    vocabulary: TextEncoder,
    best: int,
    frequent: int,
    on_iteration: Callable[[int, int], None] = lambda done, total: None,
) -> Translations:
    """Learns translations from training pairs.

    Args:
        pairs: ids of both sides.
        vocabulary: of both sides.
        best: translations of each piece.
        frequent: number of frequent target pieces.
        on_iteration: see `translation_probabilities`.
    """
    table = translation_probabilities(pairs, vocabulary.size, on_iteration)
    counts = np.bincount(pairs.targets.ids, minlength=vocabulary.size)
    order = np.argsort(-counts, kind="stable")[: min(frequent, np.count_nonzero(counts))]
    return Translations(most_probable(table, best), order.astype(np.int32), vocabulary.fingerprint)


def coverage(translations: Translations, pairs: Pairs) -> tuple[float, float]:
    """Returns the mean size of the shortlists of sources, and the share of target tokens that are in them."""
    always = [*translations.frequent, PAD, EOS, UNK]
    size = covered = 0
    for source, target in zip(*(np.split(side.ids, side.offsets[1:-1]) for side in pairs), strict=True):
        shortlist = np.unique(np.concatenate([translations.best[source].ravel(), source, always]))
        size += len(shortlist)
        covered += np.count_nonzero(np.isin(target, shortlist))
    return size / len(pairs.inputs.lengths), covered / len(pairs.targets.ids)


class Shortlist:
    """Selects the tokens of a batch: translations of its pieces, its pieces themselves, and frequent tokens.

    Args:
        translations: of the model's vocabulary.
        by_line: whether a line may use its own tokens only, so that its output does not depend on its batch.
            Otherwise it may use those of all lines of its batch.

    Attributes:
        variables: variables that a SavedModel must hold.
    """

    def __init__(self, translations: Translations, by_line: bool) -> None:
        self._by_line = by_line
        vocab_size = len(translations.best)
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
        selected = tf.concat([best, source_ids, *([] if prefixes is None else [prefixes])], axis=1)
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

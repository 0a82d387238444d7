"""The file of an output_dir from which shortlists are made: the most probable translations of each piece."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from t2t_revival.checkpoints.directory import MIXED
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD, UNK
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.utils.files import write_whole, writing
from t2t_revival.utils.made_of import fingerprint

if TYPE_CHECKING:
    from t2t_revival.data.examples import Pairs

FILE_NAME = "shortlist.npz"


@dataclass(frozen=True)
class Translations:
    """The most probable translations of each piece, as `t2t-shortlist` learns them.

    Attributes:
        best: target pieces of each source piece, best first, padded with 0; int32 [source vocab, best].
        frequent: the most frequent target pieces, which all shortlists have; int32 [frequent].
        fingerprint: that of the `Vocabularies`.
        target_vocab_size: size of the target's own vocabulary; 0 where source pieces are target pieces too.
        learned_from: fingerprint of the training data.
    """

    best: np.ndarray
    frequent: np.ndarray
    fingerprint: str
    target_vocab_size: int = 0
    learned_from: str = ""

    @property
    def digest(self) -> str:
        """First 16 digits of a SHA-256 of all tokens."""
        return fingerprint(self.best.tobytes() + self.frequent.tobytes())[:16]

    def save(self, output_dir: Path) -> Path:
        """Writes the file of an output_dir, atomically; returns its path.

        Raises:
            T2TError: it cannot be written.
        """
        content = io.BytesIO()
        np.savez_compressed(content, **vars(self))
        path = output_dir / FILE_NAME
        with writing(path, "free some space, or mend the folder's permissions"):
            write_whole(path, content.getvalue())
        return path

    def data_warning(self, output_dir: Path, trained_on: str) -> str:
        """Returns a warning if it was learned from other data than a checkpoint; "" else, or unknown.

        `trained_on` is the fingerprint of the checkpoint's training data; of an average, those of all.
        """
        if not trained_on or self.learned_from in ("", *trained_on.split(MIXED)):
            return ""
        learning = CommandLine("t2t-shortlist", output_dir=output_dir)
        return (
            f"warning: {output_dir / FILE_NAME} was learned from other training data ({self.learned_from}) "
            f"than the model ({trained_on}); to learn it again, run {learning}"
        )

    @classmethod
    def load(cls, output_dir: Path, fingerprint: str) -> Translations:
        """Reads the file of an output_dir, which must be of the vocabularies with a fingerprint.

        Raises:
            T2TError: there is none, it is corrupt, or it is of other vocabularies.
        """
        path = output_dir / FILE_NAME
        learning = CommandLine("t2t-shortlist", output_dir=output_dir)
        if not path.exists():
            raise T2TError(f"decode_hparams: shortlist: no {path}; to learn it, run ", learning)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                known = [arrays[attribute.name] for attribute in fields(cls)]
            found = cls(*(value if value.ndim else value.item() for value in known))
        except Exception as error:  # NumPy and zipfile raise many kinds for a corrupt file
            raise T2TError(f"{path}: corrupt; to learn it again, run ", learning) from error
        if found.fingerprint != fingerprint:
            raise T2TError(
                f"{path}: its vocabulary is not that of this model; to learn it again, run ", learning
            )
        return found


def coverage(translations: Translations, pairs: Pairs) -> tuple[float, float]:
    """Returns the mean size of the shortlists of sources, and the share of target tokens that are in them."""
    always = [*translations.frequent, PAD, EOS, UNK]
    size = covered = 0
    for source, target in zip(*(np.split(side.ids, side.offsets[1:-1]) for side in pairs), strict=True):
        own = [] if translations.target_vocab_size else source
        shortlist = np.unique(np.concatenate([translations.best[source].ravel(), own, always]))
        size += len(shortlist)
        covered += np.count_nonzero(np.isin(target, shortlist))
    return size / len(pairs.inputs.lengths), covered / len(pairs.targets.ids)

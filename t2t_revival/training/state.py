"""Where a training stands, apart from its weights: what a checkpoint's meta data holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from t2t_revival.data.position import Position
from t2t_revival.errors import T2TError
from t2t_revival.training.curve_files import DATA, DECODING, TRAIN


@dataclass(frozen=True)
class Seen:
    """Data consumed since the first session of a training.

    Attributes:
        target_tokens: without padding.
        source_tokens: without padding.
        examples: sentence pairs.
        seconds: spent in training, evaluations included.
    """

    target_tokens: int = 0
    source_tokens: int = 0
    examples: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Fingerprints:
    """Fingerprints of what a training learns from and is measured on; an empty one is unknown.

    Attributes:
        train: of the training split; stored in each checkpoint and in train.csv.
        dev: of the dev split; stored in dev.csv, as what loss, perplexity and accuracy depend on.
        decoding: of the way in which dev sentences are decoded, for BLEU and F1.
    """

    train: str = ""
    dev: str = ""
    decoding: str = ""

    def labels(self, curve: str) -> dict[str, str]:
        """The columns of train.csv or dev.csv that say what a row was measured on."""
        return {DATA: self.train} if curve == TRAIN else {DATA: self.dev, DECODING: self.decoding}


@dataclass(frozen=True)
class TrainingState:
    """Where a training stands.

    Attributes:
        step: updates done.
        position: the next batch.
        seen: data consumed, that of left out updates too.
        left_out: updates that were not done because loss or gradients were not finite.
        overflows: updates that were not done because scaled gradients overflowed float16.
        data: fingerprint of the training data; empty in checkpoints of earlier versions, and imported ones.
    """

    step: int = 0
    position: Position = field(default_factory=Position)
    seen: Seen = field(default_factory=Seen)
    left_out: int = 0
    overflows: int = 0
    data: str = ""

    @classmethod
    def from_meta(cls, meta: dict[str, Any], path: Path) -> TrainingState:
        """From a checkpoint's meta data.

        Raises:
            T2TError: `path` is an average, from which no training goes on, or its meta data is damaged.
        """
        try:
            position, seen = Position(**meta["position"]), Seen(**meta["seen"])
            counts = meta.get("left_out", 0), meta.get("overflows", 0)
            return cls(meta["step"], position, seen, *counts, meta.get("data", ""))
        except (KeyError, TypeError) as error:
            raise T2TError(f"{path}: no checkpoint that a training can go on from ({error})") from error

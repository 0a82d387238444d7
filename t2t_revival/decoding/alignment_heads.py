"""Attention heads that align words, and the links that follow from their weights.

A head may attend to the source of a token where the token is predicted, or where it is read, a position
later: then it knows the token, and often aligns better (Chen et al., 2020, "Accurate Word Alignment Induction
from Neural Machine Translation", SHIFT-ATT).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.spans import Words
from t2t_revival.data.word_alignment import Link
from t2t_revival.decoding import capabilities
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.hparams import HParams
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import writing

FILE_NAME = "alignment.json"
GUIDED_SHARE = 0.5


class LinkRule(NamedTuple):
    """The rule by which the weights of words make links.

    Attributes:
        share: a target word is linked with the source words that have at least this share of the weight of
            the one with most; 1 links it with that one alone.
        null: whether a target word has no link where the end of the source has more weight than any word.
    """

    share: float = 1.0
    null: bool = False

    def align(
        self, attention: np.ndarray, source_words: Words, words: Words, num_tags: int = 0
    ) -> tuple[np.ndarray, list[Link]]:
        """Returns the weights of words, and the links that they make, sorted by words of the target.

        A weight is the sum over the tokens of a source word, and the mean over those of a target word.

        Args:
            attention: mean weights of the heads, [target or more, source and EOS or more].
            source_words: of the source, tags included.
            words: of the target.
            num_tags: number of tags before the source: they count for the rule, and are no words of the
                result.

        Returns:
            Weights, [target words, source words], and links; none if a side has no tokens.
        """
        if not (source_words.of_tokens and words.of_tokens):
            return np.zeros((0, 0), np.float32), []
        sources, targets = _members(source_words), _members(words)
        means = (targets / np.maximum(targets.sum(0), 1)).T  # [target words, target tokens]
        rows = means @ attention[: len(targets), : len(sources) + 1]
        weights, of_end = rows[:, :-1] @ sources, rows[:, -1]
        most = weights.max(-1)
        linked = (weights >= self.share * most[:, None]) & (most > 0)[:, None]
        if self.null:
            linked &= (most >= of_end)[:, None]
        links = [(source - num_tags, target) for target, source in np.argwhere(linked).tolist()]
        return weights[:, num_tags:], [link for link in links if link[0] >= 0]


def _members(words: Words) -> np.ndarray:
    """Returns which token is part of which word, float32 [tokens, words]."""
    return (np.array(words.of_tokens)[:, None] == np.arange(len(words.spans))).astype(np.float32)


@dataclass(frozen=True)
class AlignmentHeads:
    """Heads of the attention over the encoder's output, and the rule by which their mean makes links.

    Attributes:
        layer: number of the decoder's layer, from 1.
        heads: their numbers in the layer, from 1.
        shifted: whether the weights of a token are those where it is read, not where it is predicted.
        share: see `LinkRule`.
        null: see `LinkRule`.
    """

    layer: int
    heads: tuple[int, ...]
    shifted: bool
    share: float = 1.0
    null: bool = False

    @classmethod
    def find(cls, output_dir: Path, hparams: HParams) -> AlignmentHeads | None:
        """Returns the heads that were chosen for a model, else the one that `guided_alignment_weight` taught.

        `None` if there are none.

        Raises:
            T2TError: the file of those that were chosen is corrupt.
        """
        path = output_dir / FILE_NAME
        if path.exists():
            choosing = CommandLine("t2t-align", output_dir=output_dir, choose_heads=True)
            stored = checked_json.load(path, f"run {choosing}")
            known = {field.name: stored[field.name] for field in fields(cls)}
            return cls(**{**known, "heads": tuple(known["heads"])})
        if hparams.guided_alignment_weight:
            layer, head = hparams.guided_head
            return cls(layer + 1, (head + 1,), shifted=True, share=GUIDED_SHARE, null=True)
        return None

    def save(self, output_dir: Path, choice: Mapping[str, float] | None = None) -> Path:
        """Writes the file of an output_dir, with figures of the choice; returns its path.

        Raises:
            T2TError: it cannot be written.
        """
        path = output_dir / FILE_NAME
        with writing(path, "free some space, or mend the folder's permissions"):
            checked_json.save(path, {**asdict(self), **(choice or {})})
        return path

    def check(self, hparams: HParams) -> None:
        """Checks that a model has these heads.

        Raises:
            T2TError: it has not, its decoder has no self-attention, or it has reversed targets.
        """
        capabilities.check({"alignments": "alignments"}, *capabilities.places_of(hparams))
        if self.layer > hparams.decoder_layers or max(self.heads) > hparams.num_heads:
            raise T2TError(
                f"alignments: {FILE_NAME} names layer {self.layer}, heads {self.heads}, and the model has "
                f"{hparams.decoder_layers} layers with {hparams.num_heads} heads"
            )

    @property
    def rule(self) -> LinkRule:
        """The rule without the heads."""
        return LinkRule(self.share, self.null)


def all_heads(hparams: HParams) -> AlignmentHeads:
    """Returns all heads of the last layer, where tokens are predicted."""
    return AlignmentHeads(hparams.decoder_layers, tuple(range(1, hparams.num_heads + 1)), shifted=False)

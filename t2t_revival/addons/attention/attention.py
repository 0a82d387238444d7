"""Attention weights of a trained model for one sentence and its output."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.errors import T2TError
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.translator import Translator

MAX_TOKENS = 100  # per side; more cannot be told apart in a picture
START = "<start>"  # the decoder's input before its first token
ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
TITLES = {
    ENCODER: "encoder self-attention",
    DECODER: "decoder self-attention",
    CROSS: "encoder-decoder attention",
}
COLOURS = (  # of heads, by number; all are legible on white
    *("#2a6fbb", "#d1620a", "#2f8f3f", "#c8313a", "#7d57b0", "#8c564b", "#d0479a", "#0e8f95"),
    *("#86860f", "#5a6472", "#3743b8", "#b57f08", "#559718", "#7c1d3f", "#a43bd3", "#128bce"),
)


@dataclass(frozen=True, eq=False)
class AttentionWeights:
    """Attention weights of one kind.

    Attributes:
        kind: "encoder" or "decoder" for self-attention, "cross" for the decoder's over the encoder.
        queries: a label for each query position; in the decoder, the token predicted there.
        memory: a label for each memory position.
        layers: numbers of the layers, from 1 as in the paper.
        heads: numbers of the heads, from 1.
        weights: float32 [layers, heads, query, memory]; each row sums to 1.
    """

    kind: str
    queries: list[str]
    memory: list[str]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weights: np.ndarray

    def select(self, layer: int | None, head: int | None) -> AttentionWeights:
        """Returns one layer, one head or both; `None` selects all, an unknown number nothing."""
        layers = tuple(n for n in self.layers if layer in (None, n))
        heads = tuple(n for n in self.heads if head in (None, n))
        selected = np.ix_([self.layers.index(n) for n in layers], [self.heads.index(n) for n in heads])
        return dataclasses.replace(self, layers=layers, heads=heads, weights=self.weights[selected])

    def from_word(self, word: str) -> AttentionWeights:
        """Returns the weights of one word's queries, and 0 for all other queries.

        Raises:
            T2TError: there is no such word.
        """
        indices = self.token_indices(word)
        weights = np.zeros_like(self.weights)
        weights[:, :, indices] = self.weights[:, :, indices]
        return dataclasses.replace(self, weights=weights)

    def token_indices(self, word: str) -> list[int]:
        """Returns the query positions of a word's tokens, where it first occurs.

        Raises:
            T2TError: there is no such word.
        """
        ends = np.cumsum([len(query) for query in self.queries])
        letters = r"[^\W_]"  # T2T's pieces mark the end of a word by "_"
        match = re.search(f"(?<!{letters}){re.escape(word)}(?!{letters})", "".join(self.queries))
        if not match:
            raise T2TError(f"there is no word {word!r} in {' '.join(self.queries)}")
        first, last = np.searchsorted(ends, (match.start(), match.end() - 1), side="right")
        return list(range(first, last + 1))


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention weights of all kinds for one input and one output.

    Attributes:
        source: the model's input.
        target: the output.
        kinds: in the order of `KINDS`.
    """

    source: str
    target: str
    kinds: tuple[AttentionWeights, ...]

    def select(self, layer: int | None = None, head: int | None = None, kind: str | None = None) -> Attention:
        """Returns one layer, one head (from 1), one kind or a combination; `None` selects all.

        Kinds without the layer are dropped.

        Raises:
            T2TError: the model has no such layer or head.
        """
        kinds = [weights for weights in self.kinds if kind in (None, weights.kind)]
        _check_number("layer", layer, max(weights.layers[-1] for weights in kinds))
        _check_number("head", head, kinds[0].heads[-1])
        selected = (weights.select(layer, head) for weights in kinds)
        return dataclasses.replace(self, kinds=tuple(weights for weights in selected if weights.layers))


def compute_attention(translator: Translator, line: str, target: str | None = None) -> Attention:
    """Computes the attention weights of a model.

    Args:
        translator: the model, its vocabulary and its decoding options.
        line: the input.
        target: the output, in the model's form. `None` decodes the best one.

    Raises:
        T2TError: the input is empty; input or output has more than `MAX_TOKENS` tokens, or more than the
            model's maximum; the decoder has no self-attention; or the model's weights contain NaN.
    """
    if is_blank(line):
        raise T2TError("the input is empty: give a sentence")
    if (kind := translator.model.hparams.decoder_self_attention) != "attention":
        raise T2TError(f"the decoder has no self-attention to be drawn: decoder_self_attention={kind}")
    source = translator.encode(line)
    check_length("input", source, min(MAX_TOKENS, translator.max_length))
    if target is None:
        targets = translator.best_ids(source)
        check_length("output", targets, MAX_TOKENS)
    else:
        targets = translator.encode(target, is_output=True)
        check_length("target", targets, min(MAX_TOKENS, translator.max_length))
    by_kind = translator.model.attention_weights({"inputs": _row(source), "targets": _row(targets)})
    arrays = [np.asarray(batch)[0] for batch in by_kind]  # each [layers, heads, query, memory]
    if not targets or not all(np.isfinite(weights).all() for weights in arrays):
        raise T2TError("the model's weights contain NaN: use an earlier checkpoint")
    vocabularies = translator.vocabularies
    inputs, outputs = labels(vocabularies.inputs, source), labels(vocabularies.targets, targets)
    sides = ((inputs, inputs), (outputs, [START, *outputs[:-1]]), (outputs, inputs))
    kinds = (_with_labels(kind, *side, w) for kind, side, w in zip(KINDS, sides, arrays, strict=True))
    texts = vocabularies.inputs.decode(source), vocabularies.targets.decode(targets)
    return Attention(*texts, tuple(kinds))


def labels(vocabulary: TextEncoder, ids: Sequence[int]) -> list[str]:
    """Returns the piece of each id, and a readable name for special ids."""
    names = {vocabulary.unknown: "<UNK>", PAD: "<PAD>", EOS: "<EOS>"}
    return [names.get(token) or vocabulary.pieces[token] for token in ids]


def _with_labels(kind: str, queries: list[str], memory: list[str], weights: np.ndarray) -> AttentionWeights:
    layers, heads = (tuple(range(1, number + 1)) for number in weights.shape[:2])
    return AttentionWeights(kind, queries, memory, layers, heads, weights)


def _row(ids: list[int]) -> np.ndarray:
    """Returns a batch of one sentence, int32 [1, length]."""
    return np.array([ids or [EOS]], np.int32)


def check_length(side: str, ids: list[int], limit: int) -> None:
    """Raises T2TError if there are more ids than the limit; `side` is their name."""
    if len(ids) > limit:
        raise T2TError(f"the {side} has {len(ids)} tokens, the limit is {limit}: give a shorter sentence")


def _check_number(flag: str, number: int | None, last: int) -> None:
    if number is not None and not 1 <= number <= last:
        raise T2TError(f"--{flag}={number}: the model has {flag}s 1 to {last}")

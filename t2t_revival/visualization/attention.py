"""What a trained model looks at while it reads one sentence and writes another."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from t2t_revival.data.vocabulary import EOS, PAD
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabularies import TextEncoder
    from t2t_revival.decoding.translator import Translator

LONGEST = 100  # tokens of a side that can still be drawn and told apart
START = "<start>"  # what the decoder sees before its first token
ENCODER, DECODER, CROSS = KINDS = ("encoder", "decoder", "cross")
COLOURS = (  # of heads, by number; all of them can be read on white
    *("#2a6fbb", "#d1620a", "#2f8f3f", "#c8313a", "#7d57b0", "#8c564b", "#d0479a", "#0e8f95"),
    *("#86860f", "#5a6472", "#3743b8", "#b57f08", "#559718", "#7c1d3f", "#a43bd3", "#128bce"),
)


@dataclass(frozen=True, eq=False)
class Attended:
    """Attention of one kind.

    Attributes:
        kind: "encoder" and "decoder", each over itself, or "cross", the decoder's over the encoder.
        queries: a label for each position that looks. In the decoder it is the token that is written there.
        memory: a label for each position that is looked at.
        layers: numbers of the layers, counted from 1 as in the paper.
        heads: numbers of the heads, counted from 1.
        weights: float32 [layers, heads, query, memory]; over memory the sum is 1.
    """

    kind: str
    queries: list[str]
    memory: list[str]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    weights: np.ndarray

    def narrowed(self, layer: int | None, head: int | None) -> Attended:
        """One layer only, one head only, or both; of a number that there is not, nothing."""
        layers = tuple(n for n in self.layers if layer in (None, n))
        heads = tuple(n for n in self.heads if head in (None, n))
        kept = np.ix_([self.layers.index(n) for n in layers], [self.heads.index(n) for n in heads])
        return dataclasses.replace(self, layers=layers, heads=heads, weights=self.weights[kept])

    def looking_from(self, word: str) -> Attended:
        """Only what one word looks at: the weights of all other positions are 0.

        Raises:
            T2TError: there is no such word.
        """
        places = self.places(word)
        weights = np.zeros_like(self.weights)
        weights[:, :, places] = self.weights[:, :, places]
        return dataclasses.replace(self, weights=weights)

    def places(self, word: str) -> list[int]:
        """The queries that are the tokens of a word, where it first occurs.

        Raises:
            T2TError: there is no such word.
        """
        ends = np.cumsum([len(query) for query in self.queries])
        letters = r"[^\W_]"  # T2T's pieces mark the end of a word by "_"
        found = re.search(f"(?<!{letters}){re.escape(word)}(?!{letters})", "".join(self.queries))
        if not found:
            raise T2TError(f"there is no word {word!r} in {' '.join(self.queries)}")
        first, last = np.searchsorted(ends, (found.start(), found.end() - 1), side="right")
        return list(range(first, last + 1))


@dataclass(frozen=True, eq=False)
class Attention:
    """Attention of all kinds between one input and one output.

    Attributes:
        source: the input as the model got it.
        target: the output.
        kinds: in the order of `KINDS`.
    """

    source: str
    target: str
    kinds: tuple[Attended, ...]

    def narrowed(
        self, layer: int | None = None, head: int | None = None, kind: str | None = None
    ) -> Attention:
        """What is left of it when only one layer, one head or one kind is of interest.

        Args:
            layer: its number, from 1. A kind of attention that has no such layer is left out.
            head: its number, from 1.
            kind: one of `KINDS`.

        Raises:
            T2TError: the model has no such layer or head.
        """
        kinds = [attended for attended in self.kinds if kind in (None, attended.kind)]
        _check_number("layer", layer, max(attended.layers[-1] for attended in kinds))
        _check_number("head", head, kinds[0].heads[-1])
        left = (attended.narrowed(layer, head) for attended in kinds)
        return dataclasses.replace(self, kinds=tuple(attended for attended in left if attended.layers))


def attend(translator: Translator, line: str, target: str | None = None) -> Attention:
    """What the model of `translator` looks at.

    Args:
        translator: has the model and its vocabulary, and says how to decode.
        line: the input.
        target: the output in the model's words; None: the best one that the model finds.

    Raises:
        T2TError: there is no input; input or output has more than `LONGEST` tokens, or more than the model
            was trained for; its weights are not numbers.
    """
    if not line.strip():
        raise T2TError("the input is empty: give a sentence")
    source = translator.encode(line)
    _check_length("input", source, min(LONGEST, translator.max_length))
    if target is None:
        targets = translator.best_ids(source)
        _check_length("output", targets, LONGEST)
    else:
        targets = translator.encode(target, prepared=True)
        _check_length("target", targets, min(LONGEST, translator.max_length))
    found = translator.model.attention_weights({"inputs": _row(source), "targets": _row(targets)})
    weights = [np.asarray(of_kind)[0] for of_kind in found]
    if not targets or not all(np.isfinite(of_kind).all() for of_kind in weights):
        raise T2TError("the model's weights are not numbers; use an earlier checkpoint")
    vocabulary = translator.vocabulary
    read, written = labels(vocabulary, source), labels(vocabulary, targets)
    sides = ((read, read), (written, [START, *written[:-1]]), (written, read))
    kinds = (_attended(kind, *side, w) for kind, side, w in zip(KINDS, sides, weights, strict=True))
    return Attention(vocabulary.decode(source), vocabulary.decode(targets), tuple(kinds))


def labels(vocabulary: TextEncoder, ids: Sequence[int]) -> list[str]:
    """The piece of each id; those that are no text have readable names."""
    names = {vocabulary.unknown: "<UNK>", PAD: "<PAD>", EOS: "<EOS>"}
    return [names.get(token) or vocabulary.pieces[token] for token in ids]


def _attended(kind: str, queries: list[str], memory: list[str], weights: np.ndarray) -> Attended:
    layers, heads = (tuple(range(1, number + 1)) for number in weights.shape[:2])
    return Attended(kind, queries, memory, layers, heads, weights)


def _row(ids: list[int]) -> np.ndarray:
    """A batch of one sentence."""
    return np.array([ids or [EOS]], np.int32)


def _check_length(what: str, ids: list[int], most: int) -> None:
    if len(ids) > most:
        raise T2TError(
            f"the {what} has {len(ids)} tokens, and at most {most} can be drawn: give a shorter sentence"
        )


def _check_number(what: str, number: int | None, last: int) -> None:
    if number is not None and not 1 <= number <= last:
        raise T2TError(f"--{what}={number}: the model has {what}s 1 to {last}")

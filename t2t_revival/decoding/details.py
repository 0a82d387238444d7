"""Details of outputs: words, tokens, their log-probabilities, alternatives, and the words they translate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.vocabulary.spans import Span, split_words
from t2t_revival.data.word_alignment import Link, words_of
from t2t_revival.decoding.preprocessor import pad

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.annotation import Annotations

EOS_NAME = "<EOS>"
NO_WORD = -1  # of the end


class Alternative(NamedTuple):
    """A token that could have stood at a position, and its log-probability there."""

    piece: str
    log_prob: float


class Token(NamedTuple):
    """A token of an output.

    Attributes:
        piece: its name in the vocabulary; `EOS_NAME` for the end.
        log_prob: its log-probability, given the source and the tokens before it.
        word: number of the word that it is part of; -1 for the end.
        alternatives: the most probable tokens at its position, best first.
    """

    piece: str
    log_prob: float
    word: int
    alternatives: tuple[Alternative, ...]


class Word(NamedTuple):
    """A word of an output, its place, and the sum of its tokens' log-probabilities."""

    text: str
    start: int
    end: int
    log_prob: float


@dataclass(frozen=True)
class Details:
    """Details of an output. Words are what stands between white space; places count characters.

    Attributes:
        source_words: places of the source's words.
        words: of the output.
        tokens: of the output, the end included unless the output was cut before it.
        links: word alignment, sorted by words of the output; empty if it was not asked for.
    """

    source_words: tuple[Span, ...]
    words: tuple[Word, ...]
    tokens: tuple[Token, ...]
    links: tuple[Link, ...]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Details:
        """Converts from the JSON values that `dataclasses.asdict` makes of details."""
        tokens = (
            Token(piece, log_prob, word, tuple(Alternative(*other) for other in alternatives))
            for piece, log_prob, word, alternatives in values["tokens"]
        )
        return cls(
            tuple(Span(*span) for span in values["source_words"]),
            tuple(Word(*word) for word in values["words"]),
            tuple(tokens),
            tuple((source, target) for source, target in values["links"]),
        )


class Hypothesis(NamedTuple):
    """An output to be detailed.

    Attributes:
        source: the line.
        tag: what stands before the line in the model's input, with its space; "" for nothing.
        source_ids: ids of the model's input, EOS included.
        text: the output.
        ids: its tokens; EOS included unless it was cut.
    """

    source: str
    tag: str
    source_ids: list[int]
    text: str
    ids: list[int]


@dataclass(frozen=True)
class Detailer:
    """Computes details.

    Attributes:
        annotate: see `Annotator`.
        vocabularies: of source and target.
        heads: that align words; `None` for no alignment.
    """

    annotate: Callable[[np.ndarray, np.ndarray], Annotations]
    vocabularies: Vocabularies
    heads: AlignmentHeads | None = None

    def __call__(self, hypotheses: Sequence[Hypothesis]) -> list[Details]:
        """Returns the details of each output, by one pass of the model for all."""
        ended = [one.ids if one.ids[-1:] == [EOS] else [*one.ids, EOS] for one in hypotheses]
        found = self.annotate(pad([one.source_ids for one in hypotheses]), pad(ended))
        return [self._details(one, found, row) for row, one in enumerate(hypotheses)]

    def _details(self, one: Hypothesis, found: Annotations, row: int) -> Details:
        vocabulary, length = self.vocabularies.targets, len(one.ids) - (one.ids[-1:] == [EOS])
        words = words_of(vocabulary, one.ids[:length], one.text)
        columns = found.log_probs[row], found.alternatives[row], found.alternative_log_probs[row]
        each = zip(*(column.tolist() for column in columns), strict=True)
        tokens = [
            Scored(
                _piece(vocabulary, token),
                log_prob,
                [_piece(vocabulary, other) for other in others],
                others_log_probs,
            )
            for token, (log_prob, others, others_log_probs) in zip(one.ids, each, strict=False)
        ]
        return make_details(
            one.source, one.text, tokens, words, self._links(one, words, found.attention[row])
        )

    def _links(self, one: Hypothesis, words: list[int], attention: np.ndarray) -> list[Link]:
        if self.heads is None:
            return []
        ids = one.source_ids[:-1]
        source_words = words_of(self.vocabularies.inputs, ids, one.tag + one.source)
        tags = len(one.tag.split())
        rows = attention[: len(words) + 1, : len(one.source_ids)]
        found = self.heads.links(rows, source_words, words)
        return [(source - tags, target) for source, target in found if source >= tags]


class Scored(NamedTuple):
    """A token by its name, its log-probability, and the names and log-probabilities of alternatives."""

    piece: str
    log_prob: float
    alternatives: list[str]
    alternative_log_probs: list[float]


def make_details(
    source: str, text: str, scored: Sequence[Scored], words: Sequence[int], links: Iterable[Link]
) -> Details:
    """Puts details together.

    Args:
        source: the line.
        text: the output.
        scored: its tokens, the end included unless it was cut.
        words: number of the word of each token but the end; empty without words.
        links: word alignment, sorted by words of the output.
    """
    places = [*(words or [NO_WORD] * len(scored)), NO_WORD]
    sums: dict[int, float] = defaultdict(float)
    for token, word in zip(scored, words, strict=False):
        sums[word] += token.log_prob
    return Details(
        tuple(split_words(source)),
        tuple(Word(text[slice(*span)], *span, sums[number]) for number, span in enumerate(split_words(text))),
        tuple(
            Token(
                token.piece,
                token.log_prob,
                word,
                tuple(map(Alternative, token.alternatives, token.alternative_log_probs)),
            )
            for token, word in zip(scored, places, strict=False)
        ),
        tuple(links),
    )


def _piece(vocabulary: TextEncoder, token: int) -> str:
    return EOS_NAME if token == EOS else vocabulary.pieces[token]

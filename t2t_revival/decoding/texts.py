"""Texts as ids: what goes into the model, and what it is to give or to begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2t_revival.data.vocabulary import EOS
from t2t_revival.decoding.inputs import LINE_ENDS, Cut, cut, encode
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import LineError, T2TError

if TYPE_CHECKING:
    from t2t_revival.data.vocabularies import TextEncoder
    from t2t_revival.problems.problem import Text2TextProblem


@dataclass(frozen=True)
class Translation:
    """One output.

    Attributes:
        text: without a line end.
        score: log-probability / length penalty; that of an empty input's output is 0.
        repaired: whether the model gave something else than the problem asks for, such as half a tree.
    """

    text: str
    score: float
    repaired: bool = False


@dataclass(frozen=True)
class Texts:
    """Makes ids of texts, of which none has a line end.

    Attributes:
        vocabulary: of source and target.
        problem: says what the model is given for a text, and what it is to give; None: the text.
        options: how is decoded.
        max_length: tokens of an input, EOS included; what is longer is cut.
        first_line: the number of the first text, for what is said of it.
    """

    vocabulary: TextEncoder
    problem: Text2TextProblem | None
    options: DecodeHParams
    max_length: int
    first_line: int = 1

    def prepared(self, texts: list[str]) -> list[str]:
        """What the model is given for each."""
        if self.problem is None:
            return texts
        return [self.problem.prepare(text, self.options.tokenized) for text in texts]

    def sources(self, prepared: list[str], on_cut: Callable[[Cut], None]) -> list[list[int]]:
        """Ids of inputs, each with EOS, cut to `max_length`.

        Raises:
            LineError: one holds what is no character.
        """
        return cut(self._encoded(prepared), self.max_length, on_cut, self.first_line)

    def targets(self, outputs: list[str]) -> list[list[int]]:
        """Ids of outputs as people write them, each with EOS.

        Raises:
            LineError: one is not the problem's, is longer than there can be, or holds what is no character.
        """
        texts = [self._target(output, number) for number, output in enumerate(outputs, self.first_line)]
        return [[*ids, EOS] for ids in self._outputs(texts)]

    def prefixes(self, prepared: list[str], prefixes: Sequence[str] | None) -> list[list[int]] | None:
        """Ids of what outputs are to begin with, without EOS; None where nothing is asked of any.

        Args:
            prepared: the inputs.
            prefixes: one for each, "" for none.

        Raises:
            T2TError: they are not as many as inputs, or outputs are trees; a prefix has no input, is too long
                or holds what is no character.
        """
        if prefixes is None or not any(prefixes):
            return None
        if len(prefixes) != len(prepared):
            raise T2TError(f"{len(prefixes)} prefixes for {len(prepared)} lines")
        if self.options.constrained or (self.problem and self.problem.separates_words):
            raise T2TError("the beginning of an output can be given where it is text, not where it is a tree")
        pairs = zip(prepared, prefixes, strict=True)
        for number, (text, prefix) in enumerate(pairs, start=self.first_line):
            if prefix and not text.strip():
                raise LineError(number, "the beginning of an output, but no source")
        return self._outputs([prefix.translate(LINE_ENDS) for prefix in prefixes])

    def _target(self, output: str, number: int) -> str:
        try:
            return self.problem.target(output) if self.problem else output
        except T2TError as error:
            raise LineError(number, str(error)) from error

    def _outputs(self, texts: list[str]) -> list[list[int]]:
        """Ids, without EOS, of outputs or their beginnings."""
        encoded, most = self._encoded(texts), self.max_length + self.options.extra_length
        for number, ids in enumerate(encoded, start=self.first_line):
            if len(ids) >= most:
                raise LineError(
                    number,
                    f"{len(ids) + 1} tokens of output, and max_length + extra_length is {most}: "
                    "give a larger extra_length in --decode_hparams",
                )
        return encoded

    def _encoded(self, texts: list[str]) -> list[list[int]]:
        return encode(self.vocabulary, texts, self.first_line)

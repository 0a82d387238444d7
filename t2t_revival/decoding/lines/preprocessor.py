"""Text as padded ids: sources, targets and prefixes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival import registry
from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.vocabulary.text_encoder import tagged
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import LineError, T2TError
from t2t_revival.problems.problem import Problem
from t2t_revival.utils.texts import is_blank
from t2t_revival.utils.unicode_forms import normalized

if TYPE_CHECKING:
    import numpy as np

    from t2t_revival.data.vocabulary import TextEncoder, Vocabularies

LINE_ENDS = str.maketrans("\n\r", "  ")


def plain(texts: Iterable[str], options: DecodeHParams) -> list[str]:
    """Returns texts as models read and write them: line ends are spaces, characters in the options' form."""
    return [normalized(text.translate(LINE_ENDS), options.unicode_form) for text in texts]


class Piece(NamedTuple):
    """An input of a model: a line, or a sentence of it.

    Attributes:
        line: by index.
        text: the model's input, with its tag.
    """

    line: int
    text: str


class Source(NamedTuple):
    """Ids of an input, EOS included, and whether it was longer."""

    ids: list[int]
    is_cut: bool


@dataclass(frozen=True)
class Truncation:
    """An input that was too long: line `number` (from 1) has `tokens`, of which `kept` are decoded.

    Both are 0 where an exported model only tells that it is; `way_out` is then what to do, or empty.
    """

    number: int
    tokens: int = 0
    kept: int = 0
    way_out: str = ""

    def __str__(self) -> str:
        if not self.tokens:
            return f"line {self.number}: longer than the model's inputs: its end is left out{self.way_out}"
        cut = f"truncated to the first {self.kept} (hparams: max_length)"
        return f"line {self.number}: {self.tokens} tokens, {cut}"


OnTruncation = Callable[[Truncation], None]


@dataclass(frozen=True)
class Preprocessor:
    """Converts texts without line ends to ids.

    Attributes:
        vocabularies: of source and target.
        problem: converts lines to the model's input. `None` leaves them as they are.
        options: see `DecodeHParams`.
        max_length: maximum number of tokens of an input, EOS included; longer inputs are truncated.
        first_line: number of the first text, for messages.
    """

    vocabularies: Vocabularies
    problem: Problem | None
    options: DecodeHParams
    max_length: int
    first_line: int = 1

    def preprocess(self, texts: Sequence[str]) -> list[str]:
        """Returns the model's input for each text; raises LineError where one lacks a tag that it needs."""
        inputs = model_inputs(texts, self.problem, self.options)
        self.check_tags(pieces_of(inputs))
        return inputs

    def check_tags(self, inputs: Iterable[Piece]) -> None:
        """Raises LineError where one of the model's inputs lacks a tag that it needs."""
        if not (self.problem and self.problem.lines_have_tags):
            return
        known = self.vocabularies.inputs.tags
        listed = ", ".join(known)
        for line, text in inputs:
            if not is_blank(text) and text.partition(" ")[0] not in known:
                raise LineError(
                    self.first_line + line,
                    f"{text[:40]!r} begins with none of the model's tags, {listed}: write one before the "
                    "line, or give --decode_hparams=tag=TAG",
                )

    def sources(self, inputs: Sequence[Piece], on_truncation: OnTruncation) -> list[Source]:
        """Returns preprocessed inputs as ids, each with EOS, truncated to `max_length`.

        Raises:
            LineError: an input is no valid Unicode.
        """
        rows = self.encode([piece.text for piece in inputs], self.vocabularies.inputs)
        for piece, ids in zip(inputs, rows, strict=True):
            if len(ids) >= self.max_length:
                on_truncation(Truncation(self.first_line + piece.line, len(ids) + 1, self.max_length))
        return [Source([*ids[: self.max_length - 1], EOS], len(ids) >= self.max_length) for ids in rows]

    def targets(self, outputs: list[str]) -> list[list[int]]:
        """Returns the ids of outputs as people write them, each with EOS.

        Raises:
            LineError: an output does not fit the problem, is too long, or is no valid Unicode.
        """
        texts = []
        for number, output in enumerate(outputs, start=self.first_line):
            try:
                texts.append(self.problem.encode_target(output) if self.problem else output)
            except T2TError as error:
                raise LineError(number, str(error)) from error
        return [[*ids, EOS] for ids in self._encode_outputs(texts)]

    def prefixes(self, prefixes: Sequence[str] | None) -> list[list[int]] | None:
        """Returns the ids of prefixes, without EOS; raises LineError if one is too long."""
        if prefixes is None:
            return None
        return self._encode_outputs(plain(prefixes, self.options))

    def encode(self, texts: Sequence[str], vocabulary: TextEncoder) -> list[list[int]]:
        """Returns the ids of each text in one of the vocabularies, without EOS.

        Raises:
            LineError: a text is no valid Unicode.
        """
        check_unicode(texts, self.first_line)
        return [list(ids) for ids in vocabulary.encode_batch(texts)]

    def _encode_outputs(self, texts: list[str]) -> list[list[int]]:
        """Returns the ids, without EOS, of outputs or their prefixes."""
        rows = self.encode(texts, self.vocabularies.targets)
        max_tokens = self.max_length + self.options.extra_length
        for number, ids in enumerate(rows, start=self.first_line):
            if len(ids) >= max_tokens:
                raise LineError(
                    number,
                    f"the output has {len(ids) + 1} tokens, more than max_length + extra_length = "
                    f"{max_tokens}: give a larger extra_length in --decode_hparams",
                )
        return rows


def pieces_of(texts: Iterable[str]) -> list[Piece]:
    """Returns the inputs of lines that are translated as they are."""
    return [Piece(line, text) for line, text in enumerate(texts)]


def model_inputs(
    texts: Sequence[str], problem: Problem | None, options: DecodeHParams, preprocessed: bool = False
) -> list[str]:
    """Returns the model's input for each text; `preprocessed` ones are that already, with their tags.

    Raises:
        T2TError: a tag is asked for before preprocessed lines.
    """
    if preprocessed and options.tag:
        raise T2TError(
            f"decode_hparams: tag={options.tag} is for lines of your own: leave it out, for these have the "
            "tags of their corpora"
        )
    if preprocessed:
        return [*texts]
    inputs = tagged(texts, options.tag)
    return [problem.preprocess(text, options.tokenized) for text in inputs] if problem else inputs


def check_prefixes(prefixes: Sequence[str], texts: Sequence[str], first_line: int) -> None:
    """Checks the beginnings of outputs, one for each of the model's inputs; "" forces nothing.

    Raises:
        T2TError: there are more or fewer, or a prefix has no input.
    """
    if len(prefixes) != len(texts):
        raise T2TError(f"{len(prefixes)} prefixes for {len(texts)} lines: give one for each")
    for number, (text, prefix) in enumerate(zip(texts, prefixes, strict=True), start=first_line):
        if prefix and is_blank(text):
            raise LineError(number, "a prefix without a source")


def check_unicode(texts: Sequence[str], first_line: int) -> None:
    """Raises LineError for a text that is no valid Unicode."""
    for number, text in enumerate(texts, start=first_line):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise LineError(number, "not valid Unicode: it has a lone surrogate") from error


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns rows of ids as one array, int32 [rows, longest]."""
    import numpy as np

    table = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, ids in zip(table, rows, strict=True):
        row[: len(ids)] = ids
    return table


def find_problem(name: str, options: DecodeHParams) -> Problem | None:
    """Returns the problem of a run; `None` if it is of a user's package that is not imported.

    Raises:
        T2TError: the options need it.
    """
    if registry.has_problem(name):
        return registry.problem(name)
    if options.constrained:
        raise T2TError(f"constrained=True needs the problem {name}, which is unknown: give --t2t_usr_dir")
    return None


def known_tags(vocabularies: Vocabularies, problem: Problem | None) -> list[str]:
    """Returns the tags that lines may begin with; none of a parser, whose vocabulary has brackets instead."""
    is_text = problem is None or problem.targets_are_text
    return vocabularies.inputs.tags if is_text else []


def check_tag(tag: str, vocabularies: Vocabularies, problem: Problem | None) -> None:
    """Raises T2TError if lines cannot begin with a tag; "" is none."""
    if not tag:
        return
    known = known_tags(vocabularies, problem)
    if tag not in known:
        listed = ", ".join(known) or "none"
        raise T2TError(f"decode_hparams: tag={tag} is none of the model's tags: {listed}")

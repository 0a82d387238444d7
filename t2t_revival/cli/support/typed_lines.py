"""Translation of lines that are typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

from t2t_revival.cli.support.messages import say
from t2t_revival.decoding.notes import note_unaligned, note_unmet
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.outputs import Translation
    from t2t_revival.decoding.terminology import Terminology
    from t2t_revival.decoding.translator import Translator


def answering(
    translator: Translator, partial: bool, terminology: Terminology
) -> Callable[[str], Sequence[Translation]]:
    """Returns a function that translates a typed line.

    Args:
        translator: translates.
        partial: whether lines have a tab before a beginning of the output.
        terminology: what terms of a line must become.
    """
    numbers = count(1)

    def answer(line: str) -> Sequence[Translation]:
        source, _, prefix = line.partition("\t") if partial else (line, "", "")
        number = next(numbers)
        try:
            outputs = translator.nbest(
                [source],
                on_truncation=lambda truncation: say(f"warning: {truncation}"),
                prefixes=[prefix],
                first_line=number,
                constraints=[terminology.constraints(source)],
            )[0]
        except T2TError as error:
            say(f"error: {error}")
            return []
        note_unmet(f"line {number}", outputs[0], say)
        note_unaligned(f"line {number}", outputs[0], say)
        return outputs

    return answer

"""Lines with markup: their text, which is translated, and their marks, which go where the words went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from t2t_revival.data.mixture import leading_tag
from t2t_revival.decoding.markup.plain import Plain, take_out
from t2t_revival.decoding.markup.put_back import put_back
from t2t_revival.decoding.outputs import Translation
from t2t_revival.utils.blank import is_blank

Align = Callable[[list[tuple[str, str]]], Sequence[Iterable[tuple[int, int]]]]


@dataclass(frozen=True)
class MarkedLine:
    """A line without its markup.

    Attributes:
        tag: that the line begins with, with its space; it is no markup.
        plain: the rest.
    """

    tag: str
    plain: Plain

    @classmethod
    def parse(cls, line: str, kind: str, tags: Sequence[str] = ()) -> MarkedLine:
        """Takes the markup out of a line, which may begin with one of the tags; `kind` is one of `KINDS`."""
        tag = leading_tag(line, tags)
        return cls(tag, take_out(line[len(tag) :], kind))

    @property
    def text(self) -> str:
        """The text to translate, with the tag; "" if it is blank."""
        return "" if is_blank(self.plain.text) else self.tag + self.plain.text


def with_markup(
    lines: Sequence[MarkedLine], outputs: Sequence[Translation], align: Align
) -> list[Translation]:
    """Returns the outputs of lines with the markup of the lines.

    Args:
        lines: any.
        outputs: of their texts.
        align: returns the word alignments of texts and outputs; called for those whose marks have words
            beside them.
    """
    numbers = [
        number
        for number, (line, output) in enumerate(zip(lines, outputs, strict=True))
        if line.plain.marks and line.text and not is_blank(output.text)
    ]
    aligned = align([(lines[number].text, outputs[number].text) for number in numbers]) if numbers else []
    links = dict(zip(numbers, aligned, strict=True))
    marked = []
    for number, (line, output) in enumerate(zip(lines, outputs, strict=True)):
        shifted = [(word - bool(line.tag), other) for word, other in links.get(number, ())]
        marked.append(replace(output, text=put_back(line.plain, output.text, shifted)))
    return marked

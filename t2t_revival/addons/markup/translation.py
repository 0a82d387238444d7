"""Lines with markup: their text, which is translated, and their marks, which go where the words went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from t2t_revival.addons.markup.plain import Plain, take_out
from t2t_revival.addons.markup.put_back import put_back
from t2t_revival.data.vocabulary.text_encoder import leading_tag
from t2t_revival.decoding.outputs import Translation
from t2t_revival.utils.texts import is_blank

Align = Callable[[list[tuple[str, str]]], Awaitable[Iterable[Iterable[tuple[int, int]]]]]


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
        """Takes the markup out of a line, which may begin with one of the tags; `kind` is one of `MARKUP`."""
        tag = leading_tag(line, tags)
        return cls(tag, take_out(line[len(tag) :], kind))

    @property
    def text(self) -> str:
        """The text to translate, with the tag; "" if it is blank."""
        return "" if is_blank(self.plain.text) else self.tag + self.plain.text

    def shifted(self, links: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the links of the text as those of the rest, which lacks the word that is the tag."""
        return [(word - bool(self.tag), other) for word, other in links]


class MarkedLines:
    """Lines without their markup.

    Args:
        lines: any.
        kind: one of `MARKUP`.
        tags: with one of which a line may begin; they are no markup.
    """

    def __init__(self, lines: Sequence[str], kind: str, tags: Sequence[str] = ()) -> None:
        self._lines = [MarkedLine.parse(line, kind, tags) for line in lines]

    @property
    def texts(self) -> list[str]:
        """The lines to translate."""
        return [line.text for line in self._lines]

    async def put_back(self, lines: range, outputs: Sequence[Translation], align: Align) -> list[Translation]:
        """Returns the outputs of some lines with their markup.

        Args:
            lines: by index.
            outputs: of their texts.
            align: returns the word alignments of texts and outputs; called for those whose marks have words
                beside them.
        """
        marked = [self._lines[index] for index in lines]
        pairs = {
            place: (line.text, output.text)
            for place, (line, output) in enumerate(zip(marked, outputs, strict=True))
            if line.plain.marks and line.text and not is_blank(output.text)
        }
        links = dict(zip(pairs, await align([*pairs.values()]), strict=True)) if pairs else {}
        return [
            replace(output, text=put_back(line.plain, output.text, line.shifted(links.get(place, ()))))
            for place, (line, output) in enumerate(zip(marked, outputs, strict=True))
        ]

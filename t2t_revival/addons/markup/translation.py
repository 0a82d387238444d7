"""Lines with markup: their text, which is translated, and their marks, which go where the words went."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace

from t2t_revival.addons.markup.plain import take_out
from t2t_revival.addons.markup.put_back import put_back
from t2t_revival.data.vocabulary.text_encoder import leading_tag
from t2t_revival.decoding.outputs import Translation
from t2t_revival.utils.texts import is_blank

Align = Callable[[list[tuple[str, str]]], Awaitable[Iterable[Iterable[tuple[int, int]]]]]


class MarkedLines:
    """Lines without their markup.

    Args:
        lines: any.
        kind: one of `MARKUP`.
        tags: with one of which a line may begin; they are no markup.

    Attributes:
        texts: the lines to translate, with their tags; "" for blank ones.
    """

    def __init__(self, lines: Sequence[str], kind: str, tags: Sequence[str] = ()) -> None:
        self._tags = [leading_tag(line, tags) for line in lines]
        self._plains = [take_out(line[len(tag) :], kind) for line, tag in zip(lines, self._tags, strict=True)]
        self.texts = [
            "" if is_blank(plain.text) else tag + plain.text
            for plain, tag in zip(self._plains, self._tags, strict=True)
        ]

    async def put_back(self, lines: range, outputs: Sequence[Translation], align: Align) -> list[Translation]:
        """Returns the outputs of some lines with their markup.

        Args:
            lines: by index.
            outputs: of their texts.
            align: returns the word alignments of texts and outputs; called for those whose marks have words
                beside them.
        """
        pairs = {
            line: (self.texts[line], output.text)
            for line, output in zip(lines, outputs, strict=True)
            if self._plains[line].marks and self.texts[line] and not is_blank(output.text)
        }
        links = dict(zip(pairs, await align([*pairs.values()]), strict=True)) if pairs else {}
        marked = []
        for line, output in zip(lines, outputs, strict=True):
            is_tagged = bool(self._tags[line])  # the tag is a word of the text
            own = [(word - is_tagged, other) for word, other in links.get(line, ())]
            marked.append(replace(output, text=put_back(self._plains[line], output.text, own)))
        return marked

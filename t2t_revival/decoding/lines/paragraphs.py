"""Paragraphs: cut into sentences, which are translated one by one, and joined with the space between them.

Sentences end where the sentencex library finds their end. A sentence that is longer than the model's inputs
is cut after a comma or another mark of a clause, else between words, else anywhere: nothing is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.data.vocabulary.text_encoder import leading_tag
from t2t_revival.decoding.outputs import Translation
from t2t_revival.utils.extras import require
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.problems.problem import Problem

LETTER = re.compile(r"[^\W\d_]")
WINDOW = 2000  # characters in which sentences are sought at once: sentencex takes more than linear time
PARTS = (  # of a sentence, each kind finer than the one before
    re.compile(r"(?<=[;:])\s+|(?<=[\u3002\uff1b\uff1a])\s*|(?<=\s[-\u2013\u2014])\s+"),
    re.compile(r"(?<=,)\s+|(?<=[\u3001\u060c\uff0c])\s*"),
    re.compile(r"\s+"),
)
CONTROLS = str.maketrans("\t\r\n", "   ")  # which stand between outputs and lines
Fits = Callable[[str], bool]


class Segment(NamedTuple):
    """A part of a line: white space before it, and its text, without white space around it."""

    space: str
    text: str


class Paragraph(NamedTuple):
    """A line as segments.

    Attributes:
        tag: the tag that the line begins with, with its space; "" without one.
        segments: of the rest; none if it is blank.
        end: white space after the last one.
    """

    tag: str
    segments: list[Segment]
    end: str

    @property
    def texts(self) -> list[str]:
        """The texts to translate, each with the tag of the line."""
        return [self.tag + segment.text for segment in self.segments]

    def join(self, outputs: Sequence[str]) -> str:
        """Returns outputs, one for each segment, with the white space of the line; tabs become spaces."""
        pairs = zip(self.segments, outputs, strict=True)
        spaced = (segment.space.translate(CONTROLS) + output for segment, output in pairs)
        return "".join(spaced) + self.end.translate(CONTROLS)


def join_outputs(paragraph: Paragraph, parts: Sequence[Translation]) -> Translation:
    """Returns the output of a line, given those of its segments; its score is the sum of theirs."""
    return Translation(
        paragraph.join([part.text for part in parts]) if paragraph.segments else "",
        sum((part.score for part in parts), start=0.0),
        any(part.repaired for part in parts),
        any(part.truncated for part in parts),
        cut=any(part.cut for part in parts),
    )


def split(line: str, language: str, tags: Sequence[str] = (), fits: Fits = lambda _: True) -> Paragraph:
    """Cuts a line into sentences, and those that do not fit further.

    Args:
        line: any text.
        language: of the line, as a code such as "en"; others than sentencex knows are cut as English.
        tags: with one of which the line may begin.
        fits: whether a text, tag included, is no longer than an input may be.

    Raises:
        T2TError: sentencex is not installed.
    """
    tag = leading_tag(line, tags)
    sentences = _sentences(line[len(tag) :], language)
    segments: list[Segment] = []
    gap = ""
    for part in (part for one in sentences for part in _cut(one, lambda t: fits(tag + t), PARTS)):
        text = part.strip()
        if is_blank(text):
            gap += part
            continue
        start = part.index(text)
        segments.append(Segment(gap + part[:start], text))
        gap = part[start + len(text) :]
    return Paragraph(tag, segments, gap)


def split_inputs(
    texts: Sequence[str], vocabulary: TextEncoder, problem: Problem | None, max_length: int
) -> list[Paragraph]:
    """Cuts a model's inputs, tags included, into sentences of at most `max_length` tokens, EOS included."""
    language = (problem.source_lang if problem else "").partition("_")[0] or "en"

    def fits(text: str) -> bool:
        return len(vocabulary.encode_batch([text])[0]) < max_length

    return [split(text, language, vocabulary.tags, fits) for text in texts]


def _sentences(text: str, language: str) -> Iterator[str]:
    """Yields sentences with their white space; one without letters, as "1.", begins the next."""
    begun, start = "", 0
    while start < len(text):
        window = text[start : start + WINDOW]
        ends = _ends(window, language)
        if start + WINDOW < len(text) and len(ends) > 1:
            ends.pop()  # it may go on after the window
        for begin, end in zip([0, *ends], ends, strict=False):
            begun += window[begin:end]
            if LETTER.search(window, begin, end):
                yield begun
                begun = ""
        start += ends[-1]
    if begun:
        yield begun


def _ends(text: str, language: str) -> list[int]:
    """Returns where the sentences of a text end, at least its own end."""
    sentencex = require("sentencex", "split_sentences")
    plain = re.sub(r"\s", " ", text)  # other white space between a letter and a stop makes sentencex panic
    try:
        sentences = sentencex.segment(language, plain)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return [len(text)]
    ends = [0]
    for sentence in sentences:
        ends.append(plain.index(sentence, ends[-1]) + len(sentence))
    return [*ends[1:-1], len(text)]


def _cut(text: str, fits: Fits, kinds: Sequence[re.Pattern[str]]) -> list[str]:
    """Cuts a text that does not fit into parts that do, as few and as coarse as come."""
    if fits(text.strip()) or len(text.strip()) < 2:
        return [text]
    if not kinds:
        half = len(text) // 2
        return [*_cut(text[:half], fits, kinds), *_cut(text[half:], fits, kinds)]
    parts: list[str] = []
    for piece in _pieces(text, kinds[0]):
        for finer in _cut(piece, fits, kinds[1:]):
            if parts and fits((parts[-1] + finer).strip()):
                parts[-1] += finer
            else:
                parts.append(finer)
    return parts


def _pieces(text: str, boundary: re.Pattern[str]) -> list[str]:
    """Splits a text after each match, which stays at the end of a piece."""
    ends = [*(match.end() for match in boundary.finditer(text) if match.end()), len(text)]
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]

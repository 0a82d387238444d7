"""Terms in outputs: whether they translate their words of the source, as the word alignment shows it.

A forced phrase is somewhere in the output, perhaps beside the usual translation of its term, or for another
word. Where no link leads from it to its term, the line is decoded once more, without what the unforced output
has for the term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from t2t_revival.addons.lexical.constraints import LineConstraints, Term, count, occurrences, united
from t2t_revival.data.vocabulary.spans import match_words, split_words
from t2t_revival.data.vocabulary.text_encoder import symbol
from t2t_revival.decoding.addons import Outputs
from t2t_revival.decoding.lines.preprocessor import LINE_ENDS
from t2t_revival.decoding.outputs import Translation
from t2t_revival.utils.unicode_forms import normalized

EDGES = re.compile(r"^\W+|\W+$")


class TermLine(NamedTuple):
    """A line with terms.

    Attributes:
        text: in which terms have their places.
        source: the model's input, without its tag.
        constraints: of the line.
    """

    text: str
    source: str
    constraints: LineConstraints

    def check(self, outputs: Sequence[Translation]) -> list[Translation]:
        """Returns outputs, which have their word alignment, with the terms that are not aligned."""
        return [replace(one, unaligned=self._unaligned(one)) for one in outputs]

    def _unaligned(self, output: Translation) -> tuple[tuple[str, str], ...]:
        terms = (term for term in self.constraints.terms if not self._is_aligned(term, output))
        return tuple((term.source, term.phrase) for term in terms)

    def _is_aligned(self, term: Term, output: Translation) -> bool:
        """Returns whether an output has a term for its words, or lacks it, or has no words to align."""
        found = [_sources(output, *span) for span in occurrences(term.phrase, output.text)]
        checked = bool(output.details and found) and term.has_words
        return not checked or any(self._words(term) & sources for sources in found)

    def _words(self, term: Term) -> set[int]:
        """Returns the numbers of the source's words that are a term."""
        words, inputs = split_words(self.text), split_words(self.source)
        numbers = match_words(
            [normalized(self.text[slice(*word)]) for word in words],
            [normalized(self.source[slice(*word)]) for word in inputs],
        )
        own = zip(words, numbers, strict=True)
        return {number for word, number in own if word.start < term.end and term.start < word.end}

    def stricter(self, first: Translation, free: Translation) -> LineConstraints:
        """Returns the constraints of another search.

        Args:
            first: an output that has terms which are not aligned.
            free: the output without constraints: what it has for such a term is avoided, and what it has of
                the term's translation for other words is to be there beside it.
        """
        phrases, avoid = self.constraints.phrases, self.constraints.avoid
        own = [term for term in self.constraints.terms if (term.source, term.phrase) in first.unaligned]
        wanted = Counter(term.phrase for term in self.constraints.terms)
        for term in own:
            sources = self._words(term)
            spans = occurrences(term.phrase, free.text)
            others = sum(not sources & _sources(free, *span) for span in spans)
            phrases = united(phrases, [term.phrase] * (wanted[term.phrase] + others))
            avoid += tuple(_only_for(sources, free))
        useful = (word for word in dict.fromkeys(avoid) if not any(count(word, one) for one in phrases))
        return replace(self.constraints, phrases=phrases, avoid=tuple(useful))

    def faults(self, output: Translation) -> tuple[int, ...]:
        """Returns how many phrases an output lacks, has in spite of being avoided, and has unaligned."""
        missing, present = self.constraints.missing(output.text), self.constraints.present(output.text)
        return len(missing), len(present), len(output.unaligned)


@dataclass(frozen=True)
class TermCheck:
    """Checks terms of the outputs of lines. All outputs have their word alignment.

    Attributes:
        lines: those with terms, by index.
    """

    lines: Mapping[int, TermLine]

    @classmethod
    def of(
        cls,
        constraints: Mapping[int, LineConstraints],
        lines: Sequence[str],
        inputs: Sequence[str],
        tag: str,
    ) -> TermCheck:
        """Makes a check of the lines whose constraints have terms.

        Args:
            constraints: by index of the line.
            lines: all lines, in which terms have their places.
            inputs: the model's, which may have a tag.
            tag: asked for; "" for none.
        """
        own = ((at, one) for at, one in constraints.items() if one.terms)
        return cls(
            {
                at: TermLine(lines[at].translate(LINE_ENDS), inputs[at].removeprefix(symbol(tag)), one)
                for at, one in own
            }
        )

    async def __call__(
        self,
        outputs: Outputs,
        free: Callable[[list[int]], Awaitable[Outputs]],
        forced: Callable[[Mapping[int, LineConstraints]], Awaitable[Outputs]],
    ) -> Outputs:
        """Returns the outputs of the lines with terms, by index; of a second search those that are better.

        Args:
            outputs: of the lines.
            free: decodes lines, by index, without constraints.
            forced: decodes lines with other constraints than their own; may leave out some.
        """
        first = {at: self.lines[at].check(own) for at, own in outputs.items()}
        failed = [at for at, own in first.items() if own[0].unaligned]
        unforced = await free(failed) if failed else {}
        constraints = {at: self.lines[at].stricter(first[at][0], own[0]) for at, own in unforced.items()}
        others = {at: one for at, one in constraints.items() if one != self.lines[at].constraints}
        second = await forced(others) if others else {}
        for at, own in second.items():
            line, found = self.lines[at], self.lines[at].check(own)
            if line.faults(found[0]) < line.faults(first[at][0]):
                first[at] = found
        return first


def _sources(output: Translation, begin: int, end: int) -> set[int]:
    """Returns the words of the source that a part of an output translates."""
    if output.details is None:
        return set()
    words = output.details.words
    return {s for s, t in output.details.links if words[t].start < end and begin < words[t].end}


def _only_for(sources: set[int], output: Translation) -> Iterator[str]:
    """Yields the words that an output has for words of the source, and for no others."""
    own: set[str] = set()
    others: set[str] = set()
    for word in output.details.words if output.details else ():
        linked = _sources(output, word.start, word.end)
        (own if linked & sources else others).add(EDGES.sub("", word.text))
    yield from sorted(own - others - {""})

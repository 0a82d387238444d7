"""Translation of lines with markup: their text by any translator, their marks by its word alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from t2t_revival.data.tags import leading_tag
from t2t_revival.decoding.aligner import align
from t2t_revival.decoding.markup.plain import Plain, take_out
from t2t_revival.decoding.markup.put_back import put_back
from t2t_revival.decoding.model_tags import known_tags
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.preprocessor import LINE_ENDS, Preprocessor
from t2t_revival.utils.blank import is_blank

if TYPE_CHECKING:
    from t2t_revival.decoding.batching import DecodingProgress
    from t2t_revival.decoding.preprocessor import Truncation
    from t2t_revival.decoding.translator import Translator

Outputs = Mapping[int, list[Translation]]
Translate = Callable[[list[str], Callable[[Outputs], None]], list[list[Translation]]]
Align = Callable[[Sequence[str], Sequence[str]], Sequence[Iterable[tuple[int, int]]]]


def nbest_with_markup(
    translator: Translator,
    lines: Iterable[str],
    n: int,
    prefixes: Sequence[str] | None,
    preprocessed: bool,
    on_truncation: Callable[[Truncation], None],
    on_progress: Callable[[DecodingProgress], None] | None,
    first_line: int,
    completed: Outputs | None,
    on_outputs: Callable[[Outputs], None] | None,
) -> list[list[Translation]]:
    """Returns one output for each line, with the markup of the line; see `Translator.nbest`.

    Raises:
        T2TError: outputs are trees, or have given beginnings; n is more than 1.
    """
    texts = [line.translate(LINE_ENDS) for line in lines]
    own = translator.vocabularies, translator.problem, translator.options, translator.max_length
    Preprocessor(*own, first_line).check_single("markup", texts, prefixes, n)
    of_text = copy(translator)
    of_text.options = replace(translator.options, markup="")

    def translate(plain: list[str], collect: Callable[[Outputs], None]) -> list[list[Translation]]:
        settings = on_truncation, on_progress, preprocessed, None, first_line, completed, collect
        return of_text.nbest(plain, 1, *settings)

    def align_words(sources: Sequence[str], outputs: Sequence[str]) -> list[list[tuple[int, int]]]:
        return align(of_text, list(zip(sources, outputs, strict=True)))

    tags = known_tags(translator.vocabularies, translator.problem)
    results = translate_with_markup(
        translate, align_words, texts, translator.options.markup, tags, on_outputs
    )
    return [(completed or {}).get(number, output) for number, output in enumerate(results)]


def translate_with_markup(
    translate: Translate,
    align: Align,
    lines: Sequence[str],
    kind: str,
    tags: Sequence[str] = (),
    on_outputs: Callable[[Outputs], None] | None = None,
) -> list[list[Translation]]:
    """Translates lines without their markup, which is then put back; returns one output for each.

    Args:
        translate: called with the texts, and a function that is to be called with the outputs of each batch
            by number of the line; returns all outputs.
        align: returns the word alignment of texts and their outputs.
        lines: texts with markup, perhaps behind a tag.
        kind: one of `KINDS`.
        tags: those that a line may begin with; they are no markup.
        on_outputs: called with the outputs of lines.
    """
    heads = [leading_tag(line, tags) for line in lines]
    plains = [take_out(line[len(tag) :], kind) for tag, line in zip(heads, lines, strict=True)]
    texts = [
        "" if is_blank(plain.text) else tag + plain.text for tag, plain in zip(heads, plains, strict=True)
    ]
    results: dict[int, list[Translation]] = {}

    def collect(outputs: Outputs) -> None:
        best = {number: found[0] for number, found in outputs.items()}
        links = _links(align, plains, texts, best)
        ready = {}
        for number, one in best.items():
            shifted = [(word - bool(heads[number]), other) for word, other in links.get(number, ())]
            ready[number] = [replace(one, text=put_back(plains[number], one.text, shifted))]
        results.update(ready)
        if on_outputs:
            on_outputs(ready)

    outputs = translate(texts, collect)
    return [results.get(number, output) for number, output in enumerate(outputs)]


def _links(
    align: Align, plains: Sequence[Plain], texts: Sequence[str], best: Mapping[int, Translation]
) -> dict[int, Iterable[tuple[int, int]]]:
    """Returns the word alignments of those lines whose marks have words beside them."""
    numbers = [
        number
        for number, output in best.items()
        if plains[number].marks and texts[number] and not is_blank(output.text)
    ]
    if not numbers:
        return {}
    found = align([texts[number] for number in numbers], [best[number].text for number in numbers])
    return dict(zip(numbers, found, strict=True))

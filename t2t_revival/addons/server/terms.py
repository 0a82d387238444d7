"""Terms of requests, checked by the word alignment of a model whose training is here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from t2t_revival.data.mixture import symbol
from t2t_revival.decoding.detailer import encode_pairs
from t2t_revival.decoding.lexical_constraints import LineConstraints
from t2t_revival.decoding.outputs import Translation
from t2t_revival.decoding.term_check import Outputs, TermCheck
from t2t_revival.errors import T2TError
from t2t_revival.serving.signatures import NO_OUTPUT

if TYPE_CHECKING:
    from t2t_revival.addons.server.rows import Columns
    from t2t_revival.addons.server.translate import Options
    from t2t_revival.decoding.details import Details
    from t2t_revival.decoding.translator import Translator

InThread = Callable[[Callable[[], Outputs]], Awaitable[Outputs]]
Translate = Callable[[Sequence[str], Sequence[LineConstraints]], Awaitable["Columns"]]
Unaligned = Mapping[int, Mapping[str, str]]  # by index of the line: terms and their translations


async def check_terms(
    options: Options,
    translator: Translator,
    inputs: Sequence[str],
    found: Columns,
    translate: Translate,
    in_thread: InThread,
) -> tuple[Columns, Unaligned]:
    """Returns the outputs of lines, of which some may be decoded once more, and their unaligned terms.

    Args:
        options: of the request.
        translator: of the model; has alignment heads.
        inputs: the model's.
        found: its outputs.
        translate: decodes some inputs with other constraints.
        in_thread: calls a function that takes long.
    """
    constraints = dict(enumerate(options.constraints_of(inputs)))
    check = TermCheck.of(constraints, inputs, inputs, options.tag)

    def outputs_of(indices: Sequence[int], columns: Columns) -> Awaitable[Outputs]:
        rows = zip(indices, columns["outputs"], columns["scores"], strict=True)
        texts = {
            at: [
                (text.decode("utf-8", "replace"), score)
                for text, score in zip(own, scores, strict=True)
                if score > NO_OUTPUT
            ]
            for at, own, scores in rows
            if at in check.lines
        }
        sources = {at: check.lines[at].source for at in texts}
        return in_thread(partial(_aligned, translator, sources, symbol(options.tag), texts))

    async def again(others: Mapping[int, LineConstraints]) -> Outputs:
        columns = await translate([inputs[at] for at in others], [*others.values()])
        return await outputs_of([*others], columns)

    best = check.checked(await outputs_of(range(len(inputs)), found))
    failed = check.failed(best)
    with suppress(T2TError):  # such as of a word that the vocabulary cannot spell
        stricter = (
            check.stricter(best, await again(dict.fromkeys(failed, LineConstraints()))) if failed else {}
        )
        best = check.better(best, await again(stricter)) if stricter else best
    return _with(best, found), {at: dict(own[0].unaligned) for at, own in best.items() if own[0].unaligned}


def _aligned(
    translator: Translator, sources: Mapping[int, str], tag: str, found: Mapping[int, list[tuple[str, float]]]
) -> Outputs:
    """Returns outputs, given by their texts and scores, with their word alignment."""
    pairs = [(sources[at], text) for at, own in found.items() for text, _ in own]
    details = iter(aligned(translator, pairs, tag))
    return {
        at: [Translation(text, score, details=next(details)) for text, score in own]
        or [Translation("", NO_OUTPUT)]
        for at, own in found.items()
    }


def aligned(translator: Translator, pairs: Sequence[tuple[str, str]], tag: str) -> list[Details]:
    """Returns the details of outputs with the links by which terms are checked.

    Args:
        translator: of a model with alignment heads.
        pairs: the model's inputs without their tags, and its outputs.
        tag: before each input, with its space; "" for none.
    """
    assert translator.term_detailer
    options = replace(translator.options, tag=tag.rstrip())
    preprocessor = replace(translator.preprocessor(), problem=None, options=options)
    return translator.term_detailer(encode_pairs(preprocessor, pairs))


def _with(outputs: Outputs, found: Columns) -> Columns:
    """Returns columns with other outputs of some lines, as many as before."""
    texts, scores = [*found["outputs"]], [*found["scores"]]
    for at, own in outputs.items():
        padding = len(texts[at]) - len(own)
        texts[at] = [one.text.encode() for one in own] + [b""] * padding
        scores[at] = [one.score for one in own] + [NO_OUTPUT] * padding
    return {**found, "outputs": texts, "scores": scores}

"""Translations and scores of many lines, written as they are finished and resumed after an interruption."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING, Any

from t2t_revival.decoding.batching import DecodingProgress
from t2t_revival.decoding.json_outputs import json_line, links_of, score_line
from t2t_revival.decoding.markup.plain import describe_faults
from t2t_revival.decoding.nearest import nearest
from t2t_revival.decoding.outputs import (
    Draw,
    OrderedOutput,
    ResultFormat,
    Score,
    Translation,
    format_outputs,
    to_bytes,
)
from t2t_revival.errors import LineError, T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints
    from t2t_revival.decoding.preprocessor import Truncation
    from t2t_revival.decoding.translator import Translator

OnProgress = Callable[[DecodingProgress], None]
OnNote = Callable[[str], None]
UNCHECKED = "nobody checks that terms translate their words of the source: "
NO_HEADS = "the model has no alignment heads; t2t-align --choose_heads chooses some"
OF_ENSEMBLE = "an ensemble has no word alignment"
OF_EXPORT = "exported models do not; t2t-decoder does"
NO_WORDS = "scripts without spaces have no words to align"
NOT_FINITE = "the model's weights contain NaN or infinity: use an earlier checkpoint"


def ignore_note(note: str) -> None:
    """The `on_note` of a caller who wants no lines."""


def translate_lines(
    translator: Translator,
    lines: Sequence[str],
    name: str,
    output: OrderedOutput[list[Translation]],
    *,
    draw: Draw | None = None,
    preprocessed: bool = False,
    prefixes: list[str] | None = None,
    constraints: Sequence[LineConstraints | None] | None = None,
    first_line: int = 1,
    nearest_to: Sequence[str] | None = None,
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
    warn_of_truncation: bool = True,
    as_json: bool = False,
) -> list[list[Translation]]:
    """Translates lines into an output; returns the outputs of each, also those of an interrupted run.

    Args:
        translator: loaded from a checkpoint.
        lines: the texts.
        name: their file, for warnings and errors.
        output: receives the outputs of each batch; returns those of an interrupted run.
        draw: see `format_outputs`.
        preprocessed: see `Translator.nbest`.
        prefixes: see `Translator.nbest`.
        constraints: see `Translator.nbest`.
        first_line: see `Translator.nbest`.
        nearest_to: a reference for each line, to keep that of its `beam_size` outputs which is `nearest` to
            it. "" and `None` keep the best by the model.
        on_progress: called at the start and after each batch.
        on_note: called with each line for people: inputs that were cut, outputs that were repaired.
        warn_of_truncation: whether lines that are too long are among these.
        as_json: whether outputs are written as JSON lines; see `json_line`.

    Raises:
        T2TError: the model finds no output, or a line cannot be translated.
    """
    options, truncated = translator.options, set()

    def as_bytes(outputs: list[Translation]) -> bytes:
        if as_json:
            return json_line(outputs, options)
        of_blank_line = len(outputs) == 1 and outputs[0].score == 0
        columns = 1 if of_blank_line else options.outputs
        links = links_of if options.alignments else None
        return format_outputs(outputs, options.return_beams, options.write_beam_scores, draw, columns, links)

    def on_truncation(cut: Truncation) -> None:
        truncated.add(cut.number - first_line)
        if warn_of_truncation:
            on_note(f"warning: {name}, {cut}")

    def add(batch: Mapping[int, list[Translation]]) -> None:
        if any(outputs[0].score == -math.inf for outputs in batch.values()):
            raise T2TError(f"the model finds no output: {NOT_FINITE}")
        if nearest_to:
            batch = {index: [nearest(outputs, nearest_to[index])] for index, outputs in batch.items()}
        batch = {
            index: [replace(one, truncated=True) for one in outputs] if index in truncated else outputs
            for index, outputs in batch.items()
        }
        translations.update(batch)
        output.add(batch)

    inputs: list[Any] = [lines, prefixes, preprocessed, first_line, *([nearest_to] if nearest_to else [])]
    if constraints and any(constraints):
        inputs.append([astuple(one) if one else None for one in constraints])
        if any(one.terms for one in constraints if one) and translator.term_heads:
            inputs.append(asdict(translator.term_heads))
    origin = origin_of(translator, "translations" + ", json" * as_json, inputs)
    form = ResultFormat(
        as_bytes,
        lambda outputs: [*map(asdict, outputs)],
        lambda kept: [Translation.from_json(output) for output in kept],
    )
    known = output.start(origin, len(lines), form)
    translations = dict(known)
    for note in describe_faults(lines, options.markup, first_line) if options.markup else []:
        on_note(f"warning: {name}, {note}")
    if on_progress:
        on_progress(DecodingProgress(len(known), len(lines), 0.0))
    with naming(name):
        translator.nbest(
            lines,
            n=options.beam_size if nearest_to else None,
            on_truncation=on_truncation,
            on_progress=on_progress,
            preprocessed=preprocessed,
            prefixes=prefixes,
            constraints=constraints,
            first_line=first_line,
            completed=known,
            on_outputs=add,
        )
    note_repaired(sum(outputs[0].repaired for outputs in translations.values()), len(lines), on_note)
    for index, outputs in sorted(translations.items()):
        note_unmet(f"{name}, line {first_line + index}", outputs[0], on_note)
        note_unaligned(f"{name}, line {first_line + index}", outputs[0], on_note)
    if constraints and (note := unchecked(constraints, translator.why_unchecked)):
        on_note(f"warning: {note}")
    return [translations[index] for index in range(len(lines))]


def score_pairs(
    translator: Translator,
    pairs: list[tuple[str, str]],
    name: str,
    output: OrderedOutput[Score],
    *,
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
    as_json: bool = False,
) -> list[Score]:
    """Scores pairs of source and target into an output; see `Translator.score`, and `translate_lines`.

    Raises:
        T2TError: a log-probability is not finite, or a pair cannot be scored.
    """

    def add(batch: Mapping[int, Score]) -> None:
        if not all(math.isfinite(score.log_prob) for score in batch.values()):
            raise T2TError(NOT_FINITE)
        output.add(batch)

    def as_bytes(score: Score) -> bytes:
        if as_json:
            return score_line(score, translator.options)
        return to_bytes([f"{score.log_prob:.6f}"])

    form = ResultFormat(as_bytes, asdict, Score.from_json)
    kind = "log-probabilities" + ", json" * as_json
    known = output.start(origin_of(translator, kind, pairs), len(pairs), form)
    if on_progress:
        on_progress(DecodingProgress(len(known), len(pairs), 0.0))
    with naming(name):
        return translator.score(
            pairs,
            lambda cut: on_note(f"warning: {name}, {cut}"),
            on_progress,
            completed=known,
            on_scores=add,
        )


def note_repaired(repaired: int, total: int, on_note: OnNote) -> None:
    """Notes how many outputs were not what the problem asks for and were repaired, if any."""
    if repaired:
        on_note(f"{repaired:,} of {total:,} outputs were malformed and have been repaired")


def note_unmet(line: str, output: Translation, on_note: OnNote) -> None:
    """Notes the phrases that a line's output lacks or should not have, if any."""
    if output.missing:
        is_blank = not output.text and output.score == 0
        why = "blank, so that its output lacks" if is_blank else "no room for"
        way_out = "" if is_blank else ": give a larger extra_length or max_length_ratio"
        on_note(f"warning: {line}: {why} {_quoted(output.missing)}{way_out}")
    if output.present:
        on_note(f"warning: {line}: could not avoid {_quoted(output.present)}")


def note_unaligned(line: str, output: Translation, on_note: OnNote) -> None:
    """Notes the terms that a line's output does not have for their words of the source, if any."""
    for source, phrase in output.unaligned:
        on_note(f"warning: {line}: {phrase!r} is in the output, but seems not to translate {source!r}")


def unchecked(constraints: Iterable[LineConstraints | None], why: str) -> str:
    """Describes for people that terms of lines are not checked; empty if all are, or there are none.

    Args:
        constraints: of all lines.
        why: none can be checked; empty if they are checked.
    """
    terms = [term for one in constraints if one for term in one.terms]
    if not why and not all(term.has_words for term in terms):
        why = NO_WORDS
    return UNCHECKED + why if terms and why else ""


def _quoted(phrases: Sequence[str]) -> str:
    return ", ".join(map(repr, phrases))


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Adds a file's name to the error of a line.

    Raises:
        T2TError: in place of a `LineError`.
    """
    try:
        yield
    except LineError as error:
        raise T2TError(f"{name}, {error}") from error


def split_at_tab(line: str, name: str, number: int, required: bool = False) -> tuple[str, str]:
    """Splits a line, without its line end, into source and target, or the target's beginning.

    Unless a tab is `required`, the target is empty without one. Errors name the file and the line's number.

    Raises:
        T2TError: there are several tabs, or none where one is required.
    """
    tabs = line.count("\t")
    if tabs > 1 or tabs < required:
        raise T2TError(f"{name}, line {number}: {tabs or 'no'} tabs instead of one between source and target")
    source, _, target = line.partition("\t")
    return source, target


def origin_of(translator: Translator, kind: str, lines: Any) -> dict[str, Any]:
    """Returns everything that outputs depend on, by names for people."""
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    return {
        "output": kind,
        "input": digest(lines),
        "checkpoint": ", ".join(one.name for one in (checkpoint, *translator.more_checkpoints)),
        "problem": translator.problem and translator.problem.name,
        "engine": translator.engine,
        "max_length": translator.max_length,
        "batches side by side": translator.num_parallel_batches,
        "alignment heads": translator.detailer.heads and asdict(translator.detailer.heads),
        "translations of the shortlist": translator.translations and translator.translations.digest,
        **asdict(translator.options),
    }


def digest(lines: Any) -> str:
    """The first 16 digits of a SHA-256 of inputs, given as JSON values."""
    return f"sha256:{hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]}"

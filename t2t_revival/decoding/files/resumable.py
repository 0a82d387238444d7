"""Translations and scores of many lines, written as they are finished and resumed after an interruption."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.files.part_file import OutputStream
from t2t_revival.decoding.lines.batching import DecodingProgress, OnProgress
from t2t_revival.decoding.lines.json_outputs import json_line, links_of, score_line
from t2t_revival.decoding.lines.notes import OnNote, ignore_note, note_faulty, note_unmet, unchecked
from t2t_revival.decoding.outputs import Draw, Score, Translation, format_outputs, to_bytes
from t2t_revival.errors import LineError, T2TError
from t2t_revival.utils.made_of import MadeOf, fingerprint

if TYPE_CHECKING:
    from t2t_revival.decoding.lines.pipeline import Lines, LineTranslator
    from t2t_revival.decoding.lines.preprocessor import Truncation
    from t2t_revival.decoding.translator import Translator

NOT_FINITE = "the model's weights contain NaN or infinity: use an earlier checkpoint"


@dataclass(frozen=True)
class Report:
    """The notes and progress that people see while lines are decoded or scored.

    Attributes:
        name: of their file, for warnings and errors.
        on_note: called with each line for people: inputs that were cut, outputs that were cut or repaired.
        on_progress: called at the start and after each batch.
        of_inputs: whether lines that are too long, or in another Unicode form, are among the notes.
    """

    name: str
    on_note: OnNote = ignore_note
    on_progress: OnProgress | None = None
    of_inputs: bool = True

    def note_truncation(self, cut: Truncation) -> None:
        """Notes an input that is too long."""
        if self.of_inputs:
            self.on_note(f"warning: {self.name}, {cut}")

    def begin(self, done: int, total: int) -> None:
        """Shows how much an interrupted run has left."""
        if self.on_progress:
            self.on_progress(DecodingProgress(done, total, 0.0))


def translate_lines(
    translator: LineTranslator,
    asked: Lines,
    output: OutputStream,
    report: Report,
    *,
    draw: Draw | None = None,
    nearest_to: Sequence[str] | None = None,
    as_json: bool = False,
) -> None:
    """Translates lines into an output, all but those that an interrupted run has left there.

    Args:
        translator: of any model.
        asked: the lines.
        output: receives the outputs of each line.
        report: tells of them.
        draw: see `format_outputs`.
        nearest_to: a reference for each line, to keep that of its `beam_size` outputs which is `nearest` to
            it. "" and `None` keep the best by the model.
        as_json: whether outputs are written as JSON lines; see `json_line`.

    Raises:
        T2TError: the model finds no output, or a line cannot be translated.
    """
    options, lines, first_line, constraints = translator.options, asked.texts, asked.first, asked.constraints
    name, on_note = report.name, report.on_note

    def as_bytes(outputs: list[Translation]) -> bytes:
        if as_json:
            return json_line(outputs, options)
        of_blank_line = len(outputs) == 1 and outputs[0].score == 0
        columns = 1 if of_blank_line else translator.num_columns
        beams = options.return_beams or columns > 1
        links = links_of if options.alignments else None
        return format_outputs(outputs, beams, options.write_beam_scores, draw, columns, links)

    inputs: list[Any] = [lines, asked.prefixes, asked.preprocessed, first_line]
    inputs += [nearest_to] if nearest_to else []
    if constraints and any(constraints):
        inputs.append([repr(one) if one else None for one in constraints])
    has_terms = any(one.terms for one in constraints or () if one)
    kind = "translations" + ", json" * as_json + ", drawn" * (draw is not None)
    origin = origin_of(translator, kind, inputs, has_terms)
    done = len(output.start(origin, len(lines), resumable=draw is None))
    for note in addon("markup_faults")(lines, options.markup, first_line) if options.markup else []:
        on_note(f"warning: {name}, {note}")
    if report.of_inputs and not asked.preprocessed and (note := translator.other_form(lines)):
        on_note(f"warning: {name}: {note}")
    report.begin(done, len(lines))
    repaired, cut, noteworthy = 0, 0, {}
    try:
        with naming(name):
            wanted = replace(asked, n=options.beam_size) if nearest_to else asked
            results = translator.iterate(wanted, report.note_truncation, report.on_progress, skip=done)
            for number, outputs in enumerate(results, start=done):
                best = nearest(outputs, nearest_to[number]) if nearest_to else outputs[0]
                if best.score == -math.inf:
                    raise T2TError(f"the model finds no output: {NOT_FINITE}")
                output.write(as_bytes([best] if nearest_to else outputs))
                repaired += best.repaired
                cut += best.cut
                if best.missing or best.present or best.unaligned:
                    noteworthy[first_line + number] = best
    finally:
        note_faulty(repaired, cut, len(lines), on_note)
        for line, best in noteworthy.items():
            note_unmet(f"{name}, line {line}", best, on_note)
    if constraints and has_terms and (note := unchecked(constraints, translator.why_unchecked)):
        on_note(f"warning: {note}")


def score_pairs(
    translator: Translator,
    pairs: list[tuple[str, str]],
    output: OutputStream,
    report: Report,
    *,
    as_json: bool = False,
) -> list[Score]:
    """Scores pairs of source and target into an output; see `Translator.score`, and `translate_lines`.

    Raises:
        T2TError: a log-probability is not finite, or a pair cannot be scored.
    """
    kind = "log-probabilities" + ", json" * as_json
    known = output.start(origin_of(translator, kind, pairs), len(pairs))
    report.begin(len(known), len(pairs))
    with naming(report.name):
        targets = translator.preprocessor().targets([target for _, target in pairs[: len(known)]])
        stored = [json.loads(line)["log_prob"] if as_json else float(line) for line in known]
        scores = [Score(one, len(ids)) for one, ids in zip(stored, targets, strict=True)]
        results = translator.iterate_scores(
            pairs, report.note_truncation, report.on_progress, skip=len(known)
        )
        for score in results:
            if not math.isfinite(score.log_prob):
                raise T2TError(NOT_FINITE)
            text = score_line(score, translator.options) if as_json else to_bytes([f"{score.log_prob:.6f}"])
            output.write(text)
            scores.append(score)
    return scores


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


def origin_of(translator: LineTranslator, kind: str, lines: Any, has_terms: bool = False) -> MadeOf:
    """Returns everything that outputs of some lines depend on."""
    return MadeOf({"output": kind, "input": digest(lines), **translator.origin(has_terms)})


def digest(lines: Any) -> str:
    """The first 16 digits of a SHA-256 of inputs, given as JSON values."""
    return f"sha256:{fingerprint(json.dumps(lines).encode())[:16]}"


def nearest(outputs: Sequence[Translation], reference: str) -> Translation:
    """Returns the output with the highest sentence chrF against a reference, the better one of equals.

    Kim and Rush, 2016, "Sequence-Level Knowledge Distillation", compare by smoothed sentence BLEU; chrF
    needs no tokeniser, and no smoothing.

    Args:
        outputs: best first, at least one.
        reference: without one, "", the first output is returned.
    """
    from sacrebleu.metrics import CHRF

    if not reference or len(outputs) == 1:
        return outputs[0]
    chrf = CHRF()
    return max(outputs, key=lambda output: chrf.sentence_score(output.text, [reference]).score)

"""`t2t-query-server`: translates by a running TensorFlow Serving, or by an exported folder.

t2t-query-server --server=localhost:8500 --servable_name=translate_ende --decode_from_file=in.en

Translates with a running TensorFlow Serving, over gRPC (host:port) or REST (http://host:port), or with
--saved_model=DIR a folder that t2t-exporter wrote: a file, one text (--inputs_once), or else lines that are
typed (Ctrl-D ends). Each line of input has one line of output, written as by t2t-decoder. After an
interruption the same command resumes; it relies on the server to have the same model still. With
--problem=parse_wsj, sentences are split into words before they are sent, and outputs become trees.

--terminology=FILE and --input_format=jsonl, with "constraints", "avoid" and "terms", are those of
t2t-decoder; the model needs the signatures describe and translate_with_tables, which exports of text have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import WRITTEN, flag
from t2t_revival.cli.support.line_flags import LineFlags
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.problem_flags import ProblemFlags
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS
from t2t_revival.cli.support.text_files import (
    drawing,
    name_of,
    output_path,
    output_to,
    prompt,
    read_lines,
)
from t2t_revival.decoding.json_outputs import json_line, links_of
from t2t_revival.decoding.notes import OF_EXPORT, UNCHECKED, note_repaired, note_unmet, unchecked
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Draw, Translation, format_outputs
from t2t_revival.decoding.resumable import naming
from t2t_revival.errors import T2TError
from t2t_revival.serving import client
from t2t_revival.serving.export_origin import newer_note
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedOptions, ServedTranslator

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints

DAY = 86_400  # seconds


@dataclass(frozen=True)
class QueryFlags(ProblemFlags, LineFlags):
    """The flags of t2t-query-server."""

    exclusive = (
        ("server", "saved_model"),
        ("inputs_once", "decode_from_file"),
        *((name, "saved_model") for name in ("servable_name", "timeout_secs", "retries")),
    )
    needs = (("batch_size", "decode_from_file"),)
    server: str = flag("", "TensorFlow Serving: host:port for gRPC, http://host:port for REST.")
    servable_name: str = flag("", "Name of the model at the server; t2t-exporter names it after the problem.")
    saved_model: str = flag(
        "", "Instead of a server: an export_dir, whose newest version is loaded, or a version."
    )
    inputs_once: str | None = flag(None, "One text to translate.")
    decode_to_file: str = flag(
        "", "File for the translations; by default, or with -, the standard output.", file=WRITTEN
    )
    decode_hparams: str | None = flag(
        None, f"{DECODE_HPARAMS} By default as exported; where one is given, the others are the problem's."
    )
    batch_size: int = flag(client.BATCH_SIZE, "Lines of one request.", least=1)
    timeout_secs: int = flag(
        client.TIMEOUT_SECS,
        "Seconds to wait for an answer: with all retries (gRPC), or each time (REST).",
        least=1,
        most=DAY,
    )
    retries: int = flag(
        client.RETRIES,
        "Retries where the server is unavailable, after 0.5, 1, 2 and 4 seconds.",
        most=client.MAX_RETRIES,
    )

    @property
    def is_of_file(self) -> bool:
        """Returns whether a file or one text is translated, and not typed lines."""
        return bool(self.decode_from_file) or self.inputs_once is not None


def _query_server(flags: QueryFlags) -> None:
    _check_flags(flags)
    problem = flags.problem_of(flags.problem) if flags.problem else None
    asked = [*filter(None, [flags.decode_hparams]), *["split_sentences=True"] * flags.split_sentences]
    options = ServedOptions.parse(",".join(asked), problem)
    flags.check_details(options.detailed)
    draw = drawing(problem) if flags.pretty else None
    if not flags.is_of_file:
        terminology = flags.read_terminology() if flags.terminology else None
        if terminology:
            say(f"warning: {UNCHECKED}{OF_EXPORT}")
        translator, numbers = ServedTranslator(_model(flags), options), count(1)

        def answer(line: str) -> list[Translation]:
            constraints = [terminology.constraints(line)] if terminology else None
            return _answer(translator, line, constraints, next(numbers))

        prompt(answer, options.scores, draw, _links_of(options))
    else:
        _translate(flags, options, draw)


def _check_flags(flags: QueryFlags) -> None:
    """Rejects missing flags, and combinations in which one flag has no effect."""
    if not flags.server and not flags.saved_model:
        raise T2TError("--server=host:port or --saved_model=DIR is missing")
    if flags.server and not flags.servable_name:
        raise T2TError("--servable_name is missing: the model's name at the server, such as translate_ende")
    if flags.writes_json and (flags.pretty or not flags.is_of_file):
        raise T2TError("--output_format=jsonl is for --decode_from_file and --inputs_once, without --pretty")
    flags.check_lines(typed=not flags.is_of_file)
    if flags.decode_to_file and not flags.is_of_file:
        raise T2TError("--decode_to_file needs --decode_from_file or --inputs_once")


def _model(flags: QueryFlags) -> client.Model:
    """Connects to the server, or loads the exported folder."""
    if flags.saved_model:
        tensorflow_setup.load_tensorflow()
        if not flags.decode_from_file:
            tensorflow_setup.use_one_thread()
        model = FolderModel(Path(flags.saved_model).expanduser())
        if note := newer_note(Path(model.where)):
            say(note)
        return model
    if not client.is_rest(flags.server):
        tensorflow_setup.load_tensorflow()
    return client.connect(flags.server, flags.servable_name, flags.timeout_secs, flags.retries)


def _answer(
    translator: ServedTranslator, line: str, constraints: list[LineConstraints] | None, number: int
) -> list[Translation]:
    outputs = translator.nbest([line], constraints=constraints, first_line=number)[0]
    note_unmet(f"line {number}", outputs[0], say)
    note_repaired(sum(output.repaired for output in outputs), len(outputs), say)
    _note_truncated({1: outputs[0]}, translator.options)
    return outputs


def _format(
    flags: QueryFlags, options: ServedOptions, draw: Draw | None, outputs: list[Translation]
) -> bytes:
    """Formats the outputs of a line."""
    if flags.writes_json:
        return json_line(outputs, options.detailed or options.search or DecodeHParams())
    return format_outputs(outputs, len(outputs) > 1, options.scores, draw, links=_links_of(options))


def _links_of(options: ServedOptions) -> Callable[[Translation], str] | None:
    return links_of if options.detailed and options.detailed.alignments else None


def _note_truncated(best: Mapping[int, Translation], options: ServedOptions) -> None:
    """Warns of lines, given by their numbers and outputs, that are longer than the model's inputs."""
    numbers = [number for number, output in best.items() if output.truncated]
    if numbers:
        lines = f"line {numbers[0]:,} is" if len(numbers) == 1 else f"{len(numbers):,} lines are"
        hint = "" if options.split_sentences else "; --split_sentences translates each sentence for itself"
        say(f"warning: {lines} longer than the model's inputs, and cut: the end is not translated{hint}")


def _translate(flags: QueryFlags, options: ServedOptions, draw: Draw | None) -> None:
    """Translates a file or one text; the output file is written completely or not at all."""
    once = not flags.decode_from_file
    lines = [flags.inputs_once or ""] if once else read_lines(flags.decode_from_file, "decode_from_file")
    name = "--inputs_once" if once else name_of(flags.decode_from_file)
    lines, constraints = flags.constrained(lines, name, 1)
    path = output_path(flags.decode_to_file)
    best: dict[int, Translation] = {}
    with output_to(path) as output, ProgressBar("lines") as bar, naming(name):
        translator = ServedTranslator(_model(flags), options)
        origin = translator.origin(lines, flags.servable_name, flags.batch_size, constraints)
        origin |= {"output_format": flags.output_format, "scores": options.scores, "drawn": bool(draw)}
        done = len(output.start(origin, len(lines), resumable=not draw))
        filled = not draw and not flags.writes_json
        try:
            if not once:
                bar.update(done, len(lines))
            results = translator.iterate(lines, flags.batch_size, filled, constraints, done)
            for number, outputs in enumerate(results, start=done + 1):
                output.write(_format(flags, options, draw, outputs))
                best[number] = outputs[0]
                if not once:
                    bar.update(number, len(lines))
        finally:
            note_repaired(sum(one.repaired for one in best.values()), len(lines), say)
            _note_truncated(best, options)
            for number, one in best.items():
                note_unmet(f"{name}, line {number}", one, say)
    if note := unchecked(constraints or (), OF_EXPORT):
        say(f"warning: {note}")
    if path:
        say(f"outputs  {path}")


main = Command(QueryFlags, _query_server, __doc__)

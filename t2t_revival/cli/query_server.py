"""`t2t-query-server`: translates by a running TensorFlow Serving, or by an exported folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from t2t_revival.cli.support import (
    command,
    constraint_flags,
    problem_flags,
    run_flags,
    tensorflow_setup,
)
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.run_flags import JSONL
from t2t_revival.cli.support.text_files import (
    STANDARD_STREAM,
    check_one_standard_input,
    check_outputs,
    drawing,
    name_of,
    named_files,
    output_path,
    output_to,
    prompt,
    read_lines,
)
from t2t_revival.decoding.details import Details
from t2t_revival.decoding.json_outputs import json_line, links_of
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Draw, ResultFormat, format_outputs
from t2t_revival.decoding.resumable import OF_EXPORT, UNCHECKED, naming, note_repaired, note_unmet, unchecked
from t2t_revival.errors import T2TError
from t2t_revival.serving import client
from t2t_revival.serving.client import Output
from t2t_revival.serving.export_origin import newer_note
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedOptions, ServedTranslator

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints

USAGE = """
t2t-query-server --server=localhost:8500 --servable_name=translate_ende --decode_from_file=in.en

Translates with a running TensorFlow Serving, over gRPC (host:port) or REST (http://host:port), or with
--saved_model=DIR a folder that t2t-exporter wrote: a file, one text (--inputs_once), or else lines that are
typed (Ctrl-D ends). Each line of input has one line of output, written as by t2t-decoder. After an
interruption the same command resumes; it relies on the server to have the same model still. With
--problem=parse_wsj, sentences are split into words before they are sent, and outputs become trees.

--terminology=FILE and --input_format=jsonl, with "constraints", "avoid" and "terms", are those of
t2t-decoder; the model needs the signature translate_with_constraints, which exports of text have.
"""
DAY = 86_400  # seconds
EXCLUSIVE = (
    ("server", "saved_model"),
    ("inputs_once", "decode_from_file"),
    *((name, "saved_model") for name in ("servable_name", "timeout_secs", "retries")),
)


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-query-server."""
    values = command.new_flags()
    problem_flags.define_names(values)
    command.define(
        values,
        None,
        server="TensorFlow Serving: host:port for gRPC, http://host:port for REST.",
        servable_name="Name of the model at the server; t2t-exporter names it after the problem.",
        saved_model="Instead of a server: an export_dir, whose newest version is loaded, or a version.",
        inputs_once="One text to translate.",
        decode_from_file="Text to translate, a sentence a line, plain or .gz; - is the standard input.",
        decode_to_file="File for the translations; by default, or with -, the standard output.",
    )
    run_flags.define_decode_hparams(
        values, " By default as exported; where one is given, the others are the problem's.", None
    )
    command.define(values, False, pretty="Parsing: draw trees where they fit, or else indent them.")
    command.define(values, False, split_sentences=run_flags.SPLIT_SENTENCES)
    run_flags.define_output_format(values)
    constraint_flags.define(values)
    timeout = "Seconds to wait for an answer: with all retries (gRPC), or each time (REST)."
    retries = "Retries where the server is unavailable, after 0.5, 1, 2 and 4 seconds."
    for name, default, lower, upper, text in (
        ("batch_size", client.BATCH_SIZE, 1, None, "Lines of one request."),
        ("timeout_secs", client.TIMEOUT_SECS, 1, DAY, timeout),
        ("retries", client.RETRIES, 0, client.MAX_RETRIES, retries),
    ):
        command.define_integer(name, default, text, lower_bound=lower, upper_bound=upper, flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _query_server, argv)


def _query_server(values: flags.FlagValues) -> None:
    _check_flags(values)
    if values.decode_from_file:
        outputs = named_files(values, "decode_to_file") or {"": STANDARD_STREAM}
        check_one_standard_input(decode_from_file=values.decode_from_file, terminology=values.terminology)
        check_outputs(named_files(values, "decode_from_file", "terminology"), outputs)
    problem = problem_flags.text_problem(values) if values.problem else None
    asked = [*filter(None, [values.decode_hparams]), *["split_sentences=True"] * values.split_sentences]
    options = ServedOptions.parse(",".join(asked), problem)
    run_flags.check_details(values, options.detailed)
    draw = drawing(problem) if values.pretty else None
    if not _of_file(values):
        constraints_of = constraint_flags.of_typed_lines(values)
        if values.terminology:
            say(f"warning: {UNCHECKED}{OF_EXPORT}")
        translator, numbers = ServedTranslator(_model(values), options), count(1)

        def answer(line: str) -> list[Output]:
            return _answer(translator, line, constraints_of(line), next(numbers))

        prompt(answer, options.scores, draw, _links_of(options))
    else:
        _translate(values, options, draw)


def _check_flags(values: flags.FlagValues) -> None:
    """Rejects missing flags, and combinations in which one flag has no effect."""
    for one, other in EXCLUSIVE:
        if values[one].present and values[other].present:
            raise T2TError(f"--{one} and --{other} cannot be combined: give one of them")
    if not values.server and not values.saved_model:
        raise T2TError("--server=host:port or --saved_model=DIR is missing")
    if values.server and not values.servable_name:
        raise T2TError("--servable_name is missing: the model's name at the server, such as translate_ende")
    if values.output_format == JSONL and (values.pretty or not _of_file(values)):
        raise T2TError("--output_format=jsonl is for --decode_from_file and --inputs_once, without --pretty")
    constraint_flags.check_served(values)
    if values["batch_size"].present and not values.decode_from_file:
        raise T2TError("--batch_size needs --decode_from_file: typed lines are sent one by one")
    if values.decode_to_file and not _of_file(values):
        raise T2TError("--decode_to_file needs --decode_from_file or --inputs_once")


def _of_file(values: flags.FlagValues) -> bool:
    return bool(values.decode_from_file) or values.inputs_once is not None


def _model(values: flags.FlagValues) -> client.Model:
    """Connects to the server, or loads the exported folder."""
    if values.saved_model:
        tensorflow_setup.load_tensorflow(values)
        if not values.decode_from_file:
            tensorflow_setup.use_one_thread()
        model = FolderModel(Path(values.saved_model).expanduser())
        if note := newer_note(Path(model.where)):
            say(note)
        return model
    if not client.is_rest(values.server):
        tensorflow_setup.load_tensorflow(values)
    return client.connect(values.server, values.servable_name, values.timeout_secs, values.retries)


def _answer(
    translator: ServedTranslator, line: str, constraints: list[LineConstraints] | None, number: int
) -> list[Output]:
    outputs = translator.nbest([line], constraints=constraints, first_line=number)[0]
    note_unmet(f"line {number}", outputs[0], say)
    note_repaired(sum(output.repaired for output in outputs), len(outputs), say)
    _note_truncated(outputs[:1], translator.options)
    return outputs


def _output(kept: list[Any]) -> Output:
    """Returns an output of its JSON values."""
    text, score, repaired, truncated, details, *phrases = kept
    details = Details.from_json(details) if details else None
    return Output(text, score, repaired, truncated, details, *map(tuple, phrases))


def _format(
    values: flags.FlagValues, options: ServedOptions, draw: Draw | None, outputs: list[Output]
) -> bytes:
    """Formats the outputs of a line."""
    if values.output_format == JSONL:
        return json_line(outputs, options.detailed or options.search or DecodeHParams())
    return format_outputs(outputs, len(outputs) > 1, options.scores, draw, links=_links_of(options))


def _links_of(options: ServedOptions) -> Callable[[Output], str] | None:
    return links_of if options.detailed and options.detailed.alignments else None


def _note_truncated(best: list[Output], options: ServedOptions) -> None:
    """Warns of lines, given by their outputs, that are longer than the model's inputs."""
    numbers = [number for number, output in enumerate(best, start=1) if output.truncated]
    if numbers:
        lines = f"line {numbers[0]:,} is" if len(numbers) == 1 else f"{len(numbers):,} lines are"
        hint = "" if options.split_sentences else "; --split_sentences translates each sentence for itself"
        say(f"warning: {lines} longer than the model's inputs, and cut: the end is not translated{hint}")


def _translate(values: flags.FlagValues, options: ServedOptions, draw: Draw | None) -> None:
    """Translates a file or one text; the output file is written completely or not at all."""
    once = values.inputs_once is not None
    lines = [values.inputs_once] if once else read_lines(values.decode_from_file, "decode_from_file")
    name = "--inputs_once" if once else name_of(values.decode_from_file)
    lines, constraints = constraint_flags.constrained(values, lines, name, 1)
    path = output_path(values.decode_to_file)
    form: ResultFormat[list[Output]] = ResultFormat(
        partial(_format, values, options, draw),
        lambda outputs: [
            [*one[:4], one.details and asdict(one.details), one.missing, one.present] for one in outputs
        ],
        lambda kept: [_output(own) for own in kept],
    )
    with output_to(path) as output, ProgressBar("lines") as bar, naming(name):
        best = ServedTranslator(_model(values), options).translate_lines(
            lines,
            values.servable_name,
            values.batch_size,
            output,
            form,
            filled=not draw and values.output_format != JSONL,
            on_progress=None if once else bar.update,
            constraints=constraints,
        )
    note_repaired(sum(output.repaired for output in best), len(lines), say)
    _note_truncated(best, options)
    for number, one in enumerate(best, start=1):
        note_unmet(f"{name}, line {number}", one, say)
    if note := unchecked(constraints or (), OF_EXPORT):
        say(f"warning: {note}")
    if path:
        say(f"outputs  {path}")


if __name__ == "__main__":
    sys.exit(main())

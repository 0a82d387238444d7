"""`t2t-query-server`: translates by a running TensorFlow Serving, or by an exported folder.

t2t-query-server --server=localhost:8500 --servable_name=translate_ende --decode_from_file=in.en

Translates with a running TensorFlow Serving, over gRPC (host:port) or REST (http://host:port), or with
--saved_model=DIR a folder that t2t-exporter wrote: a file, one text (--inputs_once), or else lines that are
typed (Ctrl-D ends). Each line of input has one line of output, written as by t2t-decoder. After an
interruption the same command resumes; it relies on the server to have the same model still. With
--problem=parse_wsj, sentences are split into words before they are sent, and outputs become trees.

--terminology=FILE and --input_format=jsonl, with "constraints", "avoid" and "terms", are those of
t2t-decoder, as are --partial_targets and --markup; exports of text have the signatures that these need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import WRITTEN, flag
from t2t_revival.cli.support.line_flags import LineFlags
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.problem_flags import ProblemFlags
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS
from t2t_revival.cli.support.text_files import drawing, name_of, output_path, output_to, read_lines
from t2t_revival.cli.support.typed_lines import translate_typed
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.errors import T2TError
from t2t_revival.serving import client
from t2t_revival.serving.export_origin import newer_note
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedTranslator, parse_options

DAY = 86_400  # seconds


@dataclass(frozen=True)
class QueryFlags(ProblemFlags, LineFlags):
    exclusive = (
        ("server", "saved_model"),
        ("inputs_once", "decode_from_file"),
        ("output_format=jsonl", "pretty"),
        *((name, "saved_model") for name in ("servable_name", "timeout_secs", "retries")),
    )
    needs = (
        ("server", "servable_name"),
        ("batch_size", "decode_from_file"),
        ("decode_to_file", "decode_from_file", "inputs_once"),
        ("output_format=jsonl", "decode_from_file", "inputs_once"),
    )
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
    if not flags.server and not flags.saved_model:
        raise T2TError("--server=host:port or --saved_model=DIR is missing")
    flags.check_lines(typed=not flags.is_of_file)
    problem = flags.problem_of(flags.problem) if flags.problem else None
    options, as_exported = parse_options(flags.decode_hparams or "", problem)
    options = replace(options, **flags.settings)
    capabilities.check(options.asked() | flags.asked)
    flags.check_details(options)

    def load() -> ServedTranslator:
        return ServedTranslator(
            _model(flags), options, problem, flags.batch_size, as_exported, name=flags.servable_name
        )

    draw = drawing(problem) if flags.pretty else None
    if not flags.is_of_file:
        translate_typed(flags, load(), draw)
        return
    once = not flags.decode_from_file
    lines = [flags.inputs_once or ""] if once else read_lines(flags.decode_from_file, "decode_from_file")
    name = "--inputs_once" if once else name_of(flags.decode_from_file)
    asked = flags.lines_of(lines, name)
    path = output_path(flags.decode_to_file)
    with output_to(path) as output, ProgressBar("lines") as bar:
        translate_lines(
            load(),
            asked,
            output,
            Report(name, say, None if once else bar.show_decoding),
            draw=draw,
            as_json=flags.writes_json,
        )
    if path:
        say(f"outputs  {path}")


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


main = Command(QueryFlags, _query_server, __doc__)

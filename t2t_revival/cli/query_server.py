"""`t2t-query-server`: translates by asking a running TensorFlow Serving, or an exported folder."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import flags

from t2t_revival.cli import common, problem_flags
from t2t_revival.cli.lines import (
    STANDARD_STREAM,
    Draw,
    check_outputs,
    digest,
    drawing,
    formatted,
    named,
    output_to,
    prompt,
    read,
    say,
    say_repaired,
)
from t2t_revival.cli.progress import duration
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Form
from t2t_revival.errors import T2TError
from t2t_revival.serving import client
from t2t_revival.serving.folder_model import FolderModel

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Text2TextProblem

USAGE = """
t2t-query-server --server=localhost:8500 --servable_name=translate_ende --decode_from_file=in.en

Asks a running TensorFlow Serving, over gRPC (host:port) or REST (http://host:port), or with
--saved_model=DIR a folder that t2t-exporter wrote, to translate a file, one text (--inputs_once), or else
what is typed (Ctrl-D ends). One line in, one line out, as t2t-decoder writes them; after an interruption the
same command resumes, and trusts the server to have the same model still. With --problem=parse_wsj
sentences become words before they are sent, and what comes back becomes trees.
"""
DAY = 86_400  # seconds
NONE_FOUND = float("-inf")  # the score of an output that stands where the model found fewer
_SEARCH = re.compile(r"\b(beam_size|alpha|extra_length|return_beams)\s*=")  # what a request may say
ONE_OF = (
    ("server", "saved_model"),
    ("inputs_once", "decode_from_file"),
    *((name, "saved_model") for name in ("servable_name", "timeout_secs", "retries")),
)


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    problem_flags.define_names(values)
    for name, text in (
        ("server", "TensorFlow Serving: host:port for gRPC, http://host:port for REST."),
        ("servable_name", "The model's name there; t2t-exporter gives it the problem's."),
        (
            "saved_model",
            "Instead of a server: an export_dir, of which the newest version is taken, or a version.",
        ),
        ("inputs_once", "One text to translate."),
        ("decode_from_file", "Text to translate, a sentence on each line; - is the standard input."),
        ("decode_to_file", "Where translations go; by default, or with -, the standard output."),
        (
            "decode_hparams",
            "How to decode, such as beam_size=4,alpha=0.6,extra_length=50,return_beams=True; by default "
            "as the model was exported. Where one of these is given, the others are the problem's.",
        ),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_bool(
        "pretty", False, "Parsing: draw trees, where they fit, or else indent them.", flag_values=values
    )
    common.define_integer(
        "batch_size", client.BATCH_SIZE, "Lines of one request.", lower_bound=1, flag_values=values
    )
    common.define_integer(
        "timeout_secs",
        client.TIMEOUT_SECS,
        "Seconds that the answer to a request may take: with all retries (gRPC), or each time (REST).",
        lower_bound=1,
        upper_bound=DAY,
        flag_values=values,
    )
    common.define_integer(
        "retries",
        client.RETRIES,
        "Further tries where the server is not available, after 0.5, 1, 2 and 4 seconds.",
        lower_bound=0,
        upper_bound=client.MOST_RETRIES,
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return common.run(command_flags(), USAGE, _query_server, argv)


def _query_server(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    _check_flags(values)
    if values.decode_from_file:
        written = named(values, "decode_to_file") or {"": STANDARD_STREAM}
        check_outputs(named(values, "decode_from_file"), written)
    how = _how(values)
    if values.inputs_once is None and not values.decode_from_file:
        model = _model(values)
        prompt(lambda line: _typed(model, line, how), how.scores, how.draw)
    else:
        _lines(values, how)


class _Answer(NamedTuple):
    """An output for people; see `Finished`."""

    text: str
    score: float
    repaired: bool = False


@dataclass(frozen=True)
class _How:
    """How lines are asked and answers are shown.

    Attributes:
        problem: makes inputs of lines and texts of outputs; None: both are as they are.
        search: what requests say of the search; None: nothing, so that it is as the model was exported.
        tokenized: see `DecodeHParams`.
        scores: whether answers are shown with their scores.
        draw: see `formatted`.
    """

    problem: Text2TextProblem | None
    search: DecodeHParams | None
    tokenized: bool
    scores: bool
    draw: Draw | None


def _how(values: flags.FlagValues) -> _How:
    problem = problem_flags.text_problem(values) if values.problem else None
    usual = DecodeHParams.from_problem(problem) if problem else DecodeHParams()
    options = DecodeHParams.parse(values.decode_hparams or "", dataclasses.asdict(usual))
    options.check_served()
    if options.batch_size != usual.batch_size:
        raise T2TError("decode_hparams: batch_size: give --batch_size, the lines of one request")
    if options.constrained != usual.constrained:
        raise T2TError("decode_hparams: constrained: a model is exported with it or without")
    if options.tokenized and not problem:
        raise T2TError("decode_hparams: tokenized is for parsing: give --problem too")
    return _How(
        problem,
        options if _SEARCH.search(values.decode_hparams or "") else None,
        options.tokenized,
        options.write_beam_scores,
        drawing(problem) if values.pretty else None,
    )


def _ask(model: client.Model, lines: list[str], how: _How, filled: bool = False) -> list[list[_Answer]]:
    """The outputs of each line of one request for people; `filled`: see `client.query`."""
    problem = how.problem
    inputs = [problem.prepare(line, how.tokenized) for line in lines] if problem else lines
    found = client.query(model, inputs, how.search, len(inputs), filled)
    return [
        [_answer(problem, text, output) for output in outputs]
        if text.strip()
        else [_Answer(outputs[0].text, outputs[0].score)]
        for text, outputs in zip(inputs, found, strict=True)
    ]


def _answer(problem: Text2TextProblem | None, inputs: str, output: client.Output) -> _Answer:
    if problem is None or output.score == NONE_FOUND:
        return _Answer(output.text, output.score)
    text, repaired = problem.finish(inputs, output.text)
    return _Answer(text, output.score, repaired)


def _typed(model: client.Model, line: str, how: _How) -> list[_Answer]:
    answers = _ask(model, [line], how)[0]
    say_repaired(sum(answer.repaired for answer in answers), len(answers))
    return answers


def _check_flags(values: flags.FlagValues) -> None:
    """Refuses flags that are missing, or of which one would do nothing beside the other."""
    for one, other in ONE_OF:
        if values[one].present and values[other].present:
            raise T2TError(f"--{one} and --{other} do not go together: give one of them")
    if not values.server and not values.saved_model:
        raise T2TError("--server=host:port or --saved_model=DIR is missing")
    if values.server and not values.servable_name:
        raise T2TError("--servable_name is missing: the model's name at the server, such as translate_ende")
    if values["batch_size"].present and not values.decode_from_file:
        raise T2TError("--batch_size needs --decode_from_file: what is typed is asked line by line")
    if values.decode_to_file and values.inputs_once is None and not values.decode_from_file:
        raise T2TError("--decode_to_file needs --decode_from_file or --inputs_once")


def _model(values: flags.FlagValues) -> client.Model:
    if values.saved_model:
        if not values.debug:  # it logs as errors what is none; what is one is raised
            os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        common.load_tensorflow(values)
        if not values.decode_from_file:
            common.single_stream()
        return FolderModel(Path(values.saved_model).expanduser())
    if not client.is_rest(values.server):
        common.load_tensorflow(values)
    return client.connect(values.server, values.servable_name, values.timeout_secs, values.retries)


def _origin(model: client.Model, values: flags.FlagValues, lines: list[str], how: _How) -> dict[str, Any]:
    """All that the answers depend on, but for the model that a server has at the time."""
    return {
        "input": digest(lines),
        "model": [model.where, values.servable_name],
        "problem": how.problem and how.problem.name,
        "decode_hparams": how.search and dataclasses.asdict(how.search),
        "tokenized": how.tokenized,
        "batch_size": values.batch_size,
    }


def _form(how: _How) -> Form[list[_Answer]]:
    return Form(
        lambda answers: formatted([answers], len(answers) > 1, how.scores, how.draw),
        lambda answers: [*map(list, answers)],
        lambda found: [_Answer(*one) for one in found],
    )


def _lines(values: flags.FlagValues, how: _How) -> None:
    """Answers a file or one text; the answer is there whole or not at all."""
    once = values.inputs_once is not None
    lines = [values.inputs_once] if once else read(values.decode_from_file)
    to_file = values.decode_to_file not in (None, "", STANDARD_STREAM)
    target = Path(values.decode_to_file).expanduser() if to_file else None
    with output_to(target) as output:
        model = _model(values)
        known = output.start(_origin(model, values, lines, how), len(lines), _form(how))
        began = time.monotonic()
        repaired = sum(answers[0].repaired for answers in known.values())
        for start in range(0, len(lines), values.batch_size):
            batch = range(start, min(start + values.batch_size, len(lines)))
            if batch[0] in known:
                continue
            answers = _ask(model, [lines[index] for index in batch], how, filled=not how.draw)
            repaired += sum(found[0].repaired for found in answers)
            output.add(dict(zip(batch, answers, strict=True)))
        seconds = time.monotonic() - began
    say_repaired(repaired, len(lines))
    if not once:
        asked = len(lines) - len(known)
        rate = asked / max(seconds, 1e-3)
        say(f"{asked:,} lines in {duration(seconds)}, {rate:.1f} lines/s")
    if target:
        say(f"outputs  {target}")


if __name__ == "__main__":
    sys.exit(main())

"""What commands that translate share: lines read, typed, formatted and written."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from absl import flags

from t2t_revival.cli.progress import SentenceProgress
from t2t_revival.decoding.outputs import Form, OrderedOutput, part_file, side_files
from t2t_revival.errors import LineError, T2TError
from t2t_revival.files import check_apart, text_lines, writing

if TYPE_CHECKING:
    from absl import flags

    from t2t_revival.decoding.translator import Translation, Translator
    from t2t_revival.problems.problem import Text2TextProblem

STANDARD_STREAM = "-"
DIGITS = 16  # hexadecimal, of an input's digest
COLUMNS = 100  # of a drawing that goes to no terminal
Draw = Callable[[str], str]


class Output(Protocol):
    """One output of a line."""

    @property
    def text(self) -> str:
        """Without a line end."""

    @property
    def score(self) -> float:
        """Log-probability / length penalty."""


def named(values: flags.FlagValues, *names: str) -> dict[str, str]:
    """The files that flags name, by what an error calls them."""
    return {f"--{name}={values[name].value}": values[name].value for name in names if values[name].value}


def check_outputs(inputs: Mapping[str, str | Path], outputs: Mapping[str, str | Path]) -> None:
    """Checks that nothing that a command writes is what it reads; see `check_apart`.

    Args:
        inputs: paths, or - for the standard input, by what an error calls them.
        outputs: paths, or - for the standard output, likewise.

    Raises:
        T2TError: something is.
    """
    written: dict[str, Path | int] = {}
    for name, file in outputs.items():
        if file == STANDARD_STREAM:
            written["the standard output"] = 1
            continue
        path = Path(file).expanduser()
        written[name] = path
        written |= {f"{side}, which is written on the way to {name},": side for side in side_files(path)}
    read: dict[str, Path | int] = {
        name: 0 if file == STANDARD_STREAM else Path(file).expanduser() for name, file in inputs.items()
    }
    check_apart(read, written)


def read(path: str, flag: str = "decode_from_file") -> list[str]:
    """The lines of a file that a flag names; - is the standard input."""
    if path == STANDARD_STREAM:
        return text_lines(sys.stdin.buffer.read(), "standard input")
    name = f"--{flag}={path}"
    try:
        content = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise T2TError(f"{name}: {error.strerror or error}") from error
    return text_lines(content, name)


def name_of(path: str) -> str:
    """The name of an input file in messages; - is the standard input."""
    return "standard input" if path == STANDARD_STREAM else path


def check_one_standard_input(values: flags.FlagValues, *names: str) -> None:
    """Checks that at most one of these flags is -, since the standard input can be read only once.

    Raises:
        T2TError: several are.
    """
    given = [f"--{name}=-" for name in names if values[name].value == STANDARD_STREAM]
    if len(given) > 1:
        raise T2TError(f"{' and '.join(given)}: only one of them can be the standard input")


def split_at_tab(line: str, where: str, number: int, required: bool = False) -> tuple[str, str]:
    """What stands before and behind the tab of a line.

    Args:
        line: without a line end.
        where: names its file.
        number: of the line.
        required: whether there must be one; a line without has nothing behind it.

    Raises:
        T2TError: there is more than one, or none.
    """
    tabs = line.count("\t")
    if tabs > 1 or tabs < required:
        raise T2TError(
            f"{where}, line {number}: {tabs or 'no'} tabs, where one stands between source and target"
        )
    source, _, target = line.partition("\t")
    return source, target


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Has an error of a line name the line's file."""
    try:
        yield
    except LineError as error:
        raise T2TError(f"{where}, {error}") from error


@contextmanager
def output_to(path: Path | None, mtime_ns: int | None = None) -> Iterator[OrderedOutput[Any]]:
    """An output that is written in input order; to a file it survives interruptions, see `part_file`.

    Args:
        path: the file; None: the standard output.
        mtime_ns: see `part_file`.
    """
    if path is None:
        yield OrderedOutput(sys.stdout.buffer)
        return
    with part_file(path, say, mtime_ns) as output:
        yield output


@contextmanager
def writing_to(path: Path) -> Iterator[io.BytesIO]:
    """Takes the content of a file that appears whole or not at all; what cannot be written is known at once.

    An `OSError` of the block under it is none of this file's, and goes through.
    """
    if path.exists() and not path.is_file():
        raise T2TError(f"cannot write {path}: not a file")
    content, in_block = io.BytesIO(), False
    try:
        with writing(path) as file:
            in_block = True
            yield content
            in_block = False
            file.write(content.getvalue())
    except OSError as error:
        if in_block:
            raise
        raise T2TError(f"cannot write {path}: {error.strerror or error}") from error


def formatted(
    found: Sequence[Sequence[Output]],
    beams: bool,
    scores: bool,
    draw: Draw | None = None,
    columns: int = 1,
) -> bytes:
    """A line for each input as T2T writes it.

    Args:
        found: the outputs of each input, best first.
        beams: whether all outputs stand on the line, joined by tabs, and not only the best.
        scores: whether each output is followed by a tab and its score.
        draw: draws an output over several lines; then an empty line, and no tab, follows each.
        columns: outputs that each line has, where `beams`; an input with fewer gets empty ones of score -inf,
            as T2T's lines had empty ones.
    """
    lines = []
    for outputs in found:
        if draw:
            lines += [_drawn(output, scores, draw) + "\n" for output in (outputs if beams else outputs[:1])]
            continue
        cells = []
        for output in outputs if beams else outputs[:1]:
            # A tab in the text would look like a column.
            cells.append(output.text.replace("\t", " ") if beams or scores else output.text)
            cells += [f"{output.score:.2f}"] * scores
        if beams:
            cells += ["", "-inf"] * (columns - len(outputs)) if scores else [""] * (columns - len(outputs))
        lines.append("\t".join(cells))
    return to_bytes(lines)


def _drawn(output: Output, scores: bool, draw: Draw) -> str:
    score = f"{output.score:.2f}\n" if scores else ""
    return score + draw(output.text)


def to_bytes(lines: list[str]) -> bytes:
    """Lines as a file has them."""
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def prompt(translate: Callable[[str], Sequence[Output]], scores: bool, draw: Draw | None = None) -> None:
    """Answers each line that is typed with its outputs, until the end of input (Ctrl-D).

    Args:
        translate: gives a line's outputs, best first.
        scores: whether each output is followed by a tab and its score.
        draw: see `formatted`.
    """
    sign = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(sign)
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise T2TError(f"standard input: not UTF-8 ({error.reason})") from error
        for output in translate(line):
            if draw:
                print(_drawn(output, scores, draw), flush=True)
                continue
            score = f"\t{output.score:.2f}" if scores else ""
            print(f"{output.text}{score}", flush=True)


def drawing(problem: Text2TextProblem | None) -> Draw:
    """How `--pretty` draws the outputs of a problem.

    Raises:
        T2TError: they are text.
    """
    if problem is None:
        raise T2TError("--pretty needs a problem that is known: give --problem")
    width = shutil.get_terminal_size((COLUMNS, 0)).columns
    problem.drawn("", width)
    return lambda output: problem.drawn(output, width)


def warn_of_tabs(translations: Sequence[str], references: Sequence[str], name: object) -> None:
    """Warns where translations hold tabs that their references do not, as lines of several outputs do."""
    pairs = zip(translations, references, strict=True)
    if count := sum("\t" in translation and "\t" not in reference for translation, reference in pairs):
        say(
            f"warning: {name}: {count:,} of {len(translations):,} lines hold tabs, as with return_beams or "
            "write_beam_scores, and are scored with all that is on them; cut -f1 keeps the best outputs"
        )


def say_repaired(repaired: int, total: int) -> None:
    """That a model gave something else than the problem asks for, if it did."""
    if repaired:
        say(f"{repaired:,} of {total:,} outputs were not well-formed and were repaired")


def say(message: str) -> None:
    """To the person, not into the translations: on stderr."""
    print(message, file=sys.stderr, flush=True)


def translate(
    translator: Translator,
    lines: list[str],
    name: str,
    output: OrderedOutput[list[Translation]],
    draw: Draw | None = None,
    prepared: bool = False,
    prefixes: list[str] | None = None,
    first_line: int = 1,
    warn_of_cuts: bool = True,
) -> list[list[Translation]]:
    """The outputs of all lines, with progress on stderr; see `Translator.nbest`.

    Args:
        translator: translates.
        lines: what it is given.
        name: where they come from, in warnings and errors.
        output: gets the outputs as they are finished, and knows those of an interrupted run.
        draw: see `formatted`.
        prepared: whether lines are the model's inputs already.
        prefixes: what outputs begin with.
        first_line: the number of the first of the lines.
        warn_of_cuts: whether lines that are too long are named.

    Raises:
        T2TError: the model finds nothing, or a line is wrong.
    """
    options, total = translator.options, len(lines)

    def to_bytes(found: list[Translation]) -> bytes:
        of_blank_line = len(found) == 1 and found[0].score == 0
        columns = 1 if of_blank_line else options.outputs
        return formatted([found], options.return_beams, options.write_beam_scores, draw, columns)

    def take(outputs: Mapping[int, list[Translation]]) -> None:
        if any(found[0].score == float("-inf") for found in outputs.values()):
            raise T2TError(
                "the model finds no output: its weights are not numbers; use an earlier checkpoint"
            )
        output.add(outputs)

    known = output.start(
        {"output": "translations", **origin(translator, [lines, prefixes, prepared, first_line])},
        total,
        Form(to_bytes, lambda found: [astuple(one) for one in found], _translations),
    )
    shown = SentenceProgress(sys.stderr, len(known))
    with naming(name), shown:
        outputs = translator.nbest(
            lines,
            on_cut=lambda cut: say(f"warning: {name}, {cut}") if warn_of_cuts else None,
            on_progress=shown,
            prepared=prepared,
            prefixes=prefixes,
            first_line=first_line,
            known=known,
            on_outputs=take,
        )
    shown.end(total)
    say_repaired(sum(found[0].repaired for found in outputs), total)
    return outputs


def origin(translator: Translator, lines: Any) -> dict[str, Any]:
    """All that outputs depend on, by names for people.

    Args:
        translator: as it was loaded from a checkpoint.
        lines: what it is given, as JSON values.
    """
    from t2t_revival.training.checkpoint_file import fingerprint

    checkpoint = translator.checkpoint
    assert checkpoint is not None
    return {
        "input": digest(lines),
        "checkpoint": f"{checkpoint.path.name} with weights {fingerprint(checkpoint.path)}",
        "problem": translator.problem and translator.problem.name,
        "max_length": translator.max_length,
        "batches side by side": translator.streams,
        **asdict(translator.options),
    }


def digest(lines: Any) -> str:
    """Tells inputs, as JSON values, from others."""
    return f"sha256:{hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:DIGITS]}"


def _translations(found: Any) -> list[Translation]:
    from t2t_revival.decoding.texts import Translation

    return [Translation(*one) for one in found]

"""Files of lines that flags name: reading, checking, writing, and lines that are typed.

All functions that read or check raise `T2TError`; - is the standard input or output.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from t2t_revival.cli.support.messages import say
from t2t_revival.decoding.files.part_file import OutputStream, part_file, side_files
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.outputs import Draw
from t2t_revival.errors import T2TError
from t2t_revival.problems.problem import Problem
from t2t_revival.utils.files import check_apart, descriptor_of, file_lines, text_lines

STANDARD_STREAM = "-"
STDOUT = "the standard output"
STANDARD_OUTPUT = 1  # its descriptor
COLUMNS = 100  # of a drawing that goes to no terminal


def output_path(value: str | None) -> Path | None:
    """Returns the path of a flag's output file; `None` is the standard output."""
    if not value or value == STANDARD_STREAM:
        return None
    if value.endswith(".gz"):
        raise T2TError(
            f"{value}: outputs are written unpacked: leave out .gz, and run gzip on the file afterwards"
        )
    path = Path(value).expanduser()
    return None if descriptor_of(path) == STANDARD_OUTPUT else path


def check_outputs(inputs: Mapping[str, str | Path], outputs: Mapping[str, str | Path]) -> None:
    """Checks that no output of a command is one of its inputs; both are by their names for errors."""
    written: dict[str, Path | int] = {}
    for name, file in outputs.items():
        if file == STANDARD_STREAM:
            written[STDOUT] = 1
            continue
        path = Path(file).expanduser()
        written[name] = path
        written |= {f"{side}, a temporary file of {name},": side for side in side_files(path)}
    read: dict[str, Path | int] = {
        name: 0 if file == STANDARD_STREAM else Path(file).expanduser() for name, file in inputs.items()
    }
    check_apart(read, written)


def read_lines(path: str, flag: str) -> list[str]:
    """Reads the lines of a file; errors name it by its flag."""
    if path == STANDARD_STREAM:
        if sys.stdin is None:
            raise T2TError(f"--{flag}={path}: the standard input is closed")
        return text_lines(sys.stdin.buffer.read(), "standard input")
    return file_lines(Path(path).expanduser(), f"--{flag}={path}")


def read_parallel(*files: tuple[str, str]) -> list[list[str]]:
    """Reads the lines of files, which must be as many; each file stands behind the name of its flag."""
    texts = [read_lines(file, flag) for flag, file in files]
    for (_, file), lines in zip(files, texts, strict=True):
        if len(lines) != len(texts[0]):
            raise T2TError(
                f"{name_of(files[0][1])} has {len(texts[0])} lines but {name_of(file)} has {len(lines)}; "
                "they must be line by line of the same text"
            )
    return texts


def read_part(source: str, shard: Shard) -> tuple[list[str], int, str]:
    """Reads a decoder's part of `--decode_from_file`.

    T2T requires the parts as files, FILE000, FILE001 and so on; these are read where there is no FILE.

    Returns:
        The lines, the number of the first one, and the name of their file.
    """
    if shard.count > 1 and source != STANDARD_STREAM:
        joined = Path(source).expanduser()
        if not joined.exists() and shard.path(joined).exists():
            own = source + shard.suffix
            say(f"worker {shard.number} of {shard.count}: all lines of {own}")
            return read_lines(own, "decode_from_file"), 1, own
    lines, name = read_lines(source, "decode_from_file"), name_of(source)
    first, end = shard.bounds(len(lines))
    if shard.count > 1:
        say(shard.describe(len(lines), name))
    return lines[first:end], first + 1, name


def name_of(path: str) -> str:
    """The name of an input file in messages."""
    return "standard input" if path == STANDARD_STREAM else path


def output_to(path: Path | None) -> AbstractContextManager[OutputStream]:
    """Opens a file that survives interruptions (`part_file`), or the standard output, for results."""
    if path:
        return part_file(path, say)
    return nullcontext(OutputStream(sys.stdout.buffer, STDOUT))


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


def drawing(problem: Problem | None) -> Draw:
    """Returns the function that draws a problem's outputs for `--pretty`; they must be trees."""
    if problem is None:
        raise T2TError("--pretty needs a known problem: give --problem, or --t2t_usr_dir for your own")
    width = shutil.get_terminal_size((COLUMNS, 0)).columns
    problem.render("", width)
    return lambda output: problem.render(output, width)

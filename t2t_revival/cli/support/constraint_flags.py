"""The flags of constraints of outputs: a terminology, and inputs as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli.support import command
from t2t_revival.cli.support.engine_flags import uses_ctranslate2
from t2t_revival.cli.support.run_flags import FORMATS, JSONL, TEXT
from t2t_revival.cli.support.text_files import STANDARD_STREAM, read_lines
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.lexical_constraints import LineConstraints
    from t2t_revival.decoding.terminology import Terminology

CONFLICTS = (  # flags of t2t-decoder that exclude each other
    *product(("score_file", "partial_targets", "split_sentences", "markup"), ("terminology",)),
    *product(("score_file", "partial_targets"), ("input_format",)),
)


def define(values: flags.FlagValues) -> None:
    """Adds the flags."""
    command.define(
        values,
        None,
        terminology="File of source term TAB target term: where a line has the source term, its output has "
        "the target term.",
    )
    flags.DEFINE_enum(
        "input_format",
        TEXT,
        FORMATS,
        'Format of --decode_from_file: jsonl has objects {"text": "...", "constraints": ["..."], "terms": '
        '{"source": "target"}, "avoid": ["..."]}, of which only the text is necessary.',
        flag_values=values,
    )


def check(values: flags.FlagValues) -> None:
    """Checks that the flags have an effect.

    Raises:
        T2TError: they need another flag, or the engine does not know them.
    """
    if uses_jsonl(values) and not values.decode_from_file:
        raise T2TError(f"--input_format={JSONL} needs --decode_from_file")
    if values.terminology and not (values.decode_from_file or values.decode_interactive):
        raise T2TError("--terminology needs --decode_from_file or --decode_interactive")
    if values.terminology == STANDARD_STREAM and values.decode_interactive:
        raise T2TError("--terminology=-: typed lines come from the standard input: name a file")
    if values.terminology and uses_ctranslate2(values):
        raise T2TError("--terminology is for --engine=tensorflow: CTranslate2 has no constraints of outputs")


def check_served(values: flags.FlagValues) -> None:
    """Checks that the flags of t2t-query-server have an effect.

    Raises:
        T2TError: they need another flag, or exclude each other.
    """
    if uses_jsonl(values) and not values.decode_from_file:
        raise T2TError(f"--input_format={JSONL} needs --decode_from_file")
    typed = not values.decode_from_file and values.inputs_once is None
    if values.terminology == STANDARD_STREAM and typed:
        raise T2TError("--terminology=-: typed lines come from the standard input: name a file")
    if values.terminology and values.split_sentences:
        raise T2TError("--terminology and --split_sentences cannot be combined: give one of them")


def uses_jsonl(values: flags.FlagValues) -> bool:
    """Returns whether inputs are JSON lines."""
    return values.input_format == JSONL


def read_terminology(values: flags.FlagValues) -> Terminology:
    """Reads the file of `--terminology`; without one, there are no terms."""
    from t2t_revival.decoding.terminology import Terminology

    path = values.terminology
    return Terminology.parse(read_lines(path, "terminology"), path) if path else Terminology({})


def constrained(
    values: flags.FlagValues, lines: Sequence[str], name: str, first_line: int
) -> tuple[list[str], list[LineConstraints] | None]:
    """Returns texts and constraints of lines of a file; `None` without these flags."""
    if not (values.terminology or uses_jsonl(values)):
        return list(lines), None
    return _constrained(values, lines, name, first_line)


def _constrained(
    values: flags.FlagValues, lines: Sequence[str], name: str, first_line: int
) -> tuple[list[str], list[LineConstraints]]:
    from t2t_revival.decoding.json_inputs import JsonLine, parse_json_lines

    terminology = read_terminology(values)
    parsed = parse_json_lines(lines, name, first_line) if uses_jsonl(values) else [*map(JsonLine, lines)]
    return [line.text for line in parsed], [line.all_constraints(terminology) for line in parsed]


def of_typed_lines(values: flags.FlagValues) -> Callable[[str], list[LineConstraints] | None]:
    """Returns a function from a typed line to its constraints; it returns `None` without `--terminology`."""
    if not values.terminology:
        return lambda line: None
    terminology = read_terminology(values)
    return lambda line: [terminology.constraints(line)]

"""Lines that are typed, and answered one by one."""

from __future__ import annotations

import sys
from itertools import count
from typing import TYPE_CHECKING

from t2t_revival.cli.support.messages import say
from t2t_revival.decoding.lines.json_outputs import links_of
from t2t_revival.decoding.lines.notes import UNCHECKED, note_faulty, note_unmet
from t2t_revival.decoding.outputs import Draw, draw_output
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.cli.support.line_flags import LineFlags
    from t2t_revival.decoding.lines.pipeline import LineTranslator


def translate_typed(flags: LineFlags, translator: LineTranslator, draw: Draw | None) -> None:
    """Answers each line that is typed with its outputs, until the end of input (Ctrl-D).

    Args:
        flags: tell whether lines have beginnings of outputs, and terms.
        translator: of any model.
        draw: see `format_outputs`.
    """
    if sys.stdin is None:
        raise T2TError("the standard input is closed: there is nobody to type")
    options, terminology = translator.options, flags.read_terminology()
    if flags.terminology and translator.why_unchecked:
        say(f"warning: {UNCHECKED}{translator.why_unchecked}")
    sign = ""
    if sys.stdin.isatty():
        sign = "> "
        say("type a line, then Enter; Ctrl-D ends")
    for number in count(1):
        try:
            line = input(sign)
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise T2TError(f"standard input: not UTF-8 text ({error.reason})") from error
        source, _, prefix = line.partition("\t") if flags.partial_targets else (line, "", "")
        try:
            (outputs,) = translator.nbest(
                [source],
                on_truncation=lambda truncation: say(f"warning: {truncation}"),
                prefixes=[prefix],
                first_line=number,
                constraints=[terminology.constraints(source)],
            )
        except T2TError as error:
            say(f"error: {error}")
            continue
        if note := translator.other_form([source]):
            say(f"warning: {note}")
        repaired, cut = sum(output.repaired for output in outputs), sum(output.cut for output in outputs)
        note_faulty(repaired, cut, len(outputs), say)
        note_unmet(f"line {number}", outputs[0], say)
        for output in outputs:
            if draw:
                print(draw_output(output, options.write_beam_scores, draw), flush=True)
                continue
            score = f"\t{output.score:.2f}" if options.write_beam_scores else ""
            links = f"\t{links_of(output)}" if options.alignments else ""
            print(f"{output.text}{score}{links}", flush=True)

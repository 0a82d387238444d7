"""Outputs as JSON lines, an object for each input, with all that is known of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from t2t_revival.data.word_alignment import format_pharaoh
from t2t_revival.decoding.details import Details, Token
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import Score, Translation

DIGITS = 6  # after the point, of scores and log-probabilities


def json_line(outputs: Sequence[Translation], options: DecodeHParams) -> bytes:
    """Formats the outputs of one input, of a `Translator` or of a served model.

    The object has the best output, `{"text", "score", "truncated", "repaired"}`, with `return_beams` also
    "nbest", a list of such objects, and the details that the options ask for: "source_words" and "words",
    with their places, "tokens", and "alignment", pairs of a source word and a word. Forced phrases that an
    output has no room for are "missing", and avoided ones that it has in spite of that "present"; terms whose
    translations are there for other words are "unaligned", an object of the terms and the translations. An
    output that reached its greatest length before its end is "cut".
    """
    best, *_ = outputs
    line = _object(best, options) | {"truncated": best.truncated}
    if options.return_beams or len(outputs) > 1:
        line["nbest"] = [_object(output, options) for output in outputs]
    return f"{json.dumps(line, ensure_ascii=False)}\n".encode()


def _object(output: Translation, options: DecodeHParams) -> dict[str, Any]:
    found = {"text": output.text, "score": round(output.score, DIGITS), "repaired": output.repaired}
    faults: dict[str, Any] = {name: list(getattr(output, name, ())) for name in ("missing", "present")}
    faults |= {"unaligned": dict(getattr(output, "unaligned", ())), "cut": output.cut}
    return found | {name: one for name, one in faults.items() if one} | _details(output.details, options)


def links_of(output: Any) -> str:
    """Formats the word alignment of an output, "" without one."""
    return format_pharaoh(output.details.links) if output.details else ""


def score_line(score: Score, options: DecodeHParams) -> bytes:
    """Formats the score of a given output: its log-probability, number of tokens, and details as above."""
    line = {"log_prob": round(score.log_prob, DIGITS), "num_tokens": score.tokens}
    return f"{json.dumps(line | _details(score.details, options), ensure_ascii=False)}\n".encode()


def _details(details: Details | None, options: DecodeHParams) -> dict[str, Any]:
    if details is None:
        return {}
    words = [
        {"text": word.text, "start": word.start, "end": word.end}
        | ({"log_prob": round(word.log_prob, DIGITS)} if options.token_scores else {})
        for word in details.words
    ]
    found: dict[str, Any] = {"words": words}
    if options.token_scores or options.alternatives:
        found["tokens"] = [_token(token, options) for token in details.tokens]
    if options.alignments:
        found["source_words"] = [{"start": start, "end": end} for start, end in details.source_words]
        found["alignment"] = [list(link) for link in details.links]
    return found


def _token(token: Token, options: DecodeHParams) -> dict[str, Any]:
    found: dict[str, Any] = {"piece": token.piece, "log_prob": round(token.log_prob, DIGITS)}
    if token.word >= 0:
        found["word"] = token.word
    if options.alternatives:
        found["alternatives"] = [
            {"piece": other.piece, "log_prob": round(other.log_prob, DIGITS)} for other in token.alternatives
        ]
    return found

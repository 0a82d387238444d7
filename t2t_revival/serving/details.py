"""Details of outputs that an exported model computes; without TensorFlow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2t_revival.data.vocabulary.spans import TokenSpans, words_of_text
from t2t_revival.data.vocabulary.text_encoder import tagged
from t2t_revival.decoding.alignment_heads import LinkRule
from t2t_revival.decoding.details import EOS_NAME, Details
from t2t_revival.decoding.lines.calls import Call
from t2t_revival.decoding.lines.detailer import SourceAttention, TokenScores, make_details
from t2t_revival.errors import T2TError
from t2t_revival.serving.client import text_of
from t2t_revival.serving.signatures import SCORE, Inputs

COLUMNS = (
    *("tokens", "token_log_probs", "token_ends", "alternatives", "alternative_log_probs", "target_texts"),
    *("source_tokens", "source_token_ends", "source_texts"),
)
ALIGNMENT = ("attention", "alignment_rule")
TAG = re.compile(r"<\S+> ")


async def query_details(
    where: str, pairs: Sequence[tuple[str, str]], alternatives: int = 0, aligns: bool = False, tag: str = ""
) -> list[Details]:
    """Returns the details of given outputs by one `Call`.

    Args:
        where: the exported model's place, for errors.
        pairs: lines, and an output of each.
        alternatives: how many of each token.
        aligns: whether words are aligned.
        tag: before each line; it is no word of the line.

    Raises:
        T2TError: the model was exported without alignment heads, or without details; there is no response.
    """
    if not pairs:
        return []
    lines, outputs = ([pair[side] for pair in pairs] for side in (0, 1))
    inputs: Inputs = {
        "inputs": tagged(lines, tag),
        "targets": outputs,
        "alternatives": [alternatives] * len(pairs),
    }
    response = await Call(SCORE, inputs)
    if aligns and ALIGNMENT[0] not in response:
        raise T2TError(
            f"{where}: has no alignment heads: choose them with t2t-align --choose_heads, and export it again"
        )
    names = COLUMNS + ALIGNMENT if aligns else COLUMNS
    if missing := [name for name in names if len(response.get(name, ())) != len(pairs)]:
        raise T2TError(f"{where}: the response has no {missing[0]}: export the model again")
    rows = zip(*(response[name] for name in names), strict=True)
    return [_details(pair, dict(zip(names, row, strict=True))) for pair, row in zip(pairs, rows, strict=True)]


def _details(pair: tuple[str, str], row: Mapping[str, Any]) -> Details:
    line, output = pair
    pieces = [text_of(piece) for piece in row["tokens"]]
    pieces = pieces[: pieces.index(EOS_NAME) + 1]
    alternatives = [[text_of(other) for other in others] for others in row["alternatives"]]
    scores = TokenScores(pieces, row["token_log_probs"], alternatives, row["alternative_log_probs"])
    tokens = _spans(pieces[:-1], row["token_ends"], text_of(row["target_texts"]))
    attention = _attention(line, row) if ALIGNMENT[0] in row else None
    return make_details(line, output, words_of_text(tokens, output), scores, attention)


def _attention(line: str, row: Mapping[str, Any]) -> SourceAttention:
    text = text_of(row["source_texts"])
    begins = TAG.match(text)  # with a tag that the export puts before lines without one
    tag = begins[0] if begins and not TAG.match(line) else ""
    pieces = [text_of(piece) for piece in row["source_tokens"]]
    tokens = _spans(pieces[: pieces.index(EOS_NAME)], row["source_token_ends"], text)
    share, null = row["alignment_rule"]
    words, weights = words_of_text(tokens, tag + line), np.array(row["attention"], np.float32)
    return SourceAttention(words, tag, weights, LinkRule(share, bool(null)))


def _spans(pieces: Sequence[str], ends: Sequence[int], text: str) -> TokenSpans:
    return TokenSpans.of(text, pieces, (min(end, len(text)) for end in ends[: len(pieces)]))

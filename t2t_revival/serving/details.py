"""Details of outputs that an exported model computes; without TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from t2t_revival.data.mixture import tagged
from t2t_revival.data.word_alignment import SPACE, Link, Span, TokenSpans, words_of_spans
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.details import EOS_NAME, Details, Scored, make_details
from t2t_revival.decoding.paragraphs import leading_tags
from t2t_revival.errors import T2TError
from t2t_revival.serving.client import Model, text_of
from t2t_revival.serving.signatures import SCORE, Inputs

COLUMNS = (
    *("tokens", "token_log_probs", "token_ends", "alternatives", "alternative_log_probs", "target_texts"),
    *("source_tokens", "source_token_ends", "source_texts"),
)
ALIGNMENT = ("attention", "alignment_rule")


def query_details(
    model: Model, pairs: Sequence[tuple[str, str]], alternatives: int = 0, aligns: bool = False, tag: str = ""
) -> list[Details]:
    """Returns the details of given outputs by one request.

    Args:
        model: an exported model.
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
    response = model.predict(SCORE, inputs)
    if aligns and ALIGNMENT[0] not in response:
        raise T2TError(
            f"{model.where}: has no alignment heads: choose them with t2t-align --choose_heads, and export "
            "it again"
        )
    names = COLUMNS + ALIGNMENT if aligns else COLUMNS
    if missing := [name for name in names if len(response.get(name, ())) != len(pairs)]:
        raise T2TError(f"{model.where}: the response has no {missing[0]}: export the model again")
    rows = zip(*(response[name] for name in names), strict=True)
    return [_details(pair, dict(zip(names, row, strict=True))) for pair, row in zip(pairs, rows, strict=True)]


def _details(pair: tuple[str, str], row: Mapping[str, Any]) -> Details:
    line, output = pair
    pieces = [text_of(piece) for piece in row["tokens"]]
    pieces = pieces[: pieces.index(EOS_NAME) + 1]
    others = ([text_of(other) for other in each] for each in row["alternatives"])
    columns = row["token_log_probs"], others, row["alternative_log_probs"]
    scored = [Scored(*each) for each in zip(pieces, *columns, strict=False)]
    spans = _spans(pieces[:-1], row["token_ends"], text_of(row["target_texts"]))
    words = words_of_spans(spans, output)
    links = _links(line, words, row) if ALIGNMENT[0] in row else []
    return make_details(line, output, scored, words, links)


def _links(line: str, words: list[int], row: Mapping[str, Any]) -> list[Link]:
    text = text_of(row["source_texts"])
    tag = next((f"{tag} " for tag in leading_tags([text]) if not leading_tags([line])), "")
    pieces = [text_of(piece) for piece in row["source_tokens"]]
    pieces = pieces[: pieces.index(EOS_NAME)]
    source_words = words_of_spans(_spans(pieces, row["source_token_ends"], text), tag + line)
    attention = np.array(row["attention"], np.float32)[: len(words) + 1, : len(pieces) + 1]
    share, null = row["alignment_rule"]
    # The rows are those of each token, wherever the model has them.
    found = AlignmentHeads(1, (1,), shifted=False, share=share, null=bool(null)).links(
        attention, source_words, words
    )
    return [(source - bool(tag), target) for source, target in found if source >= bool(tag)]


def _spans(pieces: Sequence[str], ends: Sequence[int], text: str) -> TokenSpans:
    bounds = [0, *accumulate((min(end, len(text)) for end in ends[: len(pieces)]), max)]
    return TokenSpans(text, [Span(*pair) for pair in pairwise(bounds)], [piece == SPACE for piece in pieces])

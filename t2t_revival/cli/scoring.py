"""What `t2t-decoder --score_file` does: given outputs in, their log-probabilities out."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli.lines import (
    STANDARD_STREAM,
    naming,
    origin,
    output_to,
    read,
    say,
    split_at_tab,
    to_bytes,
)
from t2t_revival.cli.progress import SentenceProgress
from t2t_revival.decoding.outputs import Form, OrderedOutput
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.scoring import Score
    from t2t_revival.decoding.translator import Translator


def score_file(values: flags.FlagValues, load: Callable[[], Translator]) -> None:
    """Writes the log-probability of each line's target, and says what all are worth together.

    Args:
        values: of t2t-decoder.
        load: gives the model; called when the lines are known to be pairs.

    Raises:
        T2TError: a line is no pair, or cannot be scored.
    """
    typed = values.score_file == STANDARD_STREAM
    where = "standard input" if typed else values.score_file
    pairs = [
        split_at_tab(line, where, number, required=True)
        for number, line in enumerate(read(values.score_file, "score_file"), start=1)
    ]
    to_file = values.decode_to_file not in ("", STANDARD_STREAM)
    path = Path(values.decode_to_file).expanduser() if to_file else None
    with output_to(path) as output:
        translator = load()
        scores = _score(translator, pairs, where, output)
    from t2t_revival.decoding.scoring import per_token

    mean, perplexity = per_token(scores)
    tokens = sum(score.tokens for score in scores)
    say(
        f"log-probability {mean:.4f} per token, perplexity {perplexity:.2f} "
        f"({tokens:,} tokens of {len(pairs):,} targets, EOS counted)"
    )
    if path:
        say(f"scores   {path}")
        pairs_file = Path(values.score_file).expanduser()
        if pairs_file.is_file():  # a pipe is read already
            say(f"next: {shlex.join(['paste', str(path), str(pairs_file)])} | sort -g | head")


def _score(
    translator: Translator, pairs: list[tuple[str, str]], where: str, output: OrderedOutput[Score]
) -> list[Score]:
    """Scores all pairs, with progress on stderr; `output` gets each as it is there."""
    from t2t_revival.decoding.scoring import Score

    def take(scores: Mapping[int, Score]) -> None:
        if not all(math.isfinite(score.log_prob) for score in scores.values()):
            raise T2TError("the model's weights are not numbers; use an earlier checkpoint")
        output.add(scores)

    known = output.start(
        {"output": "log-probabilities", **origin(translator, pairs)},
        len(pairs),
        Form(lambda score: to_bytes([f"{score.log_prob:.6f}"]), astuple, lambda value: Score(*value)),
    )
    shown = SentenceProgress(sys.stderr, len(known))
    with naming(where), shown:
        scores = translator.score(
            pairs,
            lambda cut: say(f"warning: {where}, {cut}"),
            shown,
            known=known,
            on_scores=take,
        )
    shown.end(len(pairs))
    return scores

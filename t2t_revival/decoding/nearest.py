"""The output nearest a reference (Kim and Rush, 2016, "Sequence-Level Knowledge Distillation")."""

from __future__ import annotations

from collections.abc import Sequence

from t2t_revival.decoding.outputs import Translation


def nearest(outputs: Sequence[Translation], reference: str) -> Translation:
    """Returns the output with the highest sentence chrF against a reference, the better one of equals.

    Kim and Rush compare by smoothed sentence BLEU; chrF needs no tokeniser, and no smoothing.

    Args:
        outputs: best first, at least one.
        reference: without one, "", the first output is returned.
    """
    from sacrebleu.metrics import CHRF

    if not reference or len(outputs) == 1:
        return outputs[0]
    chrf = CHRF()
    return max(outputs, key=lambda output: chrf.sentence_score(output.text, [reference]).score)

"""A teacher and its student side by side: quality, speed and size."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from t2t_revival.metrics.bleu import chrf_score, sacrebleu_score
from t2t_revival.visualization.result_table import ResultTable

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

WARM_UP = 16  # sentences that are decoded before the time is taken
SINGLE = 50  # sentences that are decoded one at a time
MEGABYTE = 1e6
FLOAT32 = 4  # bytes
MODELS = TEACHER, STUDENT, GREEDY = "teacher", "student", "student, greedy"
Splits = Mapping[str, tuple[Sequence[str], Sequence[str]]]  # inputs and references by split


def measure(translator: Translator, splits: Splits, target_lang: str = "") -> dict[str, Any]:
    """Measures a model.

    Args:
        translator: of the model.
        splits: none of them empty.
        target_lang: as in `sacrebleu_score`.

    Returns:
        Values by name: parameters; MB of float32 weights; BLEU and chrF of each split; BLEU's
        tokenizer; sentences per second of the last one, in batches; ms per sentence, the median of some
        decoded one at a time.
    """
    parameters = translator.model.count_params()
    found: dict[str, Any] = {"parameters": parameters, "MB": parameters * FLOAT32 / MEGABYTE}
    for name, (inputs, references) in splits.items():
        _decode(translator, inputs[:WARM_UP])
        began = time.perf_counter()
        outputs = _decode(translator, inputs)
        found["sentences/s"] = len(inputs) / (time.perf_counter() - began)
        bleu = sacrebleu_score(outputs, list(references), target_lang=target_lang)
        found |= {f"{name} BLEU": bleu.score, f"{name} chrF": chrf_score(outputs, list(references)).score}
        found["BLEU's tokenizer"] = bleu.tokenizer
    found["ms per sentence"] = statistics.median(
        _seconds(translator, line) * 1000 for line in inputs[:: max(1, len(inputs) // SINGLE)][:SINGLE]
    )
    return found


def make_table(models: Mapping[str, str], found: Mapping[str, Mapping[str, Any]]) -> ResultTable:
    """Makes the table of the results of `measure`.

    Args:
        models: checkpoints of `TEACHER` and `STUDENT`.
        found: results of `MODELS`.
    """
    return ResultTable(
        name="distillation",
        title="Teacher and student",
        columns=("", *MODELS),
        rows=[(name, *(found[model][name] for model in MODELS)) for name in found[TEACHER]],
        remarks=(
            f"Teacher: {models[TEACHER]}. Student: {models[STUDENT]}. MB: weights in float32. Greedy: "
            "--decode_hparams=beam_size=1. sentences/s: of the last split, in batches. ms per sentence: "
            "median of sentences decoded one at a time.",
        ),
    )


def _seconds(translator: Translator, line: str) -> float:
    began = time.perf_counter()
    _decode(translator, [line])
    return time.perf_counter() - began


def _decode(translator: Translator, lines: Sequence[str]) -> list[str]:
    nbest = translator.nbest(lines, 1, on_truncation=lambda truncation: None, preprocessed=True)
    return [outputs[0].text for outputs in nbest]

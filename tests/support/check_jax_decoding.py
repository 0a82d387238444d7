"""Run by test_jax_engine.py in a process without TensorFlow: translates on JAX, and scores a split."""

from tests.support.without_tensorflow import block_tensorflow

block_tensorflow()

# ruff: noqa: E402
import json
import pickle
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import keras

from t2t_revival import DecodeHParams, T2TError, Translator, registry
from t2t_revival.evaluation.split_scores import SplitScores

OPTIONS = DecodeHParams(beam_size=3, extra_length=5)
HALF = 0.5
REFUSED = (
    "sampling_method=random",
    "no_repeat_ngram_size=2",
    "shortlist=on",
    "coverage_penalty=0.2",
    "markup=html",
    "alignments=pharaoh",
)


def refusals(model: Any, vocabulary: Any) -> dict[str, str]:
    """Messages of what JAX's search does not support."""

    def message(function: Any) -> str:
        try:
            function()
        except T2TError as error:
            return str(error)
        return ""

    translator = Translator(model, vocabulary, OPTIONS)
    found = {
        text: message(lambda text=text: Translator(model, vocabulary, DecodeHParams.parse(text)))
        for text in REFUSED
    }
    found["int8"] = message(lambda: Translator(model, vocabulary, OPTIONS, int8=True))
    found["scores"] = message(lambda: translator.score([("a", "b")]))
    found["beginnings"] = message(lambda: translator.nbest(["a"], prefixes=["b"]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Translator(model, vocabulary, DecodeHParams(constrained=True))
    found["trees"] = str(caught[0].message)
    return found


def main(folder: Path) -> None:
    problem = registry.problem("translate_ende")
    vocabularies = problem.vocabularies(folder / "data")
    model = keras.saving.load_model(folder / "translator.keras")
    split_scores = SplitScores(problem, "dev", folder / "data", model.hparams, vocabularies, OPTIONS, 10)
    scores = [split_scores.with_outputs(model)]
    model.target_embedding.embeddings.assign(model.target_embedding.embeddings * HALF)  # as a training does
    scores.append(split_scores.with_outputs(model))
    translator = Translator(model, vocabularies.inputs, OPTIONS)
    lines = json.loads((folder / "lines.json").read_text())
    found = {
        "scores": scores,
        "nbest": [[asdict(one) for one in outputs] for outputs in translator.nbest(lines, n=2)],
        "none": translator.translate([]),
        "best_ids": translator.best_ids(translator.encode(lines[0])),
        "engine": translator.engine,
        "refusals": refusals(model, vocabularies.inputs),
    }
    (folder / "found.pkl").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

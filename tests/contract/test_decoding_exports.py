"""Exported models give the answers of the contract; not in test_decoding.py, for memory's sake."""

import dataclasses
import json
from importlib.util import find_spec

import numpy as np
import pytest

from t2t_revival import DecodeHParams
from tests.contract import decoding
from tests.contract.decoding import CASES, LINES_OF, PIECES, SUBWORDS, TREES, differences
from tests.support import commands

pytestmark = pytest.mark.slow
NO_OUTPUT = -1e9  # score of what pads the outputs of an exported model


@pytest.fixture(scope="module", params=[PIECES, pytest.param(SUBWORDS, marks=pytest.mark.nightly)])
def exported(request, tmp_path_factory):
    """An exported model of text: its name, its folder, and its signatures as servers call them."""
    import tensorflow as tf

    folder = export(request.param, tmp_path_factory)
    (version,) = (path for path in folder.iterdir() if path.is_dir())
    return request.param, folder, tf.saved_model.load(str(version))


def export(model, tmp_path_factory, *flags):
    folder = tmp_path_factory.mktemp("export")
    commands.run(
        "t2t-exporter", f"--output_dir={decoding.folder_of(model)}", f"--export_dir={folder}", *flags
    )
    return folder


def served(signature, lines, **inputs):
    """Calls a signature; returns answers as the contract has them."""
    import tensorflow as tf

    found = signature(
        inputs=tf.constant(lines), **{name: tf.constant(value) for name, value in inputs.items()}
    )
    texts, scores = np.char.decode(found["outputs"].numpy().astype(bytes), "utf-8"), found["scores"].numpy()
    answers = [
        [
            {"text": str(text), "score": float(score)}
            for text, score in zip(*pair, strict=True)
            if score > NO_OUTPUT
        ]
        for pair in zip(texts, scores, strict=True)
    ]
    for outputs, is_cut in zip(answers, found["truncated"].numpy(), strict=True):
        for output in outputs if is_cut else ():
            output["truncated"] = True
    return answers


SEARCHES = {  # without options that an export fixes
    PIECES: ("greedy", "beams", "wide", "alpha_0", "alpha_negative", "short", "long", "tag"),
    SUBWORDS: ("greedy", "wide"),
}


def test_an_exported_model(exported):
    """One batch has all searches, since each line has options of its own."""
    model, _, module = exported
    expected = decoding.expectations(model)
    lines = list(LINES_OF[model])
    assert not list(differences(expected["usual"], served(module.signatures["serving_default"], lines)))
    inputs = {name: [] for name in ("beam_size", "alpha", "extra_length", "n", "tag")}
    for name in SEARCHES[model]:
        options = options_of(model, CASES[model][name])
        values = options.beam_size, options.alpha, options.extra_length, options.outputs, options.tag
        for column, value in zip(inputs.values(), values, strict=True):
            column += [value] * len(lines)
    if model == SUBWORDS:  # which has no tags
        del inputs["tag"]
    answers = [answer for name in SEARCHES[model] for answer in expected[name]]
    signature = module.signatures["translate_with_options"]
    assert not list(differences(answers, served(signature, lines * len(SEARCHES[model]), **inputs)))


def options_of(model, case):
    defaults = json.loads((decoding.folder_of(model) / "run.json").read_text())["decode_hparams"]
    return DecodeHParams.parse(case.options, defaults)


def test_scores_of_an_exported_model(exported):
    import tensorflow as tf

    model, _, module = exported
    case = CASES[model]["targets"]
    lines, targets = decoding.asked(model, case), list(case.targets.values())
    found = module.signatures["score"](
        inputs=tf.constant(lines), targets=tf.constant(targets), alternatives=tf.constant(0)
    )
    expected = [one["log_prob"] for (one,) in decoding.expectations(model)["targets"]]
    np.testing.assert_allclose(found["log_probs"], expected, rtol=decoding.TOLERANCE)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["phrases", "avoid"])
def test_an_exported_model_by_its_client(exported, name, tmp_path):
    model, folder, _ = exported
    if name not in CASES[model]:
        pytest.skip("no such case")
    found = by_query(model, name, folder, tmp_path)
    assert not list(differences(decoding.expectations(model)[name], found))


def by_query(model, name, folder, scratch):
    options = options_of(model, CASES[model][name])
    names = "beam_size", "alpha", "extra_length", "return_beams", "tokenized", "constrained"
    text = ",".join(f"{option}={getattr(options, option)}" for option in names[: 6 if model == TREES else 4])
    case = dataclasses.replace(CASES[model][name], options=text)
    return decoding.by_query(model, case, folder, scratch)


@pytest.mark.nightly
def test_an_exported_parser(tmp_path_factory, tmp_path):
    folder = export(TREES, tmp_path_factory)
    for name in ("usual", "wide", "words"):
        found = by_query(TREES, name, folder, tmp_path)
        assert not list(differences(decoding.expectations(TREES)[name], found))


@pytest.mark.skipif(not find_spec("ai_edge_litert"), reason="LiteRT is not installed")
@pytest.mark.parametrize("name", ["beams", pytest.param("greedy", marks=pytest.mark.nightly)])
def test_litert(name, tmp_path_factory):
    from ai_edge_litert.interpreter import Interpreter
    from sentencepiece import SentencePieceProcessor

    options = CASES[PIECES][name].options
    folder = export(PIECES, tmp_path_factory, "--format=litert", f"--decode_hparams={options}")
    (model,) = folder.glob("*/*.tflite")
    (vocabulary,) = folder.glob("*/*.spm")
    pieces = SentencePieceProcessor(model_file=str(vocabulary))
    run = Interpreter(str(model)).get_signature_runner()
    for line, expected in zip(LINES_OF[PIECES], decoding.expectations(PIECES)[name], strict=True):
        ids = pieces.encode(line)
        if not line.strip() or len(ids) > 23 or "\u2581" in line:  # blank, cut or escaped by the package
            continue
        found = run(inputs=np.array([[*ids, 1]], np.int32))
        texts = [pieces.decode([token for token in row if token > 1]) for row in found["outputs"][0].tolist()]
        outputs = [
            {"text": text, "score": score}
            for text, score in zip(texts, found["scores"][0].tolist(), strict=True)
        ]
        assert not list(differences(expected, outputs))

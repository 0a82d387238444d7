"""LiteRT's flatbuffer returns the outputs of `Translator`."""

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.serving.litert import MODEL, _Embedding, write_litert

litert = pytest.importorskip("ai_edge_litert.interpreter")

LINES = ["the dog sees 3 houses .", "", "cat", "der cat sees the dog sees 7 houses .", "ß 👩‍👧"]
EOS = 1
BEAMS = DecodeHParams(beam_size=3, extra_length=5, return_beams=True)
GREEDY = DecodeHParams(beam_size=1, extra_length=5)


@pytest.fixture(scope="module")
def converted(make_translator, tmp_path_factory):
    """Returns a function from options and quantisation to a translator, its flatbuffer and the size of it."""
    made = {}

    def convert(options, quantize="none", **changes):
        key = options, quantize, *changes
        if key not in made:
            translator = make_translator(options, **changes)
            folder = tmp_path_factory.mktemp("litert") / "model"
            write_litert(translator, folder, quantize)
            assert (folder / "vocabulary.spm").read_bytes() == translator.vocabulary.content
            interpreter = litert.Interpreter(str(folder / MODEL), num_threads=1)
            made[key] = translator, interpreter.get_signature_runner(), (folder / MODEL).stat().st_size
        return made[key]

    return convert


def rows(translator, lines):
    """Ids of lines with EOS, padded with 0; of a blank line, 0 alone."""
    ids = [[*translator.vocabulary.encode(line), EOS] if line else [] for line in lines]
    return np.array([row + [0] * (max(map(len, ids)) - len(row)) for row in ids], np.int32)


def texts(translator, outputs):
    """Texts of ids [batch, n, length]; line ends are spaces, as in the translator's."""
    decode = translator.vocabulary.decode
    return [[decode(row[row > EOS].tolist()).replace("\n", " ") for row in beams] for beams in outputs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (GREEDY, {}),
        (GREEDY, {"decoder_self_attention": "ssru"}),
        (BEAMS, {"attention_window": 4}),
    ],
)
def test_outputs_are_the_translators(converted, options, changes):
    translator, model, _ = converted(options, **changes)
    expected = translator.nbest(LINES)
    together = model(inputs=rows(translator, LINES))
    for index, line in enumerate(LINES):
        if not line:
            continue
        alone = model(inputs=rows(translator, [line]))
        for outputs, scores in (
            (together["outputs"][index], together["scores"][index]),
            (alone["outputs"][0], alone["scores"][0]),
        ):
            assert texts(translator, [outputs]) == [[output.text for output in expected[index]]]
            np.testing.assert_allclose(scores, [output.score for output in expected[index]], rtol=1e-4)


@pytest.mark.slow
def test_int8_is_near_and_smaller(converted):
    translator, model, size = converted(GREEDY, "int8")
    _, exact, size_of_float32 = converted(GREEDY)
    inputs = rows(translator, LINES)
    found, expected = model(inputs=inputs), exact(inputs=inputs)
    there = [index for index, line in enumerate(LINES) if line]
    np.testing.assert_allclose(found["scores"][there], expected["scores"][there], rtol=0.02)
    assert size < size_of_float32
    for index in there:
        alone = model(inputs=rows(translator, [LINES[index]]))
        assert texts(translator, alone["outputs"]) == texts(translator, found["outputs"][index : index + 1])
        np.testing.assert_allclose(alone["scores"][0], found["scores"][index], rtol=1e-5)


@pytest.mark.parametrize(
    ("hparam", "fault"),
    [
        ("deterministic_attention", "LiteRT's format does not support deterministic_attention=True"),
        (
            "reverse_target",
            "LiteRT's format does not support reverse_target=True, .*: give --format=saved_model",
        ),
    ],
)
def test_decoders_of_another_kind_are_refused(make_translator, tmp_path, hparam, fault):
    translator = make_translator(GREEDY, **{hparam: True})
    with pytest.raises(T2TError, match=fault):
        write_litert(translator, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("options", [{"constrained": True}, {"shortlist": "on"}])
def test_trees_and_shortlists_are_refused(options):
    with pytest.raises(T2TError, match=f"LiteRT's format has no {next(iter(options))}"):
        DecodeHParams(**options).check_litert()


def test_an_embedding_has_a_scale_for_each_token():
    table = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32) * np.logspace(-3, 3, 9)[:, None]
    table = table.astype(np.float32)
    steps = np.abs(table).max(axis=1) / 127
    ids = np.array([[8, 0], [3, 3]])
    found = _Embedding(table).take(tf.constant(ids)).numpy()
    assert (np.abs(found - table[ids]) <= steps[ids][:, :, None] * 0.501).all()
    np.testing.assert_array_equal(_Embedding(table).transpose(), table.T)

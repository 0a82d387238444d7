"""LiteRT's flatbuffer returns the outputs of `Translator`."""

import numpy as np
import pytest

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.serving.litert import MODEL, write_litert

litert = pytest.importorskip("ai_edge_litert.interpreter")

LINES = ["the dog sees 3 houses .", "", "cat", "der cat sees the dog sees 7 houses .", "ß 👩‍👧"]
EOS = 1
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

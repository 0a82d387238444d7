"""LiteRT's flatbuffer returns the outputs of `Translator`."""

import numpy as np
import pytest

from t2t_revival import DecodeHParams
from t2t_revival.addons.litert import MODEL, write_litert

litert = pytest.importorskip("ai_edge_litert.interpreter")

LINES = ["the dog sees 3 houses .", "", "cat", "der cat sees the dog sees 7 houses .", "ß 👩‍👧"]
EOS = 1


def converted(translator, folder, quantize="none"):
    """Returns what calls the flatbuffer of a translator, and its size."""
    write_litert(translator, folder, quantize)
    assert (folder / "vocabulary.spm").read_bytes() == translator.vocabulary.content
    interpreter = litert.Interpreter(str(folder / MODEL), num_threads=1)
    return interpreter.get_signature_runner(), (folder / MODEL).stat().st_size


def rows(translator, lines):
    """Ids of lines with EOS, padded with 0; of a blank line, 0 alone."""
    ids = [[*translator.vocabulary.encode(line), EOS] if line else [] for line in lines]
    return np.array([row + [0] * (max(map(len, ids)) - len(row)) for row in ids], np.int32)


def texts(translator, outputs):
    """Texts of ids [batch, n, length]; line ends are spaces, as in the translator's."""
    decode = translator.vocabulary.decode
    return [[decode(row[row > EOS].tolist()).replace("\n", " ") for row in beams] for beams in outputs]


@pytest.mark.slow
def test_int8_is_near_and_smaller(make_translator, tmp_path):
    translator = make_translator(DecodeHParams(beam_size=1, extra_length=5))
    model, size = converted(translator, tmp_path / "int8", "int8")
    exact, size_of_float32 = converted(translator, tmp_path / "float32")
    inputs = rows(translator, LINES)
    found, expected = model(inputs=inputs), exact(inputs=inputs)
    there = [index for index, line in enumerate(LINES) if line]
    np.testing.assert_allclose(found["scores"][there], expected["scores"][there], rtol=0.02)
    assert size < size_of_float32
    for index in there:
        alone = model(inputs=rows(translator, [LINES[index]]))
        assert texts(translator, alone["outputs"]) == texts(translator, found["outputs"][index : index + 1])
        np.testing.assert_allclose(alone["scores"][0], found["scores"][index], rtol=1e-5)

"""Requests that are joined into batches get what they would get alone, from every signature of an export."""

import asyncio
from unittest import mock

import numpy as np
import pytest

from t2t_revival import DecodeHParams, LineConstraints
from t2t_revival.addons.lexical.tables import NO_PHRASES
from t2t_revival.addons.server.batching import Batcher, BatchLimits
from t2t_revival.addons.server.metrics import Metrics
from t2t_revival.serving.folder_model import FolderModel
from t2t_revival.serving.served_translator import ServedTranslator
from t2t_revival.serving.signatures import DEFAULT, NO_OUTPUT, SCORE, WITH_OPTIONS, WITH_SAMPLING, WITH_TABLES

LINES = [
    "the dog sees the house",
    "",
    "cat",
    "der Hund sees 3 houses .",
    "the cat the cat the cat the cat",
    "a",
]
OPTIONS = {"beam_size": 4, "alpha": 0.6, "extra_length": 3}
SAMPLING = {"sampling_temp": 0.9, "sampling_keep_top_k": -1, "random_seed": 7}


class Joined:
    """An exported model whose batches hold as many lines as come; it counts them."""

    def __init__(self, model):
        self._model, self.batches = model, []
        self.where, self.signature_defs = model.where, model.signature_defs

    def predict(self, signature, inputs):
        self.batches.append(len(inputs["inputs"]))
        return self._model.predict(signature, inputs)


@pytest.fixture(scope="module")
def model(exported_version):
    model = FolderModel(exported_version)
    yield Joined(model)
    model.close()


def tables_of(model, line):
    """Returns the tables of words of a line, as a client sends them; a blank one has none."""
    if not line:
        return NO_PHRASES
    words = LineConstraints(tuple(line.split()[:2]))
    with mock.patch.object(model, "predict", wraps=model.predict) as predict:
        ServedTranslator(model, DecodeHParams(extra_length=20)).nbest([line], constraints=[words])
    return [table for call in predict.call_args_list for table in call.args[1].get("tables", ())][-1]


def requests(signature, model):
    """Requests of different widths; the last one has lines of several batches."""
    parts = [(LINES[:1], [1]), (LINES[1:3], [3, 2]), (LINES[3:4], [4]), (LINES, [1, 1, 3, 1, 2, 1])]
    for lines, counts in parts:
        columns = {"inputs": lines}
        if signature == SCORE:
            yield columns | {"targets": lines[::-1], "alternatives": [count - 1 for count in counts]}
            continue
        given = {"n": counts}
        if signature in (WITH_OPTIONS, WITH_TABLES):
            given |= {name: [value] * len(lines) for name, value in OPTIONS.items()}
        if signature == WITH_TABLES:
            given["tables"] = [tables_of(model, line) for line in lines]
        if "sampling" in signature:
            usual = {"alpha": 0.6, "extra_length": 3, **SAMPLING}
            given |= {name: [value] * len(lines) for name, value in usual.items()}
        yield columns if signature == DEFAULT else columns | given


@pytest.mark.slow
@pytest.mark.parametrize("most", [64, 2])
@pytest.mark.parametrize(
    "signature",
    [
        DEFAULT,
        SCORE,
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in (WITH_OPTIONS, WITH_SAMPLING, WITH_TABLES)
        ),
    ],
)
def test_a_request_gets_what_it_would_get_alone(model, signature, most):
    asked = [*requests(signature, model)]
    alone = [model.predict(signature, columns) for columns in asked]
    model.batches.clear()

    async def main():
        async with Batcher(BatchLimits(max_lines=most, parallel=1), Metrics()) as batcher:
            answers = (batcher.translate(model, signature, columns) for columns in asked)
            return await asyncio.gather(*answers)

    found = asyncio.run(main())
    assert max(model.batches) > 4 if most == 64 else len(model.batches) > 4  # joined, and split
    for answer, expected in zip(found, alone, strict=True):
        assert answer.keys() == expected.keys()
        for name, values in expected.items():
            got, wanted = np.array(answer[name]), np.array(values)  # rectangular: a ragged row would fail
            assert got.shape == wanted.shape, name
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(got, wanted, atol=2e-4, err_msg=name)
            else:
                assert (got == wanted).all(), name


@pytest.mark.slow
def test_an_answer_has_as_many_outputs_as_its_widest_line(model):
    """Lines of n=1 that share no batch with that of n=3 are padded as in one batch."""
    options = {name: [value] * 4 for name, value in OPTIONS.items()}
    columns = {"inputs": ["the dog"] * 4, "n": [3, 1, 1, 1], **options}

    async def main():
        async with Batcher(BatchLimits(max_lines=1, parallel=1), Metrics()) as batcher:
            return await batcher.translate(model, WITH_OPTIONS, columns)

    found = asyncio.run(main())
    assert [len(row) for row in found["outputs"]] == [3] * 4
    assert found["outputs"][3][1:] == [b"", b""]
    assert found["scores"][3][1:] == [NO_OUTPUT] * 2

"""An exported model that needs no weights: it writes in capital letters."""

import threading

import pytest
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from t2t_revival.errors import T2TError
from t2t_revival.serving.client import DEFAULT, DTYPES, NO_OUTPUT, WITH_OPTIONS

NUMBERS = {"float32": 1, "int32": 3, "string": 7}  # of `DataType`


class CapitalLetters:
    """Returns n outputs for each line, the text in capitals first, and fails for lines that are "fault".

    Attributes:
        batches: the lines of each call.
        gate: calls wait until it is set.
    """

    where = "capitals"

    def __init__(self, tags=False):
        self.batches, self.gate = [], threading.Event()
        self.gate.set()
        self.signature_defs = {DEFAULT: self._signature(["inputs"])}
        self.signature_defs[WITH_OPTIONS] = self._signature([*DTYPES][: None if tags else -1])
        if tags:
            self.signature_defs[WITH_OPTIONS].defaults["tag"].string_val.append(b"")

    def predict(self, signature, inputs):
        self.batches.append([*inputs["inputs"]])
        assert self.gate.wait(10)
        if "fault" in inputs["inputs"]:
            raise T2TError("capitals: a fault")
        counts = inputs.get("n", [1] * len(inputs["inputs"]))
        outputs, scores = [], []
        for line, count in zip(inputs["inputs"], counts, strict=True):
            outputs.append([line.upper().encode(), *[b"?"] * (count - 1), *[b""] * (max(counts) - count)])
            scores.append([-0.1 * (n + 1) for n in range(count)] + [NO_OUTPUT] * (max(counts) - count))
        return {"outputs": outputs, "scores": scores}

    @staticmethod
    def _signature(names):
        signature = SignatureDef(method_name="tensorflow/serving/predict")
        for name in names:
            signature.inputs[name].dtype = NUMBERS[DTYPES[name]]
        for name, dtype in (("outputs", "string"), ("scores", "float32")):
            signature.outputs[name].dtype = NUMBERS[dtype]
        return signature


@pytest.fixture
def capitals():
    return CapitalLetters()

"""A translator under the signatures of an exported model, for an engine that has no SavedModel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

from tensorboard.compat.proto.meta_graph_pb2 import SignatureDef  # TensorFlow's, without TensorFlow

from t2t_revival.decoding import holders
from t2t_revival.decoding.lines.preprocessor import Truncation, check_tag, known_tags
from t2t_revival.decoding.options import BEAM, DecodeHParams
from t2t_revival.decoding.translator import Translator
from t2t_revival.errors import T2TError
from t2t_revival.serving.description import Description
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    DTYPES,
    INPUTS,
    NO_OUTPUT,
    WITH_OPTIONS,
    Inputs,
    inputs_of,
)

OUTPUTS = {  # types and ranks
    "outputs": ("string", 2),
    "scores": ("float32", 2),
    "truncated": ("bool", 1),
    "cut": ("bool", 2),
}
Output = tuple[bytes, float, bool]  # text, score, and whether it was cut
TAG = "tag"  # an input of models with tags
NO_TAG = {"dtype": "DT_STRING", "tensor_shape": {}, "string_val": [b""]}  # its default
PROTOS = {"string": "DT_STRING", "int32": "DT_INT32", "float32": "DT_FLOAT", "bool": "DT_BOOL"}


class TranslatorModel:
    """`Translator` with CTranslate2 as its engine, as `FolderModel` has a SavedModel.

    Args:
        translator: its problem converts nothing here.

    Attributes:
        where: the training's checkpoint.
        signature_defs: inputs and outputs of the signatures (`SignatureDef`), by name.
    """

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self.where = str(translator.checkpoint.path if translator.checkpoint else "the model")
        has_tags = known_tags(translator.vocabularies, translator.problem)
        options = [
            name
            for name in [*inputs_of(BEAM), *[TAG] * bool(has_tags)]
            if name not in INPUTS or holders.CTRANSLATE2 in INPUTS[name].held_by
        ]
        self.signature_defs = {
            DEFAULT: _definition(["inputs"]),
            WITH_OPTIONS: _definition(options),
            DESCRIBE: _definition(["inputs"], {"description": ("string", 1)}),
        }

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature; see `Model.predict`."""
        own = self._translator.options
        known = {TAG, *self.signature_defs[signature].inputs}
        if unknown := [name for name in inputs if name not in known]:
            raise T2TError(f"{self.where}: {signature} has no input {unknown[0]}")
        if signature == DESCRIBE:
            return {"description": [self._description] * len(inputs["inputs"])}
        if signature == DEFAULT:
            calls = [(own, own.outputs)] * len(inputs["inputs"])
        else:
            calls = [
                self._call(dict(zip(inputs, row, strict=True))) for row in zip(*inputs.values(), strict=True)
            ]
        found: dict[int, list[Output]] = {}
        truncated = [False] * len(calls)
        for options, n in dict.fromkeys(calls):
            rows = [row for row, call in enumerate(calls) if call == (options, n)]
            lines = [inputs["inputs"][row] for row in rows]
            outputs, too_long = self._translate(lines, options, n)
            found |= zip(rows, outputs, strict=True)
            for number in too_long:
                truncated[rows[number - 1]] = True
        width = max((n for _, n in calls), default=0)
        padded = [[*found[row], *[(b"", NO_OUTPUT, False)] * width][:width] for row in range(len(calls))]
        names = "outputs", "scores", "cut"
        columns = {name: [[one[at] for one in row] for row in padded] for at, name in enumerate(names)}
        return columns | {"truncated": truncated}

    @cached_property
    def _description(self) -> str:
        return Description.of(self._translator, aligns=False).to_json()

    def close(self) -> None:
        """Leaves the model, whose memory goes with it."""
        del self._translator

    def _call(self, given: Mapping[str, Any]) -> tuple[DecodeHParams, int]:
        """Returns the settings of a line and its number of outputs.

        Raises:
            T2TError: they are out of bounds.
        """
        chosen = {name: value for name, value in given.items() if name in (*INPUTS, TAG)}
        options = replace(self._translator.options, **chosen)
        if given.get("alpha"):  # as in `search_settings_of`
            options = replace(options, normalize=0.0)
        if not 1 <= given["n"] <= options.beam_size:
            raise T2TError(f"n must be between 1 and beam_size: {given['n']}")
        return options, given["n"]

    def _translate(
        self, lines: list[str], options: DecodeHParams, n: int
    ) -> tuple[list[list[Output]], list[int]]:
        """Returns the outputs of each line, and the numbers, from 1, of those that are too long."""
        check_tag(options.tag, self._translator.vocabularies, self._translator.problem)
        translator = copy(self._translator)  # of an engine that takes its options with each call
        translator.options, translator.problem, translator.repeats_texts = options, None, True
        too_long: list[Truncation] = []
        found = translator.nbest(lines, n, on_truncation=too_long.append)
        outputs = [
            [(one.text.encode(), max(one.score, NO_OUTPUT), one.cut) for one in outputs] for outputs in found
        ]
        return outputs, [truncation.number for truncation in too_long]


def _definition(inputs: Sequence[str], outputs: Mapping[str, tuple[str, int]] = OUTPUTS) -> SignatureDef:
    return SignatureDef(
        method_name="tensorflow/serving/predict",
        inputs={name: _info(name, DTYPES[name], int(name == "inputs")) for name in inputs},
        outputs={name: _info(name, *kind) for name, kind in outputs.items()},
        defaults={TAG: NO_TAG} if TAG in inputs else {},
    )


def _info(name: str, dtype: str, rank: int) -> dict[str, Any]:
    """Returns the description of a tensor; one of rank 0 may have any."""
    shape = {"dim": [{"size": -1}] * rank} if rank else {"unknown_rank": True}
    return {"name": f"{name}:0", "dtype": PROTOS[dtype], "tensor_shape": shape}

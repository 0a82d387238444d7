"""An exported model that runs in this process."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError
from t2t_revival.native_log import quiet
from t2t_revival.serving.client import DTYPES, USUAL, WITH_OPTIONS, Inputs, plain

SAVED_MODEL = "saved_model.pb"
OUTWARD = re.compile(  # operations that call Python, or read or write files of any name
    r"(Eager)?PyFunc(Stateless)?|(Read|Write)File|Print(V2)?|.*Summary.*|.*(Reader|Dataset|Iterator|Debug|Dump).*"
)


class FolderModel:
    """An exported folder in this process. Imports TensorFlow and TensorFlow Text.

    No Python code comes from the folder. But a SavedModel is a program of TensorFlow's operations: those that
    call Python or touch files are refused, and still it should come from somebody who is trusted.

    Args:
        path: a version's folder, or one of versions, of which the highest is taken.

    Raises:
        T2TError: there is no model of this project, or one with operations that it has no use for.
    """

    def __init__(self, path: Path) -> None:
        folder = _version(path)
        self.where = str(folder)
        self._called = False
        import tensorflow as tf

        _check_operations(folder)
        importlib.import_module("tensorflow_text")  # its ops must be known before a model with them is read
        try:
            with quiet():
                self._signatures = tf.saved_model.load(str(folder)).signatures
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            raise T2TError(f"{folder}: cannot be read, export it again: {plain(str(error))}") from error
        for name in (USUAL, WITH_OPTIONS):
            found = self._signatures.get(name)
            if found is None or "inputs" not in found.structured_input_signature[1]:
                raise T2TError(f"{folder}: a SavedModel, but none of t2t-exporter")

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """As `Model.predict`."""
        import tensorflow as tf

        tensors = {name: tf.constant(values, DTYPES[name]) for name, values in inputs.items()}
        known, self._called = self._called, True
        try:
            with nullcontext() if known else quiet():  # oneDNN remarks on the processor at the first call
                found = self._signatures[signature](**tensors)
        except tf.errors.OpError as error:
            raise T2TError(f"{self.where}: {plain(error.message)}") from error
        return {name: tensor.numpy().tolist() for name, tensor in found.items()}


def _check_operations(folder: Path) -> None:
    """Refuses a SavedModel with operations that reach outside of it, before any of them could run."""
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel()
    try:
        model.ParseFromString((folder / SAVED_MODEL).read_bytes())
    except (OSError, DecodeError) as error:
        raise T2TError(f"{folder}: cannot be read, export it again: {error}") from error
    for graph in (meta.graph_def for meta in model.meta_graphs):
        bodies = [graph.node, *(function.node_def for function in graph.library.function)]
        for operation in (node.op for nodes in bodies for node in nodes):
            if OUTWARD.fullmatch(operation):
                raise T2TError(f"{folder}: refused: it has {operation}, which no model of t2t-exporter has")


def _version(path: Path) -> Path:
    """The folder of a SavedModel: `path` itself, or the highest version in it."""
    if (path / SAVED_MODEL).exists():
        return path
    there = [file.parent for file in path.glob(f"*/{SAVED_MODEL}") if file.parent.name.isdecimal()]
    if not there:
        missing = "no exported model there" if path.is_dir() else "no such folder"
        raise T2TError(f"{path}: {missing}; t2t-exporter writes one")
    return max(there, key=lambda folder: int(folder.name))

"""Exported models in this process, without a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from t2t_revival.errors import T2TError
from t2t_revival.serving.client import DEFAULT, DTYPES, WITH_OPTIONS, Inputs, plain
from t2t_revival.utils.native_log import quiet

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

SAVED_MODEL = "saved_model.pb"
UNSAFE = re.compile(  # operations that call Python, or read or write files
    r"(Eager)?PyFunc(Stateless)?|(Read|Write)File|Print(V2)?|.*Summary.*|.*(Reader|Dataset|Iterator|Debug|Dump).*"
)


class FolderModel:
    """An exported model, loaded from its folder. Imports TensorFlow and TensorFlow Text.

    A folder holds no Python code, but a SavedModel is a program of TensorFlow operations. Operations that
    call Python or access files are rejected; load models from trusted sources only, nevertheless.

    Args:
        path: folder of a version, or of several, of which the highest is loaded.

    Raises:
        T2TError: there is no model of this project, or one with unsafe operations.

    Attributes:
        where: the version's folder.
        signature_defs: inputs and outputs of the signatures (`SignatureDef`), by name.
    """

    def __init__(self, path: Path) -> None:
        folder = _version(path)
        self.where = str(folder)
        self._called = False
        self.signature_defs = _check_operations(folder)
        self._signatures = _load(folder)

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature; see `Model.predict`."""
        import tensorflow as tf

        if signature not in self._signatures:
            raise T2TError(
                f"{self.where}: exported without a shortlist; export it again with "
                "--decode_hparams=shortlist=by_line, or ask without one"
            )
        function = self._signatures[signature]
        tensors = {name: tf.constant(values, DTYPES[name]) for name, values in inputs.items()}
        if "tag" in function.structured_input_signature[1]:
            tensors.setdefault("tag", tf.constant(""))  # as servers have it from the signature
        called_before, self._called = self._called, True
        try:
            with nullcontext() if called_before else quiet():  # oneDNN logs at the first call
                found = function(**tensors)
        except tf.errors.OpError as error:
            raise T2TError(f"{self.where}: {plain(error.message)}") from error
        return {name: tensor.numpy().tolist() for name, tensor in found.items()}


def _check_operations(folder: Path) -> dict[str, SignatureDef]:
    """Rejects a SavedModel with unsafe operations before it is loaded; returns its signatures."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel()
    try:
        model.ParseFromString((folder / SAVED_MODEL).read_bytes())
    except (OSError, DecodeError) as error:
        raise T2TError(f"{folder}: cannot be loaded ({error}); export it again") from error
    for graph in (meta.graph_def for meta in model.meta_graphs):
        bodies = [graph.node, *(function.node_def for function in graph.library.function)]
        for operation in (node.op for nodes in bodies for node in nodes):
            if UNSAFE.fullmatch(operation):
                raise T2TError(
                    f"{folder}: contains the unsafe operation {operation}, which t2t-exporter never writes"
                )
    return {name: signature for meta in model.meta_graphs for name, signature in meta.signature_def.items()}


def _load(folder: Path) -> Mapping[str, Any]:
    """Loads a SavedModel; returns its signatures."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the ops of the model

    try:
        with quiet():
            signatures = tf.saved_model.load(str(folder)).signatures
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        raise T2TError(f"{folder}: cannot be loaded ({plain(str(error))}); export it again") from error
    for name in (DEFAULT, WITH_OPTIONS):
        function = signatures.get(name)
        if function is None or "inputs" not in function.structured_input_signature[1]:
            raise T2TError(f"{folder}: not a SavedModel that t2t-exporter wrote")
    return signatures


def _version(path: Path) -> Path:
    """Returns the folder of a SavedModel: `path` itself, or the highest version in it."""
    if (path / SAVED_MODEL).exists():
        return path
    if any(next(path.glob(pattern), None) for pattern in ("model.bin", "*/model.bin")):
        raise T2TError(
            f"{path}: exported for CTranslate2, and no SavedModel; t2t-decoder --engine=ctranslate2 decodes "
            "with that engine"
        )
    versions = [file.parent for file in path.glob(f"*/{SAVED_MODEL}") if file.parent.name.isdecimal()]
    if not versions:
        problem = "no exported model here" if path.is_dir() else "no such folder"
        raise T2TError(f"{path}: {problem}; export one with t2t-exporter")
    return max(versions, key=lambda folder: int(folder.name))

"""Exported models in this process, without a server."""

from __future__ import annotations

import gc
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from t2t_revival.errors import T2TError
from t2t_revival.serving.client import plain
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    DTYPES,
    WITH_OPTIONS,
    WITH_PREFIXES,
    WITH_TABLES,
    Inputs,
)
from t2t_revival.utils.files import check_for_tensorflow, path_of
from t2t_revival.utils.native_log import quiet
from t2t_revival.utils.processes import check_not_forked, start_computing

if TYPE_CHECKING:
    import numpy as np
    from tensorflow.compat.v1 import Session
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

SAVED_MODEL = "saved_model.pb"
WEIGHTS = ("variables/variables.index", "variables/variables.data-*")
AGAIN = "export it again"
MISSING = dict.fromkeys(
    (DESCRIBE, WITH_TABLES, WITH_PREFIXES),
    f"{AGAIN}, or ask without constraints, forced beginnings, sentences and markup; parsers have none",
)
INITIALIZE = "__saved_model_init_op"  # TensorFlow's own signature
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
        T2TError: there is no model of this project, or one with unsafe operations; or as `start_computing`.

    Attributes:
        where: the version's folder.
        signature_defs: inputs and outputs of the signatures (`SignatureDef`), by name.
    """

    def __init__(self, path: str | Path) -> None:
        folder, self._process = _version(path_of(path, "path")), os.getpid()
        self.where = str(folder)
        self._called = False
        self.signature_defs = _check_operations(folder)
        check_for_tensorflow(folder, "rename the folder")
        start_computing()
        self._session = _load(folder)
        self._functions = {name: self._function(name) for name in self.signature_defs}

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature; see `Model.predict`."""
        import tensorflow as tf

        check_not_forked(self._process)
        if signature not in self._functions:
            raise T2TError(f"{self.where}: has no signature {signature}: {MISSING.get(signature, AGAIN)}")
        definition = self.signature_defs[signature]
        if unknown := [name for name in inputs if name not in definition.inputs]:
            raise T2TError(f"{self.where}: {signature} has no input {unknown[0]}")
        given = [self._array(name, inputs, definition.defaults) for name in definition.inputs]
        called_before, self._called = self._called, True
        try:
            with nullcontext() if called_before else quiet():  # oneDNN logs at the first call
                found = self._functions[signature](*given)
        except tf.errors.OpError as error:
            raise T2TError(f"{self.where}: {plain(error.message)}") from error
        return {name: array.tolist() for name, array in zip(definition.outputs, found, strict=True)}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the folder, from which a copy is loaded."""
        return FolderModel, (os.path.abspath(self.where),)

    def close(self) -> None:
        """Frees the memory of the model, which cannot be called again."""
        self._session.close()
        gc.collect()  # the graph refers to itself

    def _function(self, name: str) -> Callable[..., list[np.ndarray]]:
        definition = self.signature_defs[name]
        inputs, outputs = (
            [tensor.name for tensor in tensors.values()]
            for tensors in (definition.inputs, definition.outputs)
        )
        return self._session.make_callable(outputs, feed_list=inputs)

    def _array(self, name: str, inputs: Inputs, defaults: Mapping[str, Any]) -> np.ndarray:
        """Returns the values of an input; of one that is not given, its default."""
        import numpy as np
        import tensorflow as tf

        if name in inputs:
            return np.array(inputs[name], object if DTYPES[name] == "string" else DTYPES[name])
        if name not in defaults:
            raise T2TError(f"{self.where}: the input {name} is missing")
        return tf.make_ndarray(defaults[name])


def _check_operations(folder: Path) -> dict[str, SignatureDef]:
    """Rejects a SavedModel with unsafe operations before it is loaded; returns its signatures."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    model = SavedModel()
    try:
        model.ParseFromString((folder / SAVED_MODEL).read_bytes())
        for pattern in WEIGHTS:
            if not any(folder.glob(pattern)):
                raise FileNotFoundError(f"it has no {pattern}; is it still being copied?")
    except (OSError, DecodeError) as error:
        raise T2TError(f"{folder}: cannot be loaded ({error}); export it again") from error
    for graph in (meta.graph_def for meta in model.meta_graphs):
        bodies = [graph.node, *(function.node_def for function in graph.library.function)]
        for operation in (node.op for nodes in bodies for node in nodes):
            if UNSAFE.fullmatch(operation):
                raise T2TError(
                    f"{folder}: contains the unsafe operation {operation}, which t2t-exporter never writes"
                )
    signatures = (meta.signature_def.items() for meta in model.meta_graphs)
    return {name: signature for found in signatures for name, signature in found if name != INITIALIZE}


def _load(folder: Path) -> Session:
    """Loads a SavedModel into a session of its own, with which all of its memory goes.

    `tf.saved_model.load` keeps the functions of a model as long as the process lives.
    """
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the ops of the model

    session = tf.compat.v1.Session(graph=tf.Graph())  # with TensorFlow's threads and devices as they are set
    try:
        with quiet(), _without_warnings(tf.get_logger()), session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(session, [tf.saved_model.SERVING], str(folder))
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        raise T2TError(f"{folder}: cannot be loaded ({plain(str(error))}); export it again") from error
    for name in (DEFAULT, WITH_OPTIONS):
        if "inputs" not in loaded.signature_def[name].inputs:
            raise T2TError(f"{folder}: not a SavedModel that t2t-exporter wrote")
    return session


@contextmanager
def _without_warnings(logger: logging.Logger) -> Iterator[None]:
    """Leaves out the warning that a function of TensorFlow 1 is there for compatibility alone."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


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

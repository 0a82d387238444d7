"""Export of a trained model for TensorFlow Serving, as a SavedModel."""

from __future__ import annotations

import re
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog, PredictLog

from t2t_revival.decoding.addons import addon
from t2t_revival.decoding.lines.preprocessor import known_tags
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.serving.client import predict_request
from t2t_revival.serving.export_origin import save_origin
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.signatures import (
    DEFAULT,
    DESCRIBE,
    SCORE,
    WITH_PREFIXES,
    WITH_SAMPLING,
    WITH_TABLES,
    option_inputs,
)
from t2t_revival.utils.files import exclusive_lock, write_whole

if TYPE_CHECKING:
    from t2t_revival.decoding.addons import Shortlist
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.decoding.translator import Translator

UNFINISHED = ".unfinished-"  # prefix of a folder that a killed export may leave
SERVABLE = re.compile(r"\w[\w.-]*")
WARMUP = Path("assets.extra", "tf_serving_warmup_requests")
WARMUP_PIECES, WARMUP_LINES = (8, 32), (1, 8)  # per line; per request
FIRST_PIECE = 259  # after PAD, EOS, UNK and the bytes

MODELS_CONFIG = """\
model_config_list {{
  config {{
    name: "{name}"
    base_path: "/models/{name}"
    model_platform: "tensorflow"
  }}
}}
"""

# Requests that arrive together are decoded together; larger ones than a batch are split.
BATCHING_PARAMETERS = """\
max_batch_size { value: 1024 }
enable_large_batch_splitting { value: true }
max_execution_batch_size { value: 64 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1000 }
"""

# One thread per operation, as in t2t-decoder: batches run in parallel. The image must not be older than the
# TensorFlow of the export.
COMPOSE = """\
services:
  {name}:
    image: tensorflow/serving:{tensorflow}
    ports:
      - "8500:8500"  # gRPC
      - "8501:8501"  # REST
    volumes:
      - .:/models/{name}:ro
    command:
      - --model_config_file=/models/{name}/models.config
      - --enable_batching
      - --batching_parameters_file=/models/{name}/batching_parameters.txt
      - --tensorflow_intra_op_parallelism=1
"""


SERVING_STEPS = """\
next: {query}
or serve it with a page: {server}
or by TensorFlow Serving: cd {folder} && docker compose up, or without a container:
tensorflow_model_server --port=8500 --rest_api_port=8501 --model_name={name} --model_base_path={folder} \
--enable_batching --batching_parameters_file={folder}/batching_parameters.txt \
--tensorflow_intra_op_parallelism=1
and ask it: {ask}"""


@dataclass(frozen=True)
class Export:
    """A model to be written in a format of exports, and what belongs to it.

    Attributes:
        translator: model, vocabularies and options.
        export_dir: of the versions.
        name: of the problem.
        quantize: one of the format's.
        about: what people are told of the training.
        heads: whose attention are alignments; `None` takes the usual.
        shortlist: to which searches are limited; `None` limits none.
        t2t_usr_dir: the user's package, which commands that use the export may need.
    """

    translator: Translator
    export_dir: Path
    name: str
    quantize: str
    about: str
    heads: AlignmentHeads | None = None
    shortlist: Shortlist | None = None
    t2t_usr_dir: str | None = None

    def write_version(self, write: Callable[[Path], None]) -> Path:
        """Creates a new version with `write`; see the function of this name."""
        return write_version(self.export_dir, self.translator, write)


def export_saved_model(what: Export) -> tuple[Path, str]:
    """Writes a version for TensorFlow Serving; also returns the commands that serve it."""
    version = export(what.translator, what.export_dir, what.name, what.quantize, what.heads)
    problem = what.translator.problem
    trees = problem is not None and problem.separates_words
    return version, serving_steps(what.export_dir.absolute(), what.name, trees, what.t2t_usr_dir)


def serving_steps(saved_model: Path, name: str, trees: bool, t2t_usr_dir: str | None) -> str:
    """Returns the commands that serve an export of a problem, and ask it; outputs may be `trees`."""
    # The problem makes trees of what comes back.
    own = {"problem": name, "t2t_usr_dir": t2t_usr_dir} if trees else {}
    return SERVING_STEPS.format(
        query=CommandLine("t2t-query-server", **own, saved_model=saved_model),
        server=CommandLine("t2t-server", **own, saved_model=saved_model),
        ask=CommandLine("t2t-query-server", **own, server="localhost:8500", servable_name=name),
        folder=shlex.quote(str(saved_model)),
        name=name,
    )


def export(
    translator: Translator,
    export_dir: Path,
    name: str,
    quantize: str = "none",
    heads: AlignmentHeads | None = None,
) -> Path:
    """Writes `export_dir/VERSION`, complete or not at all; VERSION is the time, as in T2T.

    TensorFlow Serving watches `export_dir` and serves the highest version. Its configuration is written
    there too.

    Args:
        translator: model, vocabulary and options; the model's precision is `PRECISIONS[quantize]`.
        export_dir: created if missing.
        name: name of the served model.
        quantize: type of the stored weights: "none" (float32), "bfloat16" or "int8_weights".
        heads: see `ServingModule`.

    Returns:
        Folder of the version.

    Raises:
        T2TError: the folder cannot be written, or `name` is invalid.
    """
    if not SERVABLE.fullmatch(name):
        raise T2TError(
            f"{name!r} is not a valid name of a served model: use only letters, digits, _, . and -"
        )
    module = ServingModule(translator, quantize, heads)

    def write(folder: Path) -> None:
        _write_configuration(export_dir, name)
        options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)  # nobody trains it
        tf.saved_model.save(module, str(folder), signatures=module.signatures, options=options)
        _write_warmup(folder, name, translator, module.signatures)

    return write_version(export_dir, translator, write)


def write_version(export_dir: Path, translator: Translator, write: Callable[[Path], None]) -> Path:
    """Creates a new version in `export_dir` with `write`, and its origin; returns its folder."""
    is_new = not export_dir.exists()
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=export_dir, prefix=UNFINISHED) as folder:
            version = Path(folder) / "version"
            write(version)
            save_origin(translator, version)
            with exclusive_lock(export_dir, None):  # other processes may export into it
                versions = [int(path.name) for path in export_dir.iterdir() if path.name.isdecimal()]
                number = max(int(time.time()), *(earlier + 1 for earlier in versions), 0)  # since 1970
                return version.rename(export_dir / str(number))
    except (OSError, tf.errors.OpError) as error:
        reason = "the disk is full" if isinstance(error, tf.errors.ResourceExhaustedError) else error
        raise T2TError(f"cannot write {export_dir}: {reason}; make room, or give another folder") from error
    finally:
        if is_new:
            with suppress(OSError):  # there is a version
                export_dir.rmdir()


def _write_configuration(export_dir: Path, name: str) -> None:
    """Writes the files for `docker compose up` in `export_dir`; files that exist are kept."""
    for file_name, text in (
        ("models.config", MODELS_CONFIG.format(name=name)),
        ("batching_parameters.txt", BATCHING_PARAMETERS),
        ("compose.yaml", COMPOSE.format(name=name, tensorflow=tf.__version__)),
    ):
        if not (export_dir / file_name).exists():
            write_whole(export_dir / file_name, text.encode())


def _write_warmup(folder: Path, name: str, translator: Translator, signatures: Iterable[str]) -> None:
    """Writes requests that TensorFlow Serving runs before it reports that it is ready.

    Their lines are made of the vocabulary's pieces; `folder` is a version's.
    """
    vocabulary = translator.vocabulary
    path = folder / WARMUP
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as records:
        usual = translator.options
        sampling = DecodeHParams(alpha=usual.alpha, extra_length=usual.extra_length, sampling_method="random")
        for pieces, lines in product(WARMUP_PIECES, WARMUP_LINES):
            line = vocabulary.decode(range(FIRST_PIECE, min(FIRST_PIECE + pieces, vocabulary.size)))
            for signature in signatures:
                inputs: dict[str, list[Any]] = {"inputs": [line] * lines}
                if signature == SCORE:
                    inputs |= {"targets": [line] * lines, "alternatives": [0] * lines}
                elif signature not in (DEFAULT, DESCRIBE):
                    options = sampling if signature == WITH_SAMPLING else usual
                    inputs |= option_inputs(options, lines, options.outputs)
                    if signature == WITH_TABLES:
                        inputs["tables"] = [addon("no_tables")] * lines
                    elif signature == WITH_PREFIXES:
                        inputs["prefixes"] = [""] * lines
                    elif known_tags(translator.vocabularies, translator.problem):
                        inputs["tag"] = [translator.options.tag] * lines
                log = PredictLog(request=predict_request(name, signature, inputs))
                records.write(PredictionLog(predict_log=log).SerializeToString())

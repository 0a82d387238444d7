"""Configuration of TensorFlow Serving, and warm-up requests."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

from t2t_revival.utils.files import atomic_write

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary.text_encoder import TextEncoder
    from t2t_revival.decoding.options import DecodeHParams

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


def write_configuration(export_dir: Path, name: str) -> None:
    """Writes the files for `docker compose up` in `export_dir`; files that exist are kept.

    Args:
        export_dir: folder of the versions.
        name: name of the served model.
    """
    for file_name, text in (
        ("models.config", MODELS_CONFIG.format(name=name)),
        ("batching_parameters.txt", BATCHING_PARAMETERS),
        ("compose.yaml", COMPOSE.format(name=name, tensorflow=tf.__version__)),
    ):
        if not (export_dir / file_name).exists():
            with atomic_write(export_dir / file_name) as file:
                file.write(text.encode())


def write_warmup(folder: Path, name: str, vocabulary: TextEncoder, options: DecodeHParams) -> None:
    """Writes requests that TensorFlow Serving runs before it reports that it is ready.

    Args:
        folder: folder of a version.
        name: name of the served model.
        vocabulary: lines are made of its pieces.
        options: options of the requests to `translate_with_options`.
    """
    path = folder / WARMUP
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as records:
        for pieces, lines in product(WARMUP_PIECES, WARMUP_LINES):
            line = vocabulary.decode(range(FIRST_PIECE, min(FIRST_PIECE + pieces, vocabulary.size)))
            inputs: dict[str, list[Any]] = {"inputs": [line] * lines}
            values: dict[str, list[Any]] = {
                "beam_size": [options.beam_size] * lines,
                "alpha": [float(options.alpha)] * lines,
                "extra_length": [options.extra_length] * lines,
                "n": [options.outputs] * lines,
            }
            records.write(_prediction_log(name, "serving_default", inputs))
            records.write(_prediction_log(name, "translate_with_options", {**inputs, **values}))


def _prediction_log(name: str, signature: str, inputs: dict[str, list[Any]]) -> bytes:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for key, values in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(values))
    log = prediction_log_pb2.PredictionLog(predict_log=prediction_log_pb2.PredictLog(request=request))
    return log.SerializeToString()

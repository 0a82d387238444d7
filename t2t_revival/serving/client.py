"""Asks an exported model: by TensorFlow Serving over gRPC or REST; `folder_model` asks the folder itself."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ReadTimeoutError
from urllib3.util import Retry

from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams

USUAL, WITH_OPTIONS = "serving_default", "translate_with_options"  # signatures
NO_OUTPUT = -1e9  # the score where a line has fewer outputs than others
DTYPES = {"inputs": "string", "beam_size": "int32", "alpha": "float32", "extra_length": "int32", "n": "int32"}
BATCH_SIZE, TIMEOUT_SECS, RETRIES = 32, 60, 4
MOST_RETRIES = 4  # gRPC allows no more
BACKOFF = 0.5  # seconds before the first retry; each further pause is twice as long
RECONNECT_MS = 200  # well below the pauses, so that each retry is a new connection
MOST_BYTES = 2**31 - 1  # of an answer, and of a request that is kept for a retry
MOST_SAID = 500  # characters of a server's message that are shown
ADDRESS = re.compile(r"(\[[\da-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")
CODES = {  # what TensorFlow Serving says over REST for a code of gRPC
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
ASSERTION = re.compile(r"assertion failed: \[(.*?)\] \[(.*?)\]", re.DOTALL)
NODES = re.compile(
    r"Graph execution error:|Detected at node .*?<stack traces unavailable>"
    r"|\[\[.*?\]\]|\{\{.*?\}\}|\[Op:.*?\]",
    re.DOTALL,
)

Inputs = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Output:
    """One output. `score` is log-probability / length penalty; that of an empty input's output is 0."""

    text: str
    score: float


class Model(Protocol):
    """An exported model, wherever it runs."""

    where: str  # names it in errors

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature once: lists [batch] by name to nested lists by name, whose strings may be bytes.

        Raises:
            T2TError: there is no answer; says why and the way out.
        """


def query(
    model: Model,
    lines: Sequence[str],
    options: DecodeHParams | None = None,
    batch_size: int = BATCH_SIZE,
    filled: bool = False,
) -> list[list[Output]]:
    """The outputs of each line, best first; at least one.

    Args:
        model: what is asked.
        lines: any text.
        options: how to decode; None: as the model was exported.
        batch_size: lines of one request.
        filled: whether a line with fewer outputs than others has empty ones of score -inf behind them.

    Raises:
        T2TError: a line cannot be UTF-8; no answer, or none of a model of this project.
    """
    found = []
    for start in range(0, len(lines), batch_size):
        batch = lines[start : start + batch_size]
        answer = model.predict(*_request(batch, options))
        found += _outputs(answer, len(batch), model.where)
    if filled:
        return found
    return [[output for output in outputs if output.score > NO_OUTPUT] for outputs in found]


def connect(
    server: str, servable_name: str, timeout_secs: float = TIMEOUT_SECS, retries: int = RETRIES
) -> Model:
    """A model of a running TensorFlow Serving; nothing is sent before it is asked.

    Args:
        server: host:port for gRPC, http://host:port or https://host:port for REST.
        servable_name: the model's name there.
        timeout_secs: how long an answer may take: with all retries (gRPC), or each time (REST).
        retries: further tries where a server is not available, after 0.5, 1, 2 and 4 s; at most 4.

    Raises:
        T2TError: `server` is no address.
    """
    if is_rest(server):
        return RestModel(server, servable_name, timeout_secs, retries)
    if not ADDRESS.fullmatch(server):
        raise T2TError(f"server {server!r}: give host:port for gRPC or http://host:port for REST")
    return GrpcModel(server, servable_name, timeout_secs, retries)


def is_rest(server: str) -> bool:
    """Whether an address is that of a REST server, for which TensorFlow is not needed."""
    return server.startswith(("http://", "https://"))


class _Servable:
    """What both protocols have in common: a name at a server, and what its errors mean."""

    def __init__(self, server: str, name: str, timeout_secs: float) -> None:
        self.where = server
        self._name = name
        self._timeout = timeout_secs

    def _fail(self, code: str, said: str = "") -> NoReturn:
        """Raises the error that stands for a code of gRPC."""
        said = plain(said)
        meant = {
            "UNAVAILABLE": f"not available: {said}; is TensorFlow Serving running there, and the port right "
            "(host:port is for gRPC, http://host:port for REST)?",
            "NOT_FOUND": f"{said}; does it serve a model with --servable_name={self._name}?",
            "INVALID_ARGUMENT": f"refused: {said}",
            "DEADLINE_EXCEEDED": f"no answer in {self._timeout:g} s; if it is running there, give a larger "
            "--timeout_secs or a smaller --batch_size",
            "RESOURCE_EXHAUSTED": f"too much at once: {said}; give a smaller --batch_size",
            "UNIMPLEMENTED": f"a gRPC server, but no TensorFlow Serving: {said}",
        }
        raise T2TError(f"{self.where}: {meant.get(code, f'{code}: {said}')}")


class GrpcModel(_Servable):
    """A model of a running TensorFlow Serving, over gRPC. Imports TensorFlow."""

    def __init__(self, server: str, servable_name: str, timeout_secs: float, retries: int) -> None:
        import grpc
        from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

        super().__init__(server, servable_name, timeout_secs)
        self._stub = PredictionServiceStub(grpc.insecure_channel(server, _channel_options(retries)))

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """As `Model.predict`."""
        import grpc
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        request = PredictRequest()
        request.model_spec.name = self._name
        request.model_spec.signature_name = signature
        for name, values in inputs.items():
            request.inputs[name].CopyFrom(tf.make_tensor_proto(values, DTYPES[name]))
        try:
            response = self._stub.Predict(request, timeout=self._timeout)
        except grpc.RpcError as error:
            self._fail(error.code().name, error.details() or "")
        return {name: tf.make_ndarray(proto).tolist() for name, proto in response.outputs.items()}


class RestModel(_Servable):
    """A model of a running TensorFlow Serving, over REST."""

    def __init__(self, server: str, servable_name: str, timeout_secs: float, retries: int) -> None:
        super().__init__(server.rstrip("/"), servable_name, timeout_secs)
        self._url = f"{self.where}/v1/models/{quote(servable_name, safe='')}:predict"
        self._session = requests.Session()
        retry = _Retry(
            retries,
            allowed_methods=None,  # POST too: a question changes nothing at the server
            status_forcelist=[503],
            backoff_factor=BACKOFF,
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        self._session.mount(self.where, HTTPAdapter(max_retries=retry))

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """As `Model.predict`."""
        body: dict[str, Any] = {"signature_name": signature, "inputs": dict(inputs)}
        try:
            response = self._session.post(self._url, json=body, timeout=self._timeout, allow_redirects=False)
        except requests.Timeout:
            self._fail("DEADLINE_EXCEEDED")
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            self._fail("UNAVAILABLE", _root(error))
        except requests.RequestException as error:
            self._fail("failed", str(error))
        answer = None
        with suppress(requests.JSONDecodeError):
            answer = response.json()
        if response.status_code != requests.codes.ok:
            said = answer.get("error") if isinstance(answer, dict) else None
            code = CODES.get(response.status_code, f"HTTP {response.status_code}")
            self._fail(code, str(said or response.reason))
        outputs = answer.get("outputs") if isinstance(answer, dict) else None
        if not isinstance(outputs, dict):
            raise T2TError(f"{self.where}: not an answer of TensorFlow Serving: {response.text[:80]!r}")
        return outputs


class _Retry(Retry):
    """Retries, but not what took too long: it would take as long again."""

    def increment(self, *place: Any, **named: Any) -> Any:
        error = named.get("error")
        if isinstance(error, ReadTimeoutError):
            raise error
        if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            raise MaxRetryError(named["_pool"], "", error)
        return super().increment(*place, **named)

    def get_backoff_time(self) -> float:
        """Seconds before the next try, as gRPC waits: also before the first."""
        return BACKOFF * 2 ** (len(self.history) - 1) if self.history else 0


def _channel_options(retries: int) -> list[tuple[str, Any]]:
    policy = {
        "maxAttempts": retries + 1,
        "initialBackoff": f"{BACKOFF}s",
        "maxBackoff": f"{BACKOFF * 2**MOST_RETRIES}s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    method = {"name": [{"service": "tensorflow.serving.PredictionService"}], "retryPolicy": policy}
    config = json.dumps({"methodConfig": [method] if retries else []})
    return [
        ("grpc.service_config", config),
        ("grpc.max_receive_message_length", MOST_BYTES),
        ("grpc.per_rpc_retry_buffer_size", MOST_BYTES),  # what is larger is not tried again
        ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
    ]


def _request(lines: Sequence[str], options: DecodeHParams | None) -> tuple[str, Inputs]:
    """The signature and what it is called with: each option once for each line."""
    try:
        "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise T2TError(f"not UTF-8 text: {error.object[error.start :][:80]!r}") from error
    if options is None:
        return USUAL, {"inputs": lines}
    asked = {
        "beam_size": options.beam_size,
        "alpha": float(options.alpha),
        "extra_length": options.extra_length,
        "n": options.outputs,
    }
    return WITH_OPTIONS, {"inputs": lines, **{name: [value] * len(lines) for name, value in asked.items()}}


def _outputs(answer: Mapping[str, Any], lines: int, where: str) -> list[list[Output]]:
    """Reads "outputs" and "scores", both [batch, n]; what stands for no output gets a score of -inf."""
    texts, scores = answer.get("outputs", ()), answer.get("scores", ())
    if not (_is_table(texts, (str, bytes)) and _is_table(scores, (int, float))):
        names = ", ".join(sorted(answer)) or "nothing"
        raise T2TError(f"{where}: an answer of {names}, not of a model that t2t-exporter wrote")
    if not len(texts) == len(scores) == lines or [*map(len, texts)] != [*map(len, scores)]:
        raise T2TError(f"{where}: {len(texts)} outputs and {len(scores)} scores for {lines} lines")
    found = [
        [
            Output(_text(text), score if score > NO_OUTPUT else -math.inf)
            for text, score in zip(*row, strict=True)
        ]
        for row in zip(texts, scores, strict=True)
    ]
    if not all(any(output.score > NO_OUTPUT for output in outputs) for outputs in found):
        raise T2TError(f"{where}: the model finds no output: its weights are not numbers; export another")
    return found


def _is_table(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list) and all(isinstance(cell, kinds) for cell in row) for row in value
    )


def _text(text: str | bytes) -> str:
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def plain(said: str) -> str:
    """A message of TensorFlow without the nodes of its graph, on one line."""
    if found := ASSERTION.search(said):
        said = f"{found[1]} {found[2]}"
    said = " ".join(NODES.sub(" ", said).split())
    return said if len(said) <= MOST_SAID else f"{said[:MOST_SAID]}..."


def _root(error: BaseException) -> str:
    """What the innermost cause of an error says."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    if error.args and isinstance(error.args[-1], Exception):  # as urllib3 has it
        error = error.args[-1]
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"

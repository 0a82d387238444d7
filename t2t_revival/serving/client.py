"""Client of exported models that TensorFlow Serving serves, over gRPC or REST."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol
from urllib.parse import quote

from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError, ReadTimeoutError
from urllib3.util import Retry

from t2t_revival.decoding.outputs import MISSING, Candidate
from t2t_revival.errors import T2TError
from t2t_revival.serving.proxies import proxy_of
from t2t_revival.serving.signatures import DTYPES, NO_OUTPUT, Inputs

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef


BATCH_SIZE, RETRIES = 32, 4
TIMEOUT_SECS = 90  # more than t2t-server's 60, whose own message and Retry-After are seen then
MAX_RETRIES = 4  # of gRPC
BACKOFF = 0.5  # seconds before the first retry; doubles with each
RECONNECT_MS = 200  # well below BACKOFF, so that each retry opens a new connection
MAX_BYTES = 2**31 - 1  # of a response, and of a request that can be retried
MAX_MESSAGE = 500  # characters of a server's message that are shown
ADDRESS = re.compile(r"(\[[\da-fA-F:.]+\]|[^\s:/\[\]]+):\d{1,5}")
GRPC_CODES = {  # by TensorFlow Serving's HTTP status
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


class Model(Protocol):
    """An exported model, on a server or in this process."""

    where: str  # address or folder, for messages

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature with lists, [batch], by name; returns nested lists, whose strings may be bytes.

        Raises:
            T2TError: there is no response; the message has the reason and a hint.
        """


class LoadedModel(Model, Protocol):
    """A model in this process: of a SavedModel, or another one with its signatures."""

    @property
    def signature_defs(self) -> Mapping[str, SignatureDef]:
        """Inputs and outputs of the signatures, by name."""

    def close(self) -> None:
        """Frees the memory of the model."""


def connect(
    server: str, servable_name: str, timeout_secs: float = TIMEOUT_SECS, retries: int = RETRIES
) -> Model:
    """Returns a model that TensorFlow Serving serves; the first request opens the connection.

    Args:
        server: host:port for gRPC, http://host:port or https://host:port for REST.
        servable_name: name of the model at the server.
        timeout_secs: time limit of a request, with all retries (gRPC) or of each try (REST).
        retries: retries if the server is unavailable, after 0.5, 1, 2 and 4 s; at most 4.

    Raises:
        T2TError: `server` is not an address.
    """
    if is_rest(server):
        return RestModel(server, servable_name, timeout_secs, retries)
    if not ADDRESS.fullmatch(server):
        raise T2TError(
            f"server {server!r} is not an address: give host:port for gRPC or http://host:port for REST"
        )
    return GrpcModel(server, servable_name, timeout_secs, retries)


def is_rest(server: str) -> bool:
    """Returns whether an address is that of a REST server, which needs no TensorFlow here."""
    return server.startswith(("http://", "https://"))


class _Servable:
    """Base of both protocols: address, model name and error messages."""

    def __init__(self, server: str, name: str, timeout_secs: float) -> None:
        self.where = server
        self._name = name
        self._timeout = timeout_secs
        self._proxy = proxy_of(server)

    def _fail(self, code: str, message: str = "") -> NoReturn:
        """Raises the error of a gRPC code."""
        message = plain(message)
        errors = {
            "UNAVAILABLE": f"not available: {message}; is TensorFlow Serving running there, and is the port "
            "right (host:port is for gRPC, http://host:port for REST)?",
            "BUSY": f"not available: {message}; the server is running: try again later, or give more "
            "--retries",
            "NOT_FOUND": f"{message}; does it serve a model with --servable_name={self._name}?",
            "INVALID_ARGUMENT": f"invalid request: {message}",
            "DEADLINE_EXCEEDED": f"no answer in {self._timeout:g} s; if the server is running and has loaded "
            "its model, give a larger --timeout_secs or a smaller --batch_size",
            "RESOURCE_EXHAUSTED": f"the request is too large, or there are too many: {message}; give a "
            "smaller --batch_size",
            "UNIMPLEMENTED": f"a gRPC server, but not TensorFlow Serving: {message}",
        }
        asked = f" (asked by the proxy {self._proxy}: set no_proxy to ask without it)" if self._proxy else ""
        raise T2TError(f"{self.where}{asked}: {errors.get(code, f'{code}: {message}')}")


class GrpcModel(_Servable):
    """A served model over gRPC. Imports TensorFlow."""

    def __init__(self, server: str, servable_name: str, timeout_secs: float, retries: int) -> None:
        import grpc
        from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

        super().__init__(server, servable_name, timeout_secs)
        self._retries = retries
        options = [*_channel_options(retries), ("grpc.enable_http_proxy", int(bool(self._proxy)))]
        self._stub = PredictionServiceStub(grpc.insecure_channel(server, options))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the address; a copy opens a connection of its own."""
        return GrpcModel, (self.where, self._name, self._timeout, self._retries)

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature; see `Model.predict`."""
        import grpc
        import tensorflow as tf

        request = predict_request(self._name, signature, inputs)
        try:
            response = self._stub.Predict(request, timeout=self._timeout)
        except grpc.RpcError as error:
            self._fail(error.code().name, error.details() or "")
        return {name: tf.make_ndarray(proto).tolist() for name, proto in response.outputs.items()}


def predict_request(name: str, signature: str, inputs: Inputs) -> Any:
    """Returns a request of TensorFlow Serving for a signature of the model of that name."""
    import tensorflow as tf
    from tensorflow_serving.apis.predict_pb2 import PredictRequest

    request = PredictRequest()
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    for key, values in inputs.items():
        request.inputs[key].CopyFrom(tf.make_tensor_proto(values, DTYPES[key]))
    return request


class RestModel(_Servable):
    """A served model over REST."""

    def __init__(self, server: str, servable_name: str, timeout_secs: float, retries: int) -> None:
        import requests
        from requests.adapters import HTTPAdapter

        super().__init__(server.rstrip("/"), servable_name, timeout_secs)
        self._url = f"{self.where}/v1/models/{quote(servable_name, safe='')}:predict"
        self._session = requests.Session()
        retry = _Retry(
            retries,
            allowed_methods=None,  # POST too: predictions change nothing at the server
            status_forcelist=[503],
            backoff_factor=BACKOFF,
            raise_on_status=False,
            respect_retry_after_header=False,
        )
        self._session.mount(self.where, HTTPAdapter(max_retries=retry))

    def predict(self, signature: str, inputs: Inputs) -> Mapping[str, Any]:
        """Calls a signature; see `Model.predict`."""
        import requests

        body: dict[str, Any] = {"signature_name": signature, "inputs": dict(inputs)}
        try:
            response = self._session.post(
                self._url,
                json=body,
                timeout=self._timeout,
                allow_redirects=False,
                proxies=None if self._proxy else {"no_proxy": "*"},
            )
        except requests.Timeout:
            self._fail("DEADLINE_EXCEEDED")
        except (requests.ConnectionError, requests.exceptions.ChunkedEncodingError) as error:
            self._fail("UNAVAILABLE", _root(error))
        except requests.RequestException as error:
            self._fail("failed", str(error))
        content = None
        with suppress(requests.JSONDecodeError):
            content = response.json()
        if response.status_code != requests.codes.ok:
            message = content.get("error") if isinstance(content, dict) else None
            code = GRPC_CODES.get(response.status_code, f"HTTP {response.status_code}")
            self._fail("BUSY" if message and code == "UNAVAILABLE" else code, str(message or response.reason))
        outputs = content.get("outputs") if isinstance(content, dict) else None
        if not isinstance(outputs, dict):
            raise T2TError(f"{self.where}: not a response of TensorFlow Serving: {response.text[:80]!r}")
        return outputs


class _Retry(Retry):
    """Retries that stop at a timeout: another try would take as long."""

    def increment(self, *place: Any, **named: Any) -> Any:
        error = named.get("error")
        if isinstance(error, ReadTimeoutError):
            raise error
        if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            raise MaxRetryError(named["_pool"], "", error)
        return super().increment(*place, **named)

    def get_backoff_time(self) -> float:
        """Returns the seconds before the next retry: those of gRPC, which also waits before the first."""
        return BACKOFF * 2 ** (len(self.history) - 1) if self.history else 0


def _channel_options(retries: int) -> list[tuple[str, Any]]:
    policy = {
        "maxAttempts": retries + 1,
        "initialBackoff": f"{BACKOFF}s",
        "maxBackoff": f"{BACKOFF * 2**MAX_RETRIES}s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    method = {"name": [{"service": "tensorflow.serving.PredictionService"}], "retryPolicy": policy}
    config = json.dumps({"methodConfig": [method] if retries else []})
    return [
        ("grpc.service_config", config),
        ("grpc.max_receive_message_length", MAX_BYTES),
        ("grpc.per_rpc_retry_buffer_size", MAX_BYTES),  # larger requests are not retried
        ("grpc.max_reconnect_backoff_ms", RECONNECT_MS),
    ]


def outputs_of(response: Mapping[str, Any], lines: int, where: str) -> list[list[Candidate]]:
    """Returns the outputs of each line, best first; at least one, and as many as a line of the response has.

    Args:
        response: has "outputs" and "scores", both [batch, n], and "truncated"; of newer exports, "cut" too.
            Padding's score becomes -inf.
        lines: number of lines of the request.
        where: see `Model`.

    Raises:
        T2TError: the response is not that of an exported model, or a line has no output.
    """
    texts, scores, truncated = (response.get(name, "") for name in ("outputs", "scores", "truncated"))
    tables = _is_table(texts, (str, bytes)) and _is_table(scores, (int, float))
    cut = response.get("cut", [[False] * len(row) for row in texts] if tables else [])
    shapes = [[*map(len, table)] for table in (texts, scores, cut if _is_table(cut, (bool,)) else [])]
    fits = tables and isinstance(truncated, list) and len(texts) == len(truncated) == lines
    if not fits or shapes.count(shapes[0]) < len(shapes):
        names = ", ".join(sorted(response)) or "nothing"
        raise T2TError(
            f"{where}: the response to {lines} lines has {names}: not a model that t2t-exporter wrote"
        )
    results = [
        [
            Candidate(text_of(text), score if score > NO_OUTPUT else MISSING, (), bool(is_short), is_cut)
            for text, score, is_cut in zip(*row, strict=True)
        ]
        for *row, is_short in zip(texts, scores, cut, truncated, strict=True)
    ]
    if not all(any(output.score > NO_OUTPUT for output in outputs) for outputs in results):
        raise T2TError(f"{where}: no output: the model's weights contain NaN; export another checkpoint")
    return results


def _is_table(value: Any, kinds: tuple[type, ...]) -> bool:
    return isinstance(value, list) and all(
        isinstance(row, list) and all(isinstance(cell, kinds) for cell in row) for row in value
    )


def text_of(text: str | bytes) -> str:
    """Returns a text of a response, which gRPC has as bytes."""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else text


def plain(message: str) -> str:
    """Returns a message of TensorFlow on one line, without the nodes of the graph."""
    if match := ASSERTION.search(message):
        message = f"{match[1]} {match[2]}"
    message = " ".join(NODES.sub(" ", message).split())
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}..."


def _root(error: BaseException) -> str:
    """Returns the message of the innermost cause of an error."""
    while inner := error.__cause__ or error.__context__:
        error = inner
    if error.args and isinstance(error.args[-1], Exception):  # in urllib3
        error = error.args[-1]
    return getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"

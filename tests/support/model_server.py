"""A server that speaks TensorFlow Serving's gRPC and REST, and ways to break it."""

import json
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  a model holds ops of it
from tensorflow_serving.apis.predict_pb2 import PredictResponse
from tensorflow_serving.apis.prediction_service_pb2_grpc import (
    PredictionServiceServicer,
    add_PredictionServiceServicer_to_server,
)

from t2t_revival.serving import client

HOST = "127.0.0.1"
PATH = re.compile(r"/v1/models/([^/:]+)(?:/versions/\d+)?:predict")
STATUS = {"INVALID_ARGUMENT": 400, "NOT_FOUND": 404, "INTERNAL": 500, "UNAVAILABLE": 503}


class Refusal(Exception):
    """A call that fails with a code of gRPC, by its name, and a message."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


class Servable:
    """A SavedModel under a name; its call is (name, signature, inputs) -> arrays."""

    def __init__(self, name, folder):
        self._name = name
        self._signatures = tf.saved_model.load(str(folder)).signatures

    def __call__(self, name, signature, inputs):
        if name != self._name:
            raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name})")
        if signature not in self._signatures:
            raise Refusal("INVALID_ARGUMENT", f'Serving signature name: "{signature}" not found')
        function = self._signatures[signature]
        specs = function.structured_input_signature[1]
        if set(inputs) != set(specs):
            raise Refusal("INVALID_ARGUMENT", f"input size does not match signature: {sorted(specs)}")
        try:
            outputs = function(**{key: _tensor(values, specs[key]) for key, values in inputs.items()})
        except (tf.errors.InvalidArgumentError, TypeError, ValueError) as error:
            raise Refusal("INVALID_ARGUMENT", str(error)) from error
        return {key: tensor.numpy() for key, tensor in outputs.items()}


def _tensor(values, spec):
    """Lists become what the signature wants; arrays must be it."""
    if isinstance(values, np.ndarray) and tf.as_dtype(values.dtype) != spec.dtype:
        raise TypeError(f"{spec.name}: expected {spec.dtype.name}, got {values.dtype}")
    return tf.constant(values, spec.dtype)


def echo(name, signature, inputs):
    """Stands in for a `Servable`: lines in capitals, and with !, !! and so on; scores are 0, -1, -2, ..."""
    if name != "echo":
        raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name})")
    lines = [line.decode() if isinstance(line, bytes) else line for line in inputs["inputs"]]
    n = max(inputs["n"]) if signature == "translate_with_options" else 1
    outputs = np.array([[f"{line.upper()}{'!' * i}".encode() for i in range(n)] for line in lines], object)
    scores = np.tile(np.float32([[-i for i in range(n)]]), (len(lines), 1))
    return {"outputs": outputs, "scores": scores, "truncated": np.zeros(len(lines), bool)}


class ModelServer:
    """Serves `predict`, such as a `Servable`, on two free ports until `close`; `predict` may be replaced."""

    def __init__(self, predict):
        self.predict = predict
        self._grpc = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_receive_message_length", -1)])
        add_PredictionServiceServicer_to_server(_Service(self), self._grpc)
        self.grpc_port = self._grpc.add_insecure_port(f"{HOST}:0")
        self._grpc.start()
        self._http = ThreadingHTTPServer((HOST, 0), _Handler)
        self._http.daemon_threads = True
        self._http.model_server = self
        self.rest_port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self._http.shutdown()
        self._http.server_close()
        self._grpc.stop(None).wait()


class Side:
    """One of the protocols of a server, and clients of it."""

    def __init__(self, model_server, protocol):
        self.model_server, self.protocol = model_server, protocol
        self.port = model_server.grpc_port if protocol == "grpc" else model_server.rest_port

    def at(self, port, timeout_secs=10, retries=0, name="echo"):
        """The model, through another port."""
        scheme = "" if self.protocol == "grpc" else "http://"
        return client.connect(f"{scheme}{HOST}:{port}", name, timeout_secs, retries)

    def model(self, **changes):
        """The model, as `at` has it."""
        return self.at(self.port, **changes)


class _Service(PredictionServiceServicer):
    def __init__(self, server):
        self._server = server

    def Predict(self, request, context):
        inputs = {key: tf.make_ndarray(proto) for key, proto in request.inputs.items()}
        spec = request.model_spec
        try:
            outputs = self._server.predict(spec.name, spec.signature_name or "serving_default", inputs)
        except Refusal as refusal:
            context.abort(grpc.StatusCode[refusal.code], refusal.message)
        return PredictResponse(outputs={key: tf.make_tensor_proto(array) for key, array in outputs.items()})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            self._send(200, self._predict(body))
        except Refusal as refusal:
            self._send(STATUS[refusal.code], {"error": refusal.message})

    def _predict(self, body):
        path = PATH.fullmatch(self.path)
        if not path:
            raise Refusal("NOT_FOUND", f"Malformed request: POST {self.path}")
        try:
            request = json.loads(body)
            rows = request.get("instances")
            inputs = request["inputs"] if rows is None else _columns(rows)
        except (ValueError, KeyError) as error:
            raise Refusal("INVALID_ARGUMENT", f"JSON Parse error: {error}") from error
        signature = request.get("signature_name", "serving_default")
        outputs = self.server.model_server.predict(path[1], signature, inputs)
        lists = {key: _json(array) for key, array in outputs.items()}
        if rows is None:
            return {"outputs": lists}
        return {
            "predictions": [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
        }

    def _send(self, status, answer):
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(ConnectionError):  # of a client that is gone
            self.wfile.write(content)

    def log_message(self, *_):
        pass


def _columns(rows):
    if not all(isinstance(row, dict) for row in rows):
        return {"inputs": rows}
    return {key: [row[key] for row in rows] for key in rows[0]} if rows else {"inputs": []}


def _json(array):
    return [[cell.decode() for cell in row] for row in array] if array.dtype == object else array.tolist()


class Cable:
    """A port through which that of a server is reached, until `cut`: what a server that dies looks like.

    Args:
        target: the server's port.
        port: its own; 0: a free one.
        most: bytes of answers after which it is cut.
    """

    def __init__(self, target, port=0, most=None):
        self._target, self._left = target, most
        self._sockets = [socket.create_server((HOST, port))]
        self.port = self._sockets[0].getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Closes all connections and accepts no more."""
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self._sockets[0].accept()
                far = socket.create_connection((HOST, self._target))
                self._sockets += [near, far]
                threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, self._left), daemon=True).start()

    def _pump(self, source, sink, left=None):
        with suppress(OSError):
            while content := source.recv(65536 if left is None else min(left, 65536)):
                sink.sendall(content)
                left = None if left is None else left - len(content)
                if left == 0:
                    self.cut()


class Canned:
    """A port where every connection is answered with the same bytes."""

    def __init__(self, content):
        self._content = content
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                with self._listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(self._content)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):  # closing before all is read would be a reset
                        pass


def texts(found):
    """Texts of the outputs of each line."""
    return [[output.text for output in outputs] for outputs in found]

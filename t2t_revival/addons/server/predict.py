"""Predict requests and answers of TensorFlow Serving's REST API, as JSON."""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from t2t_revival.serving.signatures import DEFAULT

if TYPE_CHECKING:
    from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

    from t2t_revival.addons.server.rows import Columns

INSTANCES, INPUTS = "instances", "inputs"  # keys of rows and of columns
MAX_SHOWN = 200  # characters of a request that an error repeats
MAX_DIGITS = 300  # of an integer, which then is a float64 too
TYPES: dict[int, tuple[str, type | tuple[type, ...]]] = {  # by `DataType`
    1: ("float", (int, float)),
    3: ("int32", int),
    7: ("string", str),
}
INT32 = range(-(2**31), 2**31)


class RequestError(Exception):
    """A request that cannot be answered.

    Attributes:
        status: the HTTP status.
    """

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Call(NamedTuple):
    """A call of a signature.

    Attributes:
        signature: its name.
        columns: each input, with one value for each line.
        is_row: whether the request has rows, and its answer too.
    """

    signature: str
    columns: dict[str, list[Any]]
    is_row: bool


def parse_json(body: bytes) -> dict[str, Any]:
    """Parses a request's body.

    Raises:
        RequestError: it is no JSON object, or has a key twice, or a number of more than `MAX_DIGITS` digits.
    """
    try:
        request = json.loads(body, object_pairs_hook=_object, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"JSON Parse error: {error}") from error
    if not isinstance(request, dict):
        raise RequestError(f"JSON Value: {_shown(request)} Is not object")
    return request


def encodable(text: str) -> str:
    """Returns a text with its lone surrogates, which have no UTF-8, as JSON escapes them."""
    return text.encode("utf-8", "backslashreplace").decode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Returns an object, whose names may be looked up anywhere."""
    found = {encodable(key): value for key, value in pairs}
    if len(found) < len(pairs):
        counts = Counter(encodable(key) for key, _ in pairs)
        raise ValueError(f"an object has the key {_shown(counts.most_common(1)[0][0])} twice")
    return found


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has {len(digits):,} digits, more than {MAX_DIGITS}")
    return int(digits)


def parse_predict(body: bytes, signatures: Mapping[str, SignatureDef]) -> Call:
    """Parses a request of rows ("instances") or columns ("inputs").

    Raises:
        RequestError: it is no such request, or not one that the signature takes.
    """
    request = parse_json(body)
    name = request.get("signature_name", DEFAULT)
    if not isinstance(name, str):
        raise RequestError(f"JSON Value: {_shown(request)} 'signature_name' key must be a string value.")
    name = name or DEFAULT
    if name not in signatures:
        raise RequestError(f'Serving signature name: "{name}" not found in signature def')
    if (INSTANCES in request) == (INPUTS in request):
        if INPUTS in request:
            raise RequestError("expecting only one of 'inputs' or 'instances' keys to exist")
        raise RequestError("Missing 'inputs' or 'instances' key")
    is_row = INSTANCES in request
    convert = _from_rows if is_row else _from_columns
    columns = convert(request[INSTANCES if is_row else INPUTS], signatures[name])
    return Call(name, _filled(columns, signatures[name]), is_row)


def format_predict(call: Call, found: Columns) -> dict[str, Any]:
    """Formats the answer of a call; numbers are those of float32, in as few digits as identify them."""
    columns = {name: _json_value(rows) for name, rows in found.items()}
    if not call.is_row:
        return {"outputs": columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"predictions": rows}


def _from_rows(instances: Any, signature: SignatureDef) -> dict[str, Any]:
    """Returns the values of each input: of a list of texts, or of objects that have all inputs."""
    if not isinstance(instances, list):
        raise RequestError("Expecting 'instances' to be a list/array")
    if not instances:
        raise RequestError("No values in 'instances' array")
    if not _is_object(instances[0]) and len(_required(signature)) == 1:
        instances = [{_required(signature)[0]: instance} for instance in instances]
    names = None
    for number, instance in enumerate(instances):
        if not _is_object(instance):
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list: expecting an object with "
                f"{', '.join(signature.inputs)}"
            )
        names = names or instance.keys()
        if instance.keys() != names or not set(_required(signature)) <= names <= set(signature.inputs):
            raise RequestError(
                f"Failed to process element: {number} of 'instances' list. JSON object: {_shown(instance)} "
                f"keys must be equal to: {','.join(sorted(signature.inputs))}"
            )
    return {name: [instance[name] for instance in instances] for name in names or ()}


def _from_columns(inputs: Any, signature: SignatureDef) -> dict[str, Any]:
    """Returns the values of each input: of a list of texts, or of an object of lists and scalars."""
    required = _required(signature)
    if not _is_object(inputs):
        if len(required) > 1:
            raise RequestError(
                f"inputs is a plain value/list, but expecting an object with {', '.join(required)}"
            )
        inputs = {required[0]: inputs}
    for name in required:
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    if unknown := [name for name in inputs if name not in signature.inputs]:
        raise RequestError(f"'inputs' object has an unknown input: {unknown[0]}")
    return dict(inputs)


def _required(signature: SignatureDef) -> list[str]:
    """The names of inputs without a default."""
    return sorted(name for name in signature.inputs if name not in signature.defaults)


def _filled(columns: dict[str, Any], signature: SignatureDef) -> dict[str, list[Any]]:
    """Checks types and shapes; returns one value of each input for each line."""
    lines = columns[INPUTS]
    if not isinstance(lines, list):
        raise RequestError("inputs must be a list of texts")
    count = len(lines)
    filled = {}
    for name, values in columns.items():
        listed = values if isinstance(values, list) else [values]
        converted = [_value(name, value, signature.inputs[name].dtype) for value in listed]
        if len(converted) != count and len(converted) != 1:
            raise RequestError(
                f"{name} must be a scalar, or have one value for each line; its shape is: [{len(converted)}]"
            )
        filled[name] = converted if len(converted) == count else converted * count
    return filled


def _value(name: str, value: Any, dtype: int) -> Any:
    """Returns a value of an input; a text may be base64, as an object with the key b64."""
    kind, types = TYPES[dtype]
    if kind == "string" and isinstance(value, dict) and value.keys() == {"b64"}:
        try:
            return base64.b64decode(value["b64"], validate=True).decode("utf-8", "replace")
        except (binascii.Error, TypeError, ValueError) as error:
            raise RequestError(f"{name}: Unable to base64 decode") from error
    fits = isinstance(value, types) and not isinstance(value, bool)
    if not fits or (kind == "int32" and value not in INT32):
        raise RequestError(f"{name}: JSON Value: {_shown(value)} is not of expected type: {kind}")
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()  # lone surrogates have no UTF-8
    return float(cast(float, value)) if kind == "float" else value


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() != {"b64"}


def _json_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return float(str(np.float32(value))) if isinstance(value, float) else value


def _shown(value: Any) -> str:
    """Returns JSON as messages repeat it: its beginning."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:  # it was parsed just so
        text = "of many levels"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."

"""The web application: TensorFlow Serving's REST API, `/translate`, the page, health and metrics.

Annotations are not postponed here: FastAPI reads them, and some are those of one route.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from importlib.metadata import version
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from t2t_revival.addons.server.batching import BatchLimits
from t2t_revival.addons.server.inspection import ExplainAnswer, ExplainRequest
from t2t_revival.addons.server.invalid import fault_of
from t2t_revival.addons.server.page import add_page
from t2t_revival.addons.server.predict import RequestError, encodable, parse_json
from t2t_revival.addons.server.protection import Protection
from t2t_revival.addons.server.requests import Limits
from t2t_revival.addons.server.service import AskedVersion, Service, Start, failure
from t2t_revival.addons.server.translate import TranslateAnswer, TranslateRequest
from t2t_revival.addons.server.versions import ModelsAnswer, ServedModel
from t2t_revival.errors import T2TError

RETRY = {"Retry-After": "1"}  # seconds
MAX_BODY = 4 * 2**20
MAX_MESSAGE = 1000  # characters of an error
PREDICT_BODY = {
    "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}, "required": True}
}


class ErrorAnswer(BaseModel):
    """A fault of a request or of the server."""

    error: str


class _JsonRequest(Request):
    """A request whose body is parsed as those of TensorFlow Serving's API are."""

    async def json(self) -> Any:
        return parse_json(await self.body())


class _Route(APIRoute):
    """A route of requests with `_JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handle_json


def _newest() -> AskedVersion:
    return AskedVersion()


def _numbered(number: Annotated[int, Path(ge=0, le=2**63 - 1)]) -> AskedVersion:
    return AskedVersion(number)


def _labelled(label: str) -> AskedVersion:
    return AskedVersion(label=label)


KINDS: dict[str, Callable[..., AskedVersion]] = {
    "": _newest,
    "/versions/{number}": _numbered,
    "/labels/{label}": _labelled,
}


def create_app(
    models: Mapping[str, ServedModel],
    limits: Limits | None = None,
    batch_limits: BatchLimits | None = None,
    max_body: int = MAX_BODY,
    api_keys: Collection[str] = (),
    cors_origins: Collection[str] = (),
    start: Start | None = None,
) -> FastAPI:
    """Creates the application.

    Args:
        models: by name; those without a version are loaded when the application starts.
        limits: bounds of requests. `None` takes the default ones.
        batch_limits: bounds of batches and of the queue. `None` takes the default ones.
        max_body: bytes of a request's body.
        api_keys: see `Protection`.
        cors_origins: web sites whose pages may send requests.
        start: what else is done when models are loaded.
    """
    service = Service(models, limits or Limits(), batch_limits or BatchLimits(), start)
    app = FastAPI(
        title="t2t-server",
        version=version("t2t_revival"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses={
            "4XX": {"model": ErrorAnswer, "description": "A request that is wrong."},
            "5XX": {"model": ErrorAnswer, "description": "Too many requests, no answer in time, or a fault."},
        },
        lifespan=service.lifespan,
    )
    app.router.route_class = _Route
    _add_other_routes(app, service)  # first: routes are tried in their order
    for kind, version_of in KINDS.items():
        _add_model_routes(app, service, "/v1/models/{name}" + kind, version_of)
    add_page(app)
    for kind_of_error, handler in (
        (RequestError, _show_error),
        (T2TError, _show_error),
        (asyncio.TimeoutError, _show_error),
        (Exception, _show_error),
        (RequestValidationError, _show_invalid),
        (HTTPException, _show_unknown),
    ):
        app.add_exception_handler(kind_of_error, handler)
    app.add_middleware(Protection, max_body=max_body, api_keys=api_keys)
    if cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=cors_origins, allow_methods=["GET", "POST"], allow_headers=["*"]
        )
    return app


def _add_model_routes(
    app: FastAPI, service: Service, path: str, version_of: Callable[..., AskedVersion]
) -> None:
    """Adds predict, metadata and status of the newest version, or of one with a number or label."""
    Asked = Annotated[AskedVersion, Depends(version_of)]

    async def predict(request: Request, name: str, asked: Asked) -> Any:
        return await service.predict(request, name, asked)

    async def metadata(request: Request, name: str, asked: Asked) -> Any:
        return await service.metadata(request, name, asked)

    async def status(name: str, asked: Asked) -> Any:
        return service.status(name, asked)

    app.add_api_route(path + ":predict", predict, methods=["POST"], openapi_extra=PREDICT_BODY)
    app.add_api_route(path + "/metadata", metadata)
    app.add_api_route(path, status)


def _add_other_routes(app: FastAPI, service: Service) -> None:
    """Adds /translate, what the page asks for, health and metrics."""

    async def translate(request: Request, asked: TranslateRequest) -> Response:
        return await service.translate(request, asked)

    async def explain(request: Request, asked: ExplainRequest) -> Any:
        return await service.explain(request, asked)

    async def attention(request: Request, asked: ExplainRequest) -> Any:
        return await service.attention(request, asked)

    async def models() -> Any:
        return service.describe()

    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    async def readyz(response: Response) -> dict[str, str]:
        unready = service.unready()
        if unready:
            response.status_code = 503
            response.headers.update(RETRY)
        return {"status": unready or "ready"}

    async def metrics() -> Response:
        return Response(service.metrics_text(), media_type=CONTENT_TYPE_LATEST)

    app.add_api_route("/translate", translate, methods=["POST"], response_model=TranslateAnswer)
    app.add_api_route("/explain", explain, methods=["POST"], response_model=ExplainAnswer)
    app.add_api_route("/attention", attention, methods=["POST"])
    app.add_api_route("/models", models, response_model=ModelsAnswer)
    app.add_api_route("/healthz", healthz)
    app.add_api_route("/readyz", readyz)
    app.add_api_route("/metrics", metrics, response_class=Response)


def _error(message: str, status: int, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Returns an error as TensorFlow Serving does; what has no UTF-8 in a message is escaped."""
    shown = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}..."
    return JSONResponse({"error": encodable(shown)}, status, headers)


async def _show_error(_: Request, error: Exception) -> JSONResponse:
    status, message = failure(error)
    return _error(message, status, RETRY if status == 503 else None)


async def _show_invalid(_: Request, error: Exception) -> JSONResponse:
    """Names the first field of a request that is wrong."""
    assert isinstance(error, RequestValidationError)
    return _error(fault_of(error.errors(), error.body), 400)


async def _show_unknown(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, RequestError):  # of `parse_json`, in FastAPI's reading of a body
        return await _show_error(request, error.__cause__)
    message = f"Malformed request: {request.method} {request.scope['path']}"
    return _error(message, error.status_code, error.headers)

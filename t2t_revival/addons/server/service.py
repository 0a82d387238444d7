"""`Service`: what a server does for each kind of request."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from inspect import CORO_RUNNING, getcoroutinestate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from google.protobuf.json_format import MessageToDict

from t2t_revival.addons.server.batching import Batcher, BatchLimits, QueueFullError
from t2t_revival.addons.server.inspection import ExplainAnswer, ExplainRequest, Inspector
from t2t_revival.addons.server.metrics import Metrics
from t2t_revival.addons.server.predict import RequestError, format_predict, parse_predict
from t2t_revival.addons.server.requests import Limits
from t2t_revival.addons.server.rows import Columns
from t2t_revival.addons.server.translate import TranslateAnswer, TranslateRequest, Translation
from t2t_revival.addons.server.versions import ModelInfo, ModelsAnswer
from t2t_revival.decoding.lines.calls import Finished, Work, resume
from t2t_revival.errors import T2TError
from t2t_revival.serving.client import text_of
from t2t_revival.serving.description import Description
from t2t_revival.serving.served_translator import ServedTranslator
from t2t_revival.utils.unicode_forms import NFC, not_in

if TYPE_CHECKING:
    from t2t_revival.addons.server.versions import ServedModel
    from t2t_revival.serving.client import LoadedModel

Result = TypeVar("Result")

CLIENT_GONE = 499  # as web servers log it; nobody sees it
MAX_INSPECTIONS = 32  # requests for explanations that wait or are answered
LOOK_SECS = 0.05  # between two looks whether a model is loaded
THREADS = 4  # that make lines of long requests, or of those with options, and texts of what is found
REQUEST_LINES = 1024  # of a request, or sentences of its lines, that are in the queue at once
STREAM_LINES, STREAM_CHUNKS = 64, 3  # of a streamed request, three chunks of 64 lines are in the queue


class AskedVersion(NamedTuple):
    """A version by its number or its label; by default the newest one."""

    number: int | None = None
    label: str | None = None


class Start(NamedTuple):
    """Actions of a server before its models are loaded, and after.

    Attributes:
        begin: called first, in a thread; returns how many batches are translated at the same time.
        end: called when all models are loaded and warm, or with the error for which one is not.
        is_ending: returns whether the server ends, so that no request waits for a model any longer.
    """

    begin: Callable[[], int]
    end: Callable[[Exception | None], None]
    is_ending: Callable[[], bool] = lambda: False


class Service:
    """Work of the routes of the application.

    Args:
        models: by name; those that have no version are loaded while the server runs.
        limits: bounds of requests.
        batch_limits: bounds of batches and of the queue.
        start: what else is done when models are loaded.
    """

    def __init__(
        self,
        models: Mapping[str, ServedModel],
        limits: Limits,
        batch_limits: BatchLimits,
        start: Start | None = None,
    ) -> None:
        self.models, self.limits, self._start = models, limits, start
        self._waiting = 0
        self._descriptions: WeakKeyDictionary[LoadedModel, Description] = WeakKeyDictionary()
        self._form_noted: WeakSet[LoadedModel] = WeakSet()
        self.metrics = Metrics()
        self.batcher = Batcher(batch_limits, self.metrics)
        self._inspecting, self._inspections = ThreadPoolExecutor(1, "inspect"), 0
        self._loading = ThreadPoolExecutor(1, "load")
        self._encoding, self._lines = ThreadPoolExecutor(THREADS, "request"), 0
        self._requests: Counter[LoadedModel] = Counter()  # for texts, which may call a model again

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Loads models, translates, and watches the folders of the models, while the server runs."""
        work = asyncio.create_task(self._work())
        yield
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        for threads in (self._inspecting, self._loading, self._encoding):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        fault: Exception | None = None
        try:
            if self._start:
                loop = asyncio.get_running_loop()
                parallel = await loop.run_in_executor(self._loading, self._start.begin)
                self.batcher.limits = replace(self.batcher.limits, parallel=parallel)
        except Exception as error:
            fault = error
        async with self.batcher:
            fault = fault or await self._load()
            if self._start:
                self._start.end(fault)
            watches = (model.watch(self._is_used, self._loading) for model in self.models.values())
            await asyncio.gather(*watches, return_exceptions=True)
            await asyncio.Event().wait()  # until it is cancelled, whether or not a folder is watched

    async def _load(self) -> Exception | None:
        """Loads the models one by one, and warms them up then; returns the error of one that cannot be."""
        try:
            for model in self.models.values():
                await model.start(self._loading)
            for model in self.models.values():
                await model.warm_up(self._loading)
        except Exception as error:
            return error
        return None

    def _is_used(self, model: LoadedModel) -> bool:
        return self.batcher.requests(model) > 0 or self._requests[model] > 0

    def find(self, name: str | None) -> ServedModel:
        """Returns a model, the only one without a name; raises RequestError if there is none of this name."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is None:
            raise RequestError(f"which model? Give one of {', '.join(self.models)}")
        if name not in self.models:
            raise RequestError(f"Servable not found for request: Latest({name})", 404)
        return self.models[name]

    async def _loaded(
        self, request: Request, served: ServedModel, asked: AskedVersion | None = None
    ) -> tuple[int, LoadedModel]:
        """Returns a version and its model; a request, whose body was read, waits while it is being loaded.

        Raises:
            RequestError: see `ServedModel.find`; or the client is gone.
        """
        if not served.is_ready and self._waiting < self.batcher.limits.max_queue:
            self._waiting += 1
            try:
                await self._answer(request, self._until_ready(served))
            except asyncio.TimeoutError:
                pass  # `find` tells
            finally:
                self._waiting -= 1
        return served.find(*(asked or ()))

    async def _until_ready(self, served: ServedModel) -> None:
        while not (served.is_ready or (self._start and self._start.is_ending())):
            await asyncio.sleep(LOOK_SECS)

    async def predict(self, request: Request, name: str, asked: AskedVersion) -> dict[str, Any]:
        """Calls a signature of a version."""
        with self._measured(name, "predict"):
            body = await request.body()
            _, model = await self._loaded(request, self.find(name), asked)
            call = parse_predict(body, model.signature_defs)
            self.limits.check(call.columns)
            found = await self._answer(request, self._translate(name, model, call.signature, call.columns))
            return format_predict(call, found)

    def unready(self) -> str:
        """The work until all models answer, such as "loading 2 of 3"; empty when they do."""
        models = self.models.values()
        ready, warm = sum(model.is_ready for model in models), sum(model.is_warm for model in models)
        if ready < len(models):
            return f"loading {ready + 1} of {len(models)}"
        return f"warming up {warm + 1} of {len(models)}" if warm < len(models) else ""

    def metrics_text(self) -> bytes:
        """Metrics as Prometheus reads them."""
        for model in self.models.values():
            if model.is_ready:
                self.metrics.versions.labels(model.name).set(model.find()[0])
        return self.metrics.text()

    def status(self, name: str, asked: AskedVersion) -> dict[str, Any]:
        """Describes the state of a model's versions, or of one."""
        if name not in self.models:
            raise RequestError(f"Could not find any versions of model {name}", 404)
        return self.models[name].status(*asked)

    async def metadata(self, request: Request, name: str, asked: AskedVersion) -> dict[str, Any]:
        """Describes the signatures of a version."""
        number, model = await self._loaded(request, self.find(name), asked)
        shown = {"preserving_proto_field_name": True, "always_print_fields_with_no_presence": True}
        signatures = {key: MessageToDict(value, **shown) for key, value in model.signature_defs.items()}
        return {
            "model_spec": {"name": name, "signature_name": "", "version": str(number)},
            "metadata": {"signature_def": {"signature_def": signatures}},
        }

    async def translate(self, request: Request, asked: TranslateRequest) -> Response:
        """Translates a text or a list of texts."""
        served = self.find(asked.model)
        with self._measured(served.name, "translate"):
            number, model = await self._loaded(request, served)
            lines = asked.lines
            asked.check(model.signature_defs)
            self.limits.check(asked.columns(), asked.stream)
            if model not in self._form_noted and not_in(NFC, lines):
                self._form_noted.add(model)
                await self._note_form(served, model, asked)
            translate = partial(self._translate_lines, served, model, asked)
            if asked.stream:
                return StreamingResponse(
                    self._stream(served.name, lines, translate), media_type="application/x-ndjson"
                )
            finished = await self._answer(request, translate(lines))
            answer = TranslateAnswer(model=served.name, version=number, translations=finished)
            return Response(answer.model_dump_json(exclude_none=True), media_type="application/json")

    async def _note_form(self, served: ServedModel, model: LoadedModel, asked: TranslateRequest) -> None:
        """Logs that texts are in another Unicode form than the training data of a model."""
        with suppress(T2TError):  # a model that does not tell it
            await self._described(served.name, model)
            translator = self._translator(served, model, asked)
            loop = asyncio.get_running_loop()
            if note := await loop.run_in_executor(self._encoding, translator.other_form, asked.lines):
                served.say(f"warning: {served.name}: {note}")

    async def _translate_lines(
        self, served: ServedModel, model: LoadedModel, asked: TranslateRequest, lines: Sequence[str]
    ) -> list[Translation]:
        """Translates lines: the text of a few plain ones in the event loop, that of others in a thread."""
        limit = self.batcher.limits.max_queue
        if self._lines + len(lines) > limit:
            raise QueueFullError(f"the queue has {self._lines:,} of {limit:,} lines: try again later")
        self._lines += len(lines)
        self._requests[model] += 1
        try:
            if asked.needs_description:
                await self._described(served.name, model)
            of_text = served.problem is None or served.problem.targets_are_text
            is_short = of_text and asked.is_plain and len(lines) <= STREAM_LINES
            work = asked.translate(self._translator(served, model, asked), lines)
            return await self._run(work, served.name, model, None if is_short else self._encoding)
        finally:
            self._lines -= len(lines)
            self._requests[model] -= 1
            self._requests += Counter()  # drops models without requests

    async def _run(
        self, work: Work[Result], name: str, model: LoadedModel, threads: ThreadPoolExecutor | None = None
    ) -> Result:
        """Runs a coroutine, whose calls wait in the queue; what is between them in a thread, where given."""
        response: Columns | None = None
        try:
            while True:
                if threads:
                    loop = asyncio.get_running_loop()
                    step = await loop.run_in_executor(threads, resume, work, response)
                else:
                    step = resume(work, response)
                if isinstance(step, Finished):
                    return step.result
                response = await self._translate(name, model, step.signature, step.inputs)
        finally:
            if getcoroutinestate(work) != CORO_RUNNING:  # by a thread, for a request that nobody waits for
                work.close()

    def _translator(
        self, served: ServedModel, model: LoadedModel, asked: TranslateRequest
    ) -> ServedTranslator:
        """Returns what translates the lines of a request."""
        return ServedTranslator(
            model,
            asked.options.decode_hparams(self.limits.max_beam_size) if asked.options else None,
            served.problem,
            REQUEST_LINES,
            as_exported=asked.options is None,
            description=self._descriptions.get(model),
        )

    async def _described(self, name: str, model: LoadedModel) -> None:
        """Gets what a model tells of itself, once."""
        if model not in self._descriptions:
            self._descriptions[model] = await self._run(Description.asked(), name, model, self._encoding)

    async def explain(self, request: Request, asked: ExplainRequest) -> ExplainAnswer:
        """Explains an output, word by word."""
        return await self._inspect(request, asked, lambda inspector: inspector.explain(asked))

    async def attention(self, request: Request, asked: ExplainRequest) -> dict[str, str]:
        """Draws the attention of a model, as a page."""
        return {
            "page": await self._inspect(request, asked, lambda inspector: inspector.attention_page(asked))
        }

    async def _inspect(
        self, request: Request, asked: ExplainRequest, method: Callable[[Inspector], Result]
    ) -> Result:
        """Calls a method of a model's inspector, one at a time."""
        served = self.find(asked.model)
        with self._measured(served.name, "explain"):
            await self._loaded(request, served)
            if served.inspector is None:
                raise RequestError(f"{served.name} is an exported model: only an output_dir can be explained")
            self.limits.check({"inputs": [asked.text, asked.output or asked.prefix]})
            if self._inspections >= MAX_INSPECTIONS:
                raise QueueFullError(f"{MAX_INSPECTIONS} requests for explanations wait: try again later")
            loop = asyncio.get_running_loop()
            self._inspections += 1
            try:
                work = loop.run_in_executor(self._inspecting, method, served.inspector)
                return await self._answer(request, work)
            finally:
                self._inspections -= 1

    def describe(self) -> ModelsAnswer:
        """Describes the models that answer, and names the others."""
        models = self.models.values()
        ready = [ModelInfo.of(model, self.limits) for model in models if model.is_ready]
        return ModelsAnswer(models=ready, loading=[model.name for model in models if not model.is_ready])

    async def _translate(
        self, name: str, model: LoadedModel, signature: str, columns: Mapping[str, Sequence[Any]]
    ) -> Columns:
        found = await self.batcher.translate(model, signature, columns)
        if "outputs" in found:  # and not the scores of lines that were counted before, or a description
            self.metrics.lines.labels(name).inc(len(columns["inputs"]))
            outputs = [text_of(row[0]) for row in found["outputs"]]
            for side, texts in (("input", columns["inputs"]), ("output", outputs)):
                self.metrics.characters.labels(name, side).inc(sum(map(len, texts)))
        return found

    async def _stream(
        self,
        name: str,
        lines: Sequence[str],
        translate: Callable[[Sequence[str]], Coroutine[Any, Any, list[Translation]]],
    ) -> AsyncIterator[str]:
        """Yields a line of JSON for each line of the request; after an error, a last one with it."""
        chunks = [lines[start : start + STREAM_LINES] for start in range(0, len(lines), STREAM_LINES)]
        tasks: list[asyncio.Task[list[Translation]]] = []
        with self._measured(name, "stream"):
            try:
                for place in range(len(chunks)):
                    for chunk in chunks[len(tasks) : place + STREAM_CHUNKS]:
                        tasks.append(asyncio.create_task(translate(chunk)))
                    found = await asyncio.wait_for(tasks[place], self.limits.timeout)
                    for translation in found:
                        yield translation.model_dump_json(exclude_none=True) + "\n"
            except (T2TError, asyncio.TimeoutError) as error:
                yield json.dumps({"error": failure(error)[1]}) + "\n"
            finally:
                for task in tasks:
                    task.cancel()

    async def _answer(self, request: Request, work: Awaitable[Result]) -> Result:
        """Returns the result of a request's work; drops it at the deadline, or if the client is gone."""
        task = asyncio.ensure_future(work)
        gone = asyncio.create_task(_disconnected(request))
        try:
            await asyncio.wait({task, gone}, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise RequestError("the client is gone", CLIENT_GONE)
            raise asyncio.TimeoutError
        finally:
            task.cancel()
            gone.cancel()

    @contextmanager
    def _measured(self, name: str, method: str) -> Iterator[None]:
        """Counts a request, its status and its time; names that no model has are counted as one."""
        started, status, name = time.monotonic(), 200, name if name in self.models else ""
        try:
            yield
        except Exception as error:
            status = failure(error)[0]
            raise
        finally:
            self.metrics.requests.labels(name, method, status).inc()
            self.metrics.latency.labels(name, method).observe(time.monotonic() - started)


def failure(error: Exception) -> tuple[int, str]:
    """Returns the HTTP status of an error, and a message, which tells nothing of a fault of the server."""
    if isinstance(error, RequestError):
        return error.status, str(error)
    if isinstance(error, QueueFullError):
        return 503, str(error)
    if isinstance(error, asyncio.TimeoutError):
        return (
            504,
            "no answer in the time that the server gives a request: send fewer lines, or try again later",
        )
    if isinstance(error, T2TError):
        return 400, str(error)
    return 500, "the server failed; its log has the reason"


async def _disconnected(request: Request) -> None:
    """Waits until the client has closed the connection; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass

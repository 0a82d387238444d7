"""`Batcher`: translates lines of many requests together, those of similar length in one batch."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from t2t_revival.addons.server.rows import ALTERNATIVES, Columns, answer_of
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.addons.server.metrics import Metrics
    from t2t_revival.serving.client import LoadedModel
    from t2t_revival.serving.signatures import Inputs

WAIT_SHARE = 0.15  # of the time of the last batch that a line may wait for others, if that batch was full
CANDIDATES = 1024  # oldest lines, among which those of similar length are sought
TEXTS = ("inputs", "targets")  # inputs by whose length lines are joined


class QueueFullError(T2TError):
    """More lines wait or are translated than `BatchLimits.max_queue`."""


@dataclass(frozen=True)
class BatchLimits:
    """Bounds of a `Batcher`.

    Attributes:
        max_lines: lines of a batch.
        max_characters: characters of a batch, padding to the longest line included; a longer line is alone.
        max_wait: seconds that a line waits for others, when a thread is free for it, while another batch is
            translated; at least, for it may be `WAIT_SHARE` of the time that the last batch took: under load.
        max_queue: lines that wait or are translated.
        parallel: batches that are translated at the same time.
    """

    max_lines: int = 32
    max_characters: int = 8192
    max_wait: float = 0.005
    max_queue: int = 10_000
    parallel: int = 2


@dataclass(eq=False)
class _Job:
    """A request's lines."""

    model: LoadedModel
    signature: str
    columns: Inputs
    answer: asyncio.Future[Columns]
    arrived: float
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)

    @property
    def lines(self) -> Sequence[str]:
        return self.columns["inputs"]

    def finish(self) -> None:
        """Sets the answer if all lines have theirs."""
        if len(self.rows) < len(self.lines) or self.answer.done():
            return
        ordered = [self.rows[place] for place in range(len(self.lines))]
        self.answer.set_result(answer_of(ordered, self.columns))

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


@dataclass(frozen=True, eq=False)
class _Line:
    job: _Job
    place: int

    @property
    def length(self) -> int:
        columns = self.job.columns
        return max(len(columns[name][self.place]) for name in TEXTS if name in columns)

    @property
    def is_wanted(self) -> bool:
        return not self.job.answer.done()

    def joins(self, other: _Line) -> bool:
        """Returns whether both can be in one batch."""
        return self.job.model is other.job.model and self.job.signature == other.job.signature


class Batcher:
    """A queue of lines, from which batches are translated in threads.

    A line's output does not depend on the others of its batch. The oldest line is always in the next batch,
    and the others are those nearest to it in length. While nothing is translated, a line does not wait.

    Args:
        limits: see `BatchLimits`; may be replaced until it is entered.
        metrics: counts what is done.

    Example:
        async with Batcher(BatchLimits(), metrics) as batcher:
            found = await batcher.translate(model, "serving_default", {"inputs": ["The dog sleeps."]})
    """

    def __init__(self, limits: BatchLimits, metrics: Metrics) -> None:
        self.limits, self._metrics = limits, metrics
        self._waiting: list[_Line] = []
        self._in_flight = 0
        self._wait = limits.max_wait
        self._models: Counter[LoadedModel] = Counter()  # requests of each
        self._changed = asyncio.Condition()
        self._workers: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Batcher:
        self._threads = ThreadPoolExecutor(self.limits.parallel, "translate")
        self._workers = [asyncio.create_task(self._work()) for _ in range(self.limits.parallel)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    @property
    def lines(self) -> int:
        """Number of lines that wait or are translated."""
        return len(self._waiting) + self._in_flight

    def requests(self, model: LoadedModel) -> int:
        """Number of requests to a model that have no answer yet."""
        return self._models[model]

    async def translate(self, model: LoadedModel, signature: str, columns: Inputs) -> Columns:
        """Calls a signature; if the caller is cancelled, its lines leave the queue.

        Args:
            model: exported model.
            signature: such as "translate_with_options".
            columns: "inputs" and options, each with one value for each line.

        Returns:
            The signature's outputs by name, a row for each line.

        Raises:
            QueueFullError: too many lines wait.
            T2TError: the model refuses the lines or the options.
        """
        if not columns["inputs"]:
            return {name: [] for name in model.signature_defs[signature].outputs}
        if self.lines + len(columns["inputs"]) > self.limits.max_queue:
            raise QueueFullError(
                f"the queue has {self.lines:,} of {self.limits.max_queue:,} lines: try again later"
            )
        if ALTERNATIVES in columns:  # the largest is that of all lines, which batches may part
            columns = {**columns, ALTERNATIVES: [max(columns[ALTERNATIVES])] * len(columns["inputs"])}
        job = _Job(model, signature, columns, asyncio.get_running_loop().create_future(), time.monotonic())
        self._models[model] += 1
        await self._add(job)
        try:
            return await job.answer
        finally:
            job.answer.cancel()
            self._waiting = [line for line in self._waiting if line.is_wanted]
            self._metrics.queue.set(self.lines)
            self._models[model] -= 1
            self._models += Counter()  # drops models without requests

    async def _add(self, job: _Job) -> None:
        async with self._changed:
            self._waiting += [_Line(job, place) for place in range(len(job.lines))]
            self._metrics.queue.set(self.lines)
            self._changed.notify_all()

    async def _work(self) -> None:
        while True:
            batch = await self._next_batch()
            try:
                await self._translate(batch)
            finally:
                self._in_flight -= len(batch)
                self._metrics.queue.set(self.lines)
                async with self._changed:
                    self._changed.notify_all()

    async def _next_batch(self) -> list[_Line]:
        free_since = time.monotonic()
        async with self._changed:
            while True:
                await self._changed.wait_for(lambda: self._waiting)
                began = max(self._waiting[0].job.arrived, free_since)
                batch = self._choose()
                left = self._wait - (time.monotonic() - began)
                if (
                    not self._in_flight
                    or left <= 0
                    or len(batch) < len(self._waiting)
                    or len(batch) == self.limits.max_lines
                ):
                    break
                with suppress(asyncio.TimeoutError):  # the builtin since Python 3.11
                    await asyncio.wait_for(self._changed.wait(), left)
            chosen = set(batch)
            self._waiting = [line for line in self._waiting if line not in chosen]
            self._in_flight += len(batch)
            return batch

    def _choose(self) -> list[_Line]:
        """Returns the oldest line and those nearest to it in length, as many as a batch holds."""
        oldest = self._waiting[0]
        candidates = filter(oldest.joins, self._waiting[:CANDIDATES])
        lines = sorted(candidates, key=lambda line: line.length)
        first = last = lines.index(oldest)
        while last - first + 1 < min(len(lines), self.limits.max_lines):
            takes_shorter = first > 0 and (
                last + 1 == len(lines)
                or oldest.length - lines[first - 1].length <= lines[last + 1].length - oldest.length
            )
            longest = lines[last if takes_shorter else last + 1].length
            if longest * (last - first + 2) > self.limits.max_characters:
                break
            first, last = (first - 1, last) if takes_shorter else (first, last + 1)
        return lines[first : last + 1]

    async def _translate(self, batch: list[_Line]) -> None:
        """Translates a batch; where that fails, each job's lines alone, since one of them may be at fault."""
        jobs = list(dict.fromkeys(line.job for line in batch))
        try:
            await self._call(batch)
        except Exception as error:
            if len(jobs) == 1:
                jobs[0].fail(error)
                return
            for job in jobs:
                await self._translate([line for line in batch if line.job is job])

    async def _call(self, batch: list[_Line]) -> None:
        job = batch[0].job
        columns = {name: [line.job.columns[name][line.place] for line in batch] for name in job.columns}
        started = time.monotonic()
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, job.model.predict, job.signature, columns)
        seconds = time.monotonic() - started
        self._metrics.batch(len(batch), seconds)
        share = WAIT_SHARE * len(batch) / self.limits.max_lines
        self._wait = max(self.limits.max_wait, seconds * share)
        for row, line in enumerate(batch):
            line.job.rows[line.place] = {name: values[row] for name, values in found.items()}
            line.job.finish()

"""Load on t2t-server: throughput, latency and memory, beside the exported model called directly.

    python benchmarks/serve_load.py --saved_model=EXPORT_DIR --inputs=test.en [--soak_minutes=30]

The server is a process of its own at 127.0.0.1; clients send one line a request over connections that they
keep. Beside it, the bare model translates batches of 32 lines, two at a time, in another process. They take
turns, round by round, so that other work on the machine affects them alike; clients run on the same cores as
the server. Then, at half of the throughput that 64 clients saw, requests come at random times (a Poisson
process), whose 99th percentile is set beside the time of a single request. Latency over the bare model is the
difference for one line of one client, in turns, line by line. With --soak_minutes, requests come at 80% of
that throughput, and the server's memory is read once a second. With --swaps, copies of the export become new
versions, one after the other, while requests come at a quarter of that throughput.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import result_file

BATCH, PARALLEL = 32, 2
WARMUP_LINES = 64
HOST = "127.0.0.1"
SERVING = re.compile(r"serving at http://localhost:(\d+);")


class Client:
    """A connection that is kept, for one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def translate(self, line: str) -> float:
        """Sends a line; returns the seconds until its answer; raises RuntimeError if it is an error."""
        started = time.perf_counter()
        if self._streams:
            try:
                await self._ask(line, *self._streams)
                return time.perf_counter() - started
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                if getattr(error, "partial", b""):
                    raise
                self.close()  # no byte came: the server had closed the idle connection
        self._streams = await asyncio.open_connection(HOST, self._port)
        await self._ask(line, *self._streams)
        return time.perf_counter() - started

    async def _ask(self, line: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps({"text": line}).encode()
        writer.write(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        answer = await reader.readexactly(int(length[1]) if length else 0)
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())

    def close(self) -> None:
        if self._streams:
            self._streams[1].close()


class Server:
    """t2t-server in a process of its own.

    Attributes:
        port: where it listens.
    """

    def __init__(self, saved_model: Path) -> None:
        command = [sys.executable, "-m", "t2t_revival.cli.server", "--port=0", f"--saved_model={saved_model}"]
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr
        self.port = next(int(found[1]) for found in map(SERVING.match, self._process.stderr) if found)

    @property
    def memory(self) -> float:
        """Resident memory, MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        resident = re.search(r"VmRSS:\s+(\d+)", status)
        assert resident
        return int(resident[1]) / 1024

    def state(self, name: str, version: int) -> str:
        """Returns the state of a model's version, as the server names it; "" if it knows none."""
        with suppress(urllib.error.HTTPError):
            url = f"http://{HOST}:{self.port}/v1/models/{name}/versions/{version}"
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(json.load(answer)["model_version_status"][0]["state"])
        return ""

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate()


@contextmanager
def serving(saved_model: Path) -> Iterator[Server]:
    """A server that runs inside the block."""
    server = Server(saved_model)
    try:
        yield server
    finally:
        server.end()


def closed_loop(port: int, clients: int, lines: Sequence[str], seconds: float) -> tuple[list[float], float]:
    """Returns times and rate of requests of clients that send the next one when they have the answer."""

    async def run() -> tuple[list[float], float]:
        times: list[float] = []
        started = time.monotonic()
        texts, ends = cycle(lines), started + seconds

        async def work() -> None:
            client = Client(port)
            while time.monotonic() < ends:
                times.append(await client.translate(next(texts)))
            client.close()

        await asyncio.gather(*(work() for _ in range(clients)))
        return times, len(times) / (time.monotonic() - started)

    return asyncio.run(run())


def open_loop(
    port: int,
    rate: float,
    lines: Sequence[str],
    seconds: float = math.inf,
    each_second: Callable[[], None] = lambda: None,
    stop: Callable[[], bool] = lambda: False,
) -> list[float]:
    """Returns the times of requests that come at random, `rate` each second, whatever is answered."""

    async def run() -> list[float]:
        times: list[float] = []
        free: list[Client] = []
        tasks: list[Awaitable[None]] = []
        draw, texts = random.Random(1), cycle(lines)

        async def send(line: str, due: float) -> None:
            client = free.pop() if free else Client(port)
            await client.translate(line)
            times.append(time.monotonic() - due)  # waiting for this process counts too
            free.append(client)

        started = due = time.monotonic()
        said = 0
        while due < started + seconds and not stop():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            tasks.append(asyncio.ensure_future(send(next(texts), due)))
            due += draw.expovariate(rate)
            if due - started > said:
                each_second()
                said += 1
        await asyncio.gather(*tasks)
        return times

    return asyncio.run(run())


class BareModel:
    """The exported model in this process; `rate` is its throughput in batches."""

    def __init__(self, saved_model: Path) -> None:
        import tensorflow as tf

        from t2t_revival.serving.folder_model import FolderModel
        from t2t_revival.serving.signatures import DEFAULT

        with suppress(RuntimeError):  # TensorFlow was in use before
            tf.config.threading.set_intra_op_parallelism_threads(1)
        self._model, self._signature = FolderModel(saved_model), DEFAULT

    def translate(self, lines: Sequence[str]) -> float:
        """Returns the seconds in which the model translates lines as one batch."""
        started = time.perf_counter()
        self._model.predict(self._signature, {"inputs": list(lines)})
        return time.perf_counter() - started

    def rate(self, lines: Sequence[str], seconds: float) -> float:
        """Returns lines a second in batches of consecutive lines, two at a time."""
        batches = cycle([lines[start : start + BATCH] for start in range(0, len(lines) - BATCH + 1, BATCH)])
        ends, done = time.monotonic() + seconds, []
        started = time.monotonic()

        def work() -> None:
            while time.monotonic() < ends:
                batch = next(batches)
                self.translate(batch)
                done.append(len(batch))

        with ThreadPoolExecutor(PARALLEL) as threads:
            for worker in [threads.submit(work) for _ in range(PARALLEL)]:
                worker.result()
        return sum(done) / (time.monotonic() - started)


def percentiles(times: Sequence[float]) -> str:
    """Formats the 50th, 95th and 99th percentile, in milliseconds."""
    return " ".join(f"p{p} {1000 * np.percentile(times, p):.1f}" for p in (50, 95, 99))


def spread(values: Sequence[float], digits: int) -> str:
    """Formats a median, with the least and the largest value."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def measure(values: argparse.Namespace) -> list[dict[str, Any]]:
    """Measures and prints, in turns; returns the figures."""
    lines = values.inputs.read_text(encoding="utf-8").splitlines()[: values.lines]
    bare = BareModel(values.saved_model)
    with serving(values.saved_model) as server:
        closed_loop(server.port, 8, lines[:WARMUP_LINES], 3)
        bare.rate(lines, 3)
        rates: dict[str, list[float]] = {"bare": []}
        for number in range(values.rounds):
            rates["bare"].append(bare.rate(lines, values.seconds))
            for clients in values.clients:
                times, rate = closed_loop(server.port, clients, lines, values.seconds)
                rates.setdefault(str(clients), []).append(rate)
                print(
                    f"round {number + 1}: {clients:3} clients {rate:6.1f} lines/s, ms: {percentiles(times)}",
                    flush=True,
                )
            print(f"round {number + 1}: bare model  {rates['bare'][-1]:6.1f} lines/s", flush=True)
        for name, found in rates.items():
            ratios = [rate / own for rate, own in zip(found, rates["bare"], strict=True)]
            print(f"{name:>5}: lines/s {spread(found, 1)}, of the bare model {spread(ratios, 2)}")
        most = median(rates[str(max(values.clients))])
        measured = [{"name": name, "lines_per_second": found} for name, found in rates.items()]
        measured += show_latency(server, bare, lines)
        measured.append(show_half_load(server, lines, most / 2, values.seconds * values.rounds))
        if values.swaps:
            measured.append(swap(values.saved_model, lines, most / 4, values.swaps))
        if values.soak_minutes:
            measured.append(soak(server, lines, 0.8 * most, 60 * values.soak_minutes))
        return measured


def show_latency(server: Server, bare: BareModel, lines: Sequence[str]) -> list[dict[str, Any]]:
    """Prints the time of one line of one client, and what the server adds to the model's."""

    async def run() -> tuple[list[float], list[float]]:
        client, own, served = Client(server.port), [], []
        for line in lines[:200]:
            own.append(bare.translate([line]))
            served.append(await client.translate(line))
        client.close()
        return own, served

    own, served = asyncio.run(run())
    added = [1000 * (b - a) for a, b in zip(own, served, strict=True)]
    print(f"one line, ms: model {percentiles(own)}; server {percentiles(served)}; added {median(added):.2f}")
    return [{"name": "one line, model", "seconds": own}, {"name": "one line, server", "seconds": served}]


def show_half_load(server: Server, lines: Sequence[str], rate: float, seconds: float) -> dict[str, Any]:
    """Prints latencies at random arrivals beside that of single requests."""
    alone, _ = closed_loop(server.port, 1, lines, seconds / 2)
    times = open_loop(server.port, rate, lines, seconds)
    p99 = np.percentile(times, 99)
    ratios = f"{p99 / median(alone):.2f} times the median, {p99 / np.percentile(alone, 99):.2f} times the p99"
    print(f"{rate:.1f} requests/s: ms {percentiles(times)}; p99 is {ratios} of single requests")
    return {"name": "half load", "requests_per_second": rate, "seconds": times}


def swap(saved_model: Path, lines: Sequence[str], rate: float, swaps: int) -> dict[str, Any]:
    """Prints errors and memory of a server whose versions change under load."""
    first = max(
        (path for path in saved_model.iterdir() if path.name.isdecimal()), key=lambda path: int(path.name)
    )
    memory: list[float] = []
    with TemporaryDirectory() as folder, ThreadPoolExecutor(1) as threads:
        shutil.copytree(first, Path(folder, "1"))
        with serving(Path(folder)) as server:
            name, stop = Path(folder).name, threading.Event()
            load = threads.submit(open_loop, server.port, rate, lines, stop=stop.is_set)
            for version in range(2, swaps + 2):
                shutil.copytree(first, Path(folder, f"{version}.new"))
                Path(folder, f"{version}.new").rename(Path(folder, str(version)))
                while server.state(name, version) != "AVAILABLE":
                    time.sleep(0.05)
                shutil.rmtree(Path(folder, str(version - 1)))
                memory.append(server.memory)
            stop.set()
            times = load.result()
    shown = ", ".join(f"{memory[place]:.0f}" for place in (0, len(memory) // 2, -1))
    print(f"{swaps} swaps, {len(times):,} requests, no error, ms: {percentiles(times)}; memory, MiB: {shown}")
    return {"name": "swaps", "requests_per_second": rate, "seconds": times, "memory_mib": memory}


def soak(server: Server, lines: Sequence[str], rate: float, seconds: float) -> dict[str, Any]:
    """Prints errors and memory of a long run."""
    memory: list[float] = []
    times = open_loop(server.port, rate, lines, seconds, lambda: memory.append(server.memory))
    thirds = [median(part) for part in np.array_split(memory, 3)]
    shown = ", ".join(f"{third:.0f}" for third in thirds)
    print(f"soak: {len(times):,} requests in {seconds / 60:.0f} minutes, no error, ms: {percentiles(times)}")
    print(f"memory by thirds, MiB: {shown}; third / second {thirds[2] / thirds[1]:.3f}")
    return {"name": "soak", "requests_per_second": rate, "seconds": times, "memory_mib": memory}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--saved_model", type=Path, required=True, help="a folder that t2t-exporter wrote")
    found.add_argument("--inputs", type=Path, required=True, help="lines to translate")
    found.add_argument("--lines", type=int, default=1000, help="of the file, the first")
    found.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 8, 64])
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--seconds", type=float, default=10, help="of each measurement")
    found.add_argument("--swaps", type=int, default=0, help="of versions")
    found.add_argument("--soak_minutes", type=float, default=0)
    result_file.add_flag(found)
    return found


if __name__ == "__main__":
    flags = parser().parse_args()
    result_file.write(flags.out, measure(flags))

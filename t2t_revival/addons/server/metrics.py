"""Metrics of a server, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
LINES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counters and histograms of a server, and memory and CPU of its process.

    Attributes:
        queue: lines that wait or are translated.
        requests: by model, method (such as predict) and HTTP status.
        lines: lines that were translated, by model.
        characters: of these lines and of their best outputs, by model and side (input or output).
        latency: seconds of a request, by model and method.
        versions: the version of each model that answers.
    """

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        self.queue = Gauge("t2t_queue_lines", "Lines that wait or are translated.", registry=registry)
        self.requests = Counter("t2t_requests", "Requests.", ("model", "method", "status"), registry=registry)
        self.lines = Counter("t2t_lines", "Lines that were translated.", ("model",), registry=registry)
        self.characters = Counter(
            "t2t_characters",
            "Characters of lines and of their best outputs.",
            ("model", "side"),
            registry=registry,
        )
        self.latency = Histogram(
            "t2t_request_seconds",
            "Seconds from a request to its answer.",
            ("model", "method"),
            buckets=SECONDS,
            registry=registry,
        )
        self.versions = Gauge("t2t_model_version", "Version that answers.", ("model",), registry=registry)
        self._batch_lines = Histogram(
            "t2t_batch_lines", "Lines of a batch.", buckets=LINES, registry=registry
        )
        self._batch_seconds = Histogram(
            "t2t_batch_seconds",
            "Seconds in which a batch was translated.",
            buckets=SECONDS,
            registry=registry,
        )

    def batch(self, lines: int, seconds: float) -> None:
        """Counts a batch."""
        self._batch_lines.observe(lines)
        self._batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Formats all metrics as Prometheus reads them."""
        return generate_latest(self._registry)

"""Measurements of `gpu_train.py` and their table."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

TERA, GIB = 1e12, 2**30


@dataclass(frozen=True)
class Round:
    """Measurements of one round of updates.

    Attributes:
        seconds: wall clock.
        tokens: target tokens without padding.
        positions: target positions, padding included.
        flops: `training_flops`.
    """

    seconds: float
    tokens: int
    positions: int
    flops: int


@dataclass(frozen=True)
class ModelSpeed:
    """Measurements of one model.

    Attributes:
        size: hparams set.
        variation: further flags of this run, such as "norm=derived", or "".
        device: name of the device.
        versions: versions of Keras and the backend.
        parameters: number of parameters.
        updates: number of updates per round.
        matmul: FLOP/s of products of bfloat16 matrices.
        compiling: seconds of compilation and warm-up.
        loss: mean over all updates, nats per target token.
        peak_memory: bytes, or `None` if the device does not report it.
        rounds: one entry per round.
    """

    size: str
    variation: str
    device: str
    versions: str
    parameters: int
    updates: int
    matmul: float
    compiling: float
    loss: float
    peak_memory: int | None
    rounds: list[Round]

    @property
    def share(self) -> float:
        """The model's FLOP/s relative to the product of matrices."""
        return median(r.flops / r.seconds for r in self.rounds) / self.matmul


def table(measured: list[ModelSpeed]) -> str:
    """Returns one row per run: medians, and the extremes of tokens/s."""
    lines = [
        "| model | target tokens/s | positions/s | ms an update | TFLOP/s | of the product | peak GiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for m in measured:
        speeds = sorted(r.tokens / r.seconds for r in m.rounds)
        figures = (
            f"{m.size} {m.variation}".strip(),
            f"{median(speeds):,.0f} ({speeds[0]:,.0f}-{speeds[-1]:,.0f})",
            f"{median(r.positions / r.seconds for r in m.rounds):,.0f}",
            f"{1000 * median(r.seconds for r in m.rounds) / m.updates:,.1f}",
            f"{median(r.flops / r.seconds for r in m.rounds) / TERA:,.1f}",
            f"{m.share:.1%} of {m.matmul / TERA:,.0f}",
            "?" if m.peak_memory is None else f"{m.peak_memory / GIB:,.1f}",
        )
        lines.append(f"| {' | '.join(figures)} |")
    return "\n".join(lines)

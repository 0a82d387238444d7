"""What `gpu_train.py` measures, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

TERA, GIB = 1e12, 2**30


@dataclass(frozen=True)
class Round:
    """What so many updates took.

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
class Measured:
    """One model's figures.

    Attributes:
        size: hparams set.
        variation: what was chosen besides the flags of all, such as "norm=derived"; empty: nothing.
        device: its name.
        versions: of Keras and of the backend.
        parameters: of the model.
        updates: of a round.
        matmul: FLOP/s of a product of bfloat16 matrices.
        compiling: seconds of the warm-up, compilation included.
        loss: mean of all updates, nats per target token.
        peak_memory: bytes; None where the device does not say.
        rounds: the figures.
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
        """Of the product of matrices, the model's FLOP/s."""
        return median(r.flops / r.seconds for r in self.rounds) / self.matmul


def table(measured: list[Measured]) -> str:
    """A row for each run: medians, and the least and the most where there is room."""
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

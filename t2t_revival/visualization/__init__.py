"""PNG files drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.utils.extras import require
from t2t_revival.utils.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@contextmanager
def png_figure(path: Path, width: float, height: float) -> Iterator[Figure]:
    """Yields an empty figure of `width` x `height` inches and saves it to `path`, atomically."""
    require("matplotlib", f"the picture {path.name}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    yield figure
    with atomic_write(path) as file:
        figure.savefig(file, format="png")

"""Decoders that share an input (T2T's `--decode_shards` and `--worker_id`)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.errors import T2TError

MAX_SHARDS = 1000  # whose numbers have three digits


@dataclass(frozen=True)
class Shard:
    """The share of the input of decoder `number`, from 0, of `count`; a single decoder decodes all of it.

    Raises:
        T2TError: `number` is not below `count`.

    Example:
        Shard(1, 4).path(Path("out.de"))    # out.de001
    """

    number: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.number >= self.count:
            raise T2TError(
                f"--worker_id={self.number} must be below --decode_shards={self.count}: workers are counted "
                "from 0"
            )

    @property
    def suffix(self) -> str:
        """The end of the names of this decoder's files, as in T2T."""
        return f"{self.number:03}" if self.count > 1 else ""

    def path(self, joined: Path) -> Path:
        """The file of this decoder's part of `joined`."""
        return joined.with_name(joined.name + self.suffix)

    def bounds(self, total: int) -> tuple[int, int]:
        """The first of this decoder's lines, counted from 0, and the one behind its last.

        All parts, one after the other, are the `total` lines.
        """
        return total * self.number // self.count, total * (self.number + 1) // self.count

    def describe(self, total: int, name: str) -> str:
        """A line for people about this decoder's part of the `total` lines of `name`."""
        first, end = self.bounds(total)
        part = f"lines {first + 1:,} to {end:,}" if first < end else "none"
        return f"worker {self.number} of {self.count}: {part} of the {total:,} of {name}"

    def joining(self, joined: Path) -> str:
        """The command, for bash or zsh, that joins all parts of a file."""
        name = shlex.quote(str(joined))
        return f"cat {name}{{000..{self.count - 1:03}}} > {name}"

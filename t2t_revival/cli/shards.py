"""One of several decoders that share an input (T2T's `--decode_shards` and `--worker_id`)."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from absl import flags

from t2t_revival.cli import common
from t2t_revival.cli.lines import STANDARD_STREAM, read, say
from t2t_revival.errors import T2TError

MOST = 1000  # whose numbers have three digits


class Part(NamedTuple):
    """Lines that a decoder takes.

    Attributes:
        lines: without line ends.
        first: the number of the first among all.
        where: names their file, for people.
    """

    lines: list[str]
    first: int
    where: str


@dataclass(frozen=True)
class Shard:
    """A decoder's number, from 0, and how many there are; alone, it takes all.

    Example:
        Shard(1, 4).path(Path("out.de"))    # out.de001
    """

    number: int = 0
    of: int = 1

    @property
    def suffix(self) -> str:
        """What the names of this decoder's files end with, as in T2T."""
        return f"{self.number:03}" if self.of > 1 else ""

    def path(self, whole: Path) -> Path:
        """Where this decoder's part of a file is."""
        return whole.with_name(whole.name + self.suffix)

    def bounds(self, total: int) -> tuple[int, int]:
        """Which of `total` lines it takes: the first, counted from 0, and the one behind the last.

        They follow on those of the decoder before it: all parts, one after the other, are the whole.
        """
        return total * self.number // self.of, total * (self.number + 1) // self.of

    def read(self, source: str) -> Part:
        """The lines of this decoder's part of a file, or of the standard input.

        T2T wants the file in parts that are there already, FILE000, FILE001 and so on; these are read where
        there is no FILE.

        Raises:
            T2TError: there is neither, or it is not UTF-8.
        """
        name = "standard input" if source == STANDARD_STREAM else source
        if self.of > 1 and source != STANDARD_STREAM:
            whole = Path(source).expanduser()
            if not whole.exists() and self.path(whole).exists():
                own = source + self.suffix
                say(f"worker {self.number} of {self.of}: all lines of {own}")
                return Part(read(own), 1, own)
        lines = read(source)
        first, end = self.bounds(len(lines))
        self.tell(len(lines), name)
        return Part(lines[first:end], first + 1, name)

    def tell(self, total: int, name: str) -> None:
        """Says which part of `total` lines this decoder takes, if not all."""
        if self.of == 1:
            return
        first, end = self.bounds(total)
        mine = f"lines {first + 1:,} to {end:,}" if first < end else "none"
        say(f"worker {self.number} of {self.of}: {mine} of the {total:,} of {name}")

    def joining(self, whole: Path) -> str:
        """The command, for bash or zsh, that makes one file of all parts."""
        name = shlex.quote(str(whole))
        return f"cat {name}{{000..{self.of - 1:03}}} > {name}"


def define(values: flags.FlagValues) -> None:
    """Adds the flags to a command's."""
    common.define_integer(
        "decode_shards",
        1,
        "How many decoders share the input, each started with its own --worker_id. Their outputs are named "
        "decode_to_file with 000, 001, ... behind; one after the other they are the whole.",
        lower_bound=1,
        upper_bound=MOST,
        flag_values=values,
    )
    common.define_integer(
        "worker_id",
        0,
        "Which of --decode_shards this one is, counted from 0.",
        lower_bound=0,
        flag_values=values,
    )


def shard(values: flags.FlagValues) -> Shard:
    """Which decoder the flags say that this is.

    Raises:
        T2TError: there are not so many.
    """
    if values.worker_id >= values.decode_shards:
        raise T2TError(
            f"--worker_id={values.worker_id} must be below --decode_shards={values.decode_shards}: "
            "workers are counted from 0"
        )
    return Shard(values.worker_id, values.decode_shards)

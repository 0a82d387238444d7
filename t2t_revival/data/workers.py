"""Parallel making of shards: one task per shard, in one pool of processes.

`ShardMaker` runs one task; another `ShardRunner` may have it do so on other machines.
"""

from __future__ import annotations

import dataclasses
import math
import multiprocessing
import os
import pickle
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from t2t_revival import registration
from t2t_revival.data.base_source import TRAIN
from t2t_revival.data.cleaning import has_empty_side
from t2t_revival.data.config import SplitCounts
from t2t_revival.data.mixture import CorpusRows
from t2t_revival.data.records import encode_example, shard_name, write_shard
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import EOS
from t2t_revival.data.word_alignment import parse_pharaoh, token_links
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import writing
from t2t_revival.utils.processes import follow_parent, without_main_script
from t2t_revival.utils.signals import ending_signals, handling
from t2t_revival.utils.unicode_forms import form_of

SEED = 1
PAIRS_PER_WORKER = 25_000  # at least; for fewer, starting a process takes longer than it saves
CHUNK = 1000  # pairs encoded in one call
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class ShardTask:
    """One shard to make, from the pairs of a split from number `start` up to `stop`."""

    name: str  # of the problem
    split: str
    index: int
    shards: int
    start: int
    stop: int

    @property
    def file_name(self) -> str:
        """The shard's file name."""
        return shard_name(self.name, self.split, self.index, self.shards)

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return self.stop - self.start


@dataclass(frozen=True)
class Folders:
    """Folders of a generation: `shards` for the shards, `work` for their counts until all are finished."""

    shards: Path
    work: Path

    def shard(self, task: ShardTask) -> Path:
        """Returns the shard's path."""
        return self.shards / task.file_name

    def counts(self, task: ShardTask) -> Path:
        """Returns the path of the shard's counts, JSON that is written after the shard."""
        return self.work / f"{task.file_name}.json"


OnPairs = Callable[[int], None]


@dataclass(frozen=True)
class ShardMaker:
    """Makes shards from rows, in any process: it can be packed.

    Attributes:
        rows: those of which the shards have ranges.
        vocabulary_files: of both sides, or of each.
    """

    rows: CorpusRows
    vocabulary_files: Sequence[Path]

    @cached_property
    def _vocabularies(self) -> Vocabularies:
        return Vocabularies.open(self.vocabulary_files)

    def make(self, task: ShardTask, folders: Folders, on_encoded: OnPairs) -> None:
        """Writes one shard, then its counts. The examples of a train shard are shuffled.

        `on_encoded` is called with numbers of encoded pairs, and may raise StoppedError.

        Raises:
            T2TError: the source cannot be read; a StoppedError if the generation was stopped.
        """
        examples: list[bytes] = []
        counts = self._encode(task, examples, on_encoded)
        if task.split == TRAIN:
            random.Random(f"{SEED} {task.file_name}").shuffle(examples)
        path = folders.shard(task)
        with writing(path, "free disk space; the same command goes on"):
            write_shard(path, examples)
            counts = dataclasses.replace(counts, shard_bytes=(path.stat().st_size,))
            checked_json.save(folders.counts(task), dataclasses.asdict(counts))

    def _encode(self, task: ShardTask, examples: list[bytes], on_encoded: OnPairs) -> SplitCounts:
        """Appends the serialised examples of a task to `examples` and returns their counts."""
        lengths: Counter[int] = Counter()
        forms: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        source_tokens = target_tokens = read = 0
        rows = self.rows.rows(task.split, task.start, task.stop)
        while chunk := list(islice(rows, CHUNK)):
            kept = [row for row in chunk if not has_empty_side(row.source, row.target)]
            texts = [row.source for row in kept], [row.target for row in kept]
            sides = [
                vocabulary.encode_batch(side)
                for vocabulary, side in zip(self._vocabularies, texts, strict=True)
            ]
            for found, side in zip(forms, texts, strict=True):
                found.update(map(form_of, side))
            for inputs, targets, row in zip(*sides, kept, strict=True):
                links = None
                if row.alignment is not None:
                    words = parse_pharaoh(row.alignment).possible
                    links = token_links(words, self._vocabularies, row[:2], (inputs, targets))
                examples.append(encode_example([*inputs, EOS], [*targets, EOS], row.weight, links))
                source_tokens += len(inputs) + 1
                target_tokens += len(targets) + 1
                lengths[max(len(inputs), len(targets)) + 1] += 1
            read += len(chunk)
            on_encoded(len(chunk))
        on_encoded(task.pairs - read)  # of which cleaning drops
        by_length = dict(sorted(lengths.items()))
        skipped = task.pairs - len(examples)
        counts = SplitCounts(len(examples), skipped, source_tokens, target_tokens, by_length)
        return dataclasses.replace(counts, source_forms=dict(forms[0]), target_forms=dict(forms[1]))


# Makes shards here or on other machines, as `make_shards`; calls the last argument with the pairs done.
ShardRunner = Callable[[Sequence[ShardTask], ShardMaker, Folders, OnPairs], None]


@dataclass(frozen=True)
class PackedMaker:
    """A pickled `ShardMaker`, and the user's package that must be imported before it is unpickled."""

    usr_dir: str | None
    content: bytes

    @classmethod
    def of(cls, maker: ShardMaker) -> PackedMaker:
        """Pickles a maker; raises T2TError if that is impossible, for example because of an open file."""
        source = type(maker.rows.source)
        module = source.__module__
        try:
            content = pickle.dumps(maker)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise T2TError(
                f"{module}.{source.__name__}: cannot be pickled for the processes that make shards "
                f"({error}); keep names and numbers in it, and open files in `pairs`"
            ) from error
        return cls(registration.usr_dir(module.partition(".")[0]), content)

    @property
    def died(self) -> str:
        """The error of a worker process that died, with its probable reason."""
        if b"__main__" not in self.content:
            return "a worker process died (out of memory?);"
        return (
            "a worker process died: it runs the script again that defines the source; move the source's "
            'class to a module of its own, or generate data under `if __name__ == "__main__":`;'
        )

    def open(self) -> ShardMaker:
        """Unpickles the maker, after importing the user's package that its source is of."""
        if self.usr_dir and Path(self.usr_dir).name not in sys.modules:
            registration.import_usr_dir(self.usr_dir)
        return pickle.loads(self.content)


class StoppedError(T2TError):
    """The generation was stopped, so that a worker gives up its task."""


@dataclass(frozen=True)
class SharedCounter:
    """Number of encoded pairs, and the stop signal, shared by the processes of a pool."""

    stop: Any  # multiprocessing.Event
    pairs: Any  # multiprocessing.Value

    def __call__(self, pairs: int) -> None:
        """Adds a number of encoded pairs; raises StoppedError if the stop signal is set."""
        if self.stop.is_set():
            raise StoppedError("stopped")
        with self.pairs.get_lock():
            self.pairs.value += pairs


_make_shard: Callable[[ShardTask], None]  # of a worker process


def make_shards(tasks: Sequence[ShardTask], maker: ShardMaker, folders: Folders, on_pairs: OnPairs) -> None:
    """Makes shards in parallel, in at most one process per core; a `ShardRunner`.

    Raises:
        T2TError: the source cannot be read, or a worker died.
    """
    workers = min(cores(), len(tasks), math.ceil(sum(task.pairs for task in tasks) / PAIRS_PER_WORKER))
    processes = multiprocessing.get_context("forkserver")
    counter = SharedCounter(processes.Event(), processes.Value("q", 0))
    if workers <= 1:
        for task in tasks:
            maker.make(task, folders, counter)
            on_pairs(counter.pairs.value)
        return
    packed = PackedMaker.of(maker)
    processes.set_forkserver_preload([__name__])
    with (
        _interruptions_later() as interruptions,
        ProcessPoolExecutor(workers, processes, _start_worker, (packed, folders, counter)) as pool,
    ):
        try:
            with _interruptions_blocked(), without_main_script(packed.content):
                pending = {pool.submit(_run_task, task) for task in tasks}
            while pending and not interruptions:
                finished, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    future.result()
                on_pairs(counter.pairs.value)
        except BrokenProcessPool as error:
            if not interruptions:  # which may come to all processes
                raise T2TError(f"{packed.died} finished shards are kept: start again to resume") from error
        finally:
            counter.stop.set()
            pool.shutdown(cancel_futures=True)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _interruptions_later() -> Iterator[list[int]]:
    """Delays signals that raise an exception to the end; yields those that have come.

    Raised in the midst of the pool's own work, KeyboardInterrupt would leave its locks taken for ever.
    A second Ctrl-C does not wait.
    """
    received: list[int] = []
    handlers = {number: signal.getsignal(number) for number in ending_signals()}
    raising = {number: handler for number, handler in handlers.items() if callable(handler)}

    def note(number: int, frame: FrameType | None) -> None:
        if number in received and number != signal.SIGHUP:  # which comes twice
            raising[signal.Signals(number)](number, frame)
        received.append(number)

    with handling(dict.fromkeys(raising, note)):
        yield received
    if received:
        signal.raise_signal(received[0])


@contextmanager
def _interruptions_blocked() -> Iterator[None]:
    """Blocks Ctrl-C and SIGHUP for the processes that are started, which the parent ends.

    A half-started one could not be stopped any more.
    """
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start_worker(packed: PackedMaker, folders: Folders, counter: SharedCounter) -> None:
    """Prepares a worker process, which leaves signals to its parent and ends with it."""
    global _make_shard
    follow_parent()
    opened = cache(packed.open)  # by the first task, whose error reaches the parent

    def make(task: ShardTask) -> None:
        opened().make(task, folders, counter)

    _make_shard = make


def _run_task(task: ShardTask) -> None:
    _make_shard(task)

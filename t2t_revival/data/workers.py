"""Makes shards in parallel: one task per shard, in one pool of processes.

`data.beam` does the same on other machines; what becomes of a task is said here, for both.
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
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from t2t_revival import checked_json, registry
from t2t_revival.data.metadata import Counts
from t2t_revival.data.records import encode_example, shard_name, write_shard
from t2t_revival.data.source_checks import read_pairs
from t2t_revival.data.sources import Source
from t2t_revival.data.vocabularies import TextEncoder, open_vocabulary
from t2t_revival.data.vocabulary import EOS
from t2t_revival.errors import T2TError

SEED = 1
PAIRS_PER_WORKER = 25_000  # fewer do not repay the start of a process
CHUNK = 1000  # pairs that are encoded at once
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Task:
    """One shard to make."""

    name: str
    split: str
    index: int
    shards: int
    start: int
    stop: int

    @property
    def file_name(self) -> str:
        """The shard's own name."""
        return shard_name(self.name, self.split, self.index, self.shards)


@dataclass(frozen=True)
class Folders:
    """Where shards go, and where the notes of what is in them go."""

    shards: Path
    notes: Path

    def shard(self, task: Task) -> Path:
        """The shard's path."""
        return self.shards / task.file_name

    def note(self, task: Task) -> Path:
        """The path of the shard's counts, as JSON; written when the shard is on the disk."""
        return self.notes / f"{task.file_name}.json"


@dataclass(frozen=True)
class Workplace:
    """What a worker needs."""

    source: Source
    vocabulary: TextEncoder
    folders: Folders
    encoded: Callable[[int], None]  # is told of pairs that are encoded, now and then; raises StoppedError


@dataclass(frozen=True)
class PackedSource:
    """A source on its way to another process, which may have to import the user's package first."""

    usr_dir: str | None
    content: bytes

    @classmethod
    def of(cls, source: Source) -> PackedSource:
        """Packs a source.

        Raises:
            T2TError: it holds what cannot go to another process, such as an open file.
        """
        module = type(source).__module__
        try:
            content = pickle.dumps(source)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise T2TError(
                f"{module}.{type(source).__name__}: cannot go to the processes that make shards ({error}); "
                "let it hold names and numbers, and open files in `pairs`"
            ) from error
        return cls(registry.usr_dir(module.partition(".")[0]), content)

    def open(self) -> Source:
        """The source, in the process where it is needed.

        Raises:
            T2TError: the user's package cannot be imported, or its code fails.
        """
        if self.usr_dir and Path(self.usr_dir).name not in sys.modules:
            registry.import_usr_dir(self.usr_dir)
        with _faults_of_users():
            return pickle.loads(self.content)


class StoppedError(T2TError):
    """The work is given up, as was asked for."""


@dataclass(frozen=True)
class Tally:
    """What the processes of a pool share."""

    stop: Any  # multiprocessing.Event: give up soon
    done: Any  # multiprocessing.Value: pairs encoded

    def __call__(self, pairs: int) -> None:
        """Adds to the pairs.

        Raises:
            StoppedError: work is to stop.
        """
        if self.stop.is_set():
            raise StoppedError("stopped")
        with self.done.get_lock():
            self.done.value += pairs


Engine = Callable[[list[Task], Source, TextEncoder, Folders, Callable[[int], None]], None]
"""What makes shards, as `make_shards` does."""

_open_workplace: Callable[[], Workplace]


def make_shards(
    tasks: list[Task],
    source: Source,
    vocabulary: TextEncoder,
    folders: Folders,
    report: Callable[[int], None],
) -> None:
    """Makes shards in as many processes as there are cores and work for them.

    Args:
        tasks: the shards to make.
        source: where the pairs come from.
        vocabulary: what they are encoded with.
        folders: where shards and notes go.
        report: called with the number of pairs done.

    Raises:
        T2TError: the source cannot be read, or a worker died.
    """
    work = sum(task.stop - task.start for task in tasks)
    workers = min(cores(), len(tasks), math.ceil(work / PAIRS_PER_WORKER))
    context = multiprocessing.get_context("forkserver")
    tally = Tally(context.Event(), context.Value("q", 0))
    workplace = Workplace(source, vocabulary, folders, tally)
    if workers > 1:
        _in_pool(tasks, workplace, tally, workers, context, lambda: report(tally.done.value))
        return
    for task in tasks:
        make_shard(task, workplace)
        report(tally.done.value)


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _in_pool(
    tasks: list[Task],
    workplace: Workplace,
    tally: Tally,
    workers: int,
    context: Any,
    report: Callable[[], None],
) -> None:
    context.set_forkserver_preload([__name__])
    start = (PackedSource.of(workplace.source), workplace.vocabulary.path, workplace.folders, tally)
    with ProcessPoolExecutor(workers, context, _start_worker, start) as pool:
        try:
            with _ctrl_c_later():
                pending = {pool.submit(_work, task) for task in tasks}
            while pending:
                finished, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                for future in finished:
                    future.result()
                report()
        except BrokenProcessPool as error:
            raise T2TError(
                "a worker process died (out of memory?); what is done is kept, start again to go on. "
                'In a script of your own, generate data only under `if __name__ == "__main__":`'
            ) from error
        finally:
            tally.stop.set()
            pool.shutdown(cancel_futures=True)


@contextmanager
def _ctrl_c_later() -> Iterator[None]:
    """Holds Ctrl-C back while processes are started, which never get it: one half started would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[Any, ...]] = []
    handler = signal.signal(signal.SIGINT, lambda *signal_and_frame: came.append(signal_and_frame))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # what the processes inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
    if came and callable(handler):
        handler(*came[0])


def _start_worker(source: PackedSource, vocabulary: Path, folders: Folders, tally: Tally) -> None:
    """Prepares a worker: Ctrl-C is the parent's to handle, and the worker does not outlive it."""
    global _open_workplace
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()
    # Opened with the first shard, whose error then says what is wrong; here it would end the pool unsaid.
    _open_workplace = cache(lambda: Workplace(source.open(), open_vocabulary(vocabulary), folders, tally))


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work(task: Task) -> None:
    make_shard(task, _open_workplace())


def make_shard(task: Task, workplace: Workplace) -> None:
    """Writes one shard, then its counts. Train shards are shuffled inside.

    Raises:
        T2TError: the source cannot be read, or the code of a user's package fails.
        StoppedError: work is to stop.
    """
    examples: list[bytes] = []
    with _faults_of_users():
        counts = _encode(task, workplace, examples)
    if task.split == "train":
        random.Random(f"{SEED} {task.file_name}").shuffle(examples)
    path = workplace.folders.shard(task)
    write_shard(path, examples)
    counts = dataclasses.replace(counts, shard_bytes=(path.stat().st_size,))
    checked_json.save(workplace.folders.note(task), dataclasses.asdict(counts))


@contextmanager
def _faults_of_users() -> Iterator[None]:
    """Inside, an error in a user's package says where; on its way to another process it would lose that."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, T2TError) and (fault := registry.users_fault(error)):
            raise T2TError(fault) from error
        raise


def _encode(task: Task, workplace: Workplace, examples: list[bytes]) -> Counts:
    """Appends the task's serialised examples to `examples` and counts them."""
    lengths: Counter[int] = Counter()
    skipped = source_tokens = target_tokens = 0
    pairs = read_pairs(workplace.source, task.split, task.start, task.stop)
    while chunk := list(islice(pairs, CHUNK)):
        full = [pair for pair in chunk if all(side.strip() for side in pair)]
        skipped += len(chunk) - len(full)
        sides = [workplace.vocabulary.encode_batch([pair[side] for pair in full]) for side in (0, 1)]
        for inputs, targets in zip(*sides, strict=True):
            examples.append(encode_example([*inputs, EOS], [*targets, EOS]))
            source_tokens += len(inputs) + 1
            target_tokens += len(targets) + 1
            lengths[max(len(inputs), len(targets)) + 1] += 1
        workplace.encoded(len(chunk))
    return Counts(len(examples), skipped, source_tokens, target_tokens, dict(sorted(lengths.items())))

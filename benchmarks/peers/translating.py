"""A contestant's process in decode_speed.py, which translates a file on command and answers in JSON.

Commands, one per line on stdin: "go BATCH" translates all lines in batches of BATCH sentences, "one COUNT"
the first COUNT lines one by one. An answer is one line on stdout; output of libraries goes to stderr. This
module and its imports in the peers' interpreters support Python 3.7, the newest one for tensor2tensor 1.15.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Translate = Callable[[list[str], int], list[str]]  # lines, sentences of a batch -> translations

EOS = 1
BEAM_SIZE, ALPHA = 4, 0.6
MOST_TOKENS = 100  # of an output with a constant limit; t2t_revival's is the input's length + 50
EXTRA_TOKENS = 50  # of an output beyond its input's length


def ids_of(line: str) -> list[int]:
    """Parses a line such as "17 4 290" to ids with EOS."""
    return [*map(int, line.split()), EOS]


def tokens_in(line: str) -> int:
    """Returns the number of ids of a line."""
    return len(line.split())


def line_of(ids: list[int]) -> str:
    """Formats ids up to EOS, the inverse of `ids_of`."""
    return " ".join(map(str, itertools.takewhile(lambda number: number != EOS, ids)))


def padded(sentences: list[list[int]]) -> np.ndarray:
    """Pads ids with 0 to int32 [sentences, longest]."""
    rows = np.zeros((len(sentences), max(map(len, sentences))), np.int32)
    for row, ids in enumerate(sentences):
        rows[row, : len(ids)] = ids
    return rows


def in_batches(
    lines: list[str],
    batch: int,
    num_parallel_batches: int,
    ask: Callable[[list[str]], list[str]],
    length: Callable[[str], int] = len,
) -> list[str]:
    """Translates batches of lines of similar lengths in parallel threads.

    Args:
        lines: lines to translate.
        batch: sentences per batch.
        num_parallel_batches: number of threads.
        ask: translates the lines of one batch.
        length: returns the length by which lines are sorted, longest first.
    """
    order = sorted(range(len(lines)), key=lambda index: -length(lines[index]))
    calls = [order[start : start + batch] for start in range(0, len(order), batch)]

    def answer(call: list[int]) -> list[str]:
        return ask([lines[index] for index in call])

    with ThreadPoolExecutor(num_parallel_batches) as pool:
        sorted_outputs = [output for outputs in pool.map(answer, calls) for output in outputs]
    places = {index: place for place, index in enumerate(order)}
    return [sorted_outputs[places[index]] for index in range(len(lines))]


def serve(engines: dict[str, Callable[..., Translate]]) -> None:
    """Builds the engine named by --engine, then runs the commands on stdin.

    Args:
        engines: functions by name, from folder, parallel batches and options to an engine.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine", choices=engines, required=True)
    parser.add_argument("--options", type=json.loads, default={})
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--num_parallel_batches", type=int, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = args.lines.read_text(encoding="utf-8").split("\n")
    if not lines[-1]:
        lines.pop()  # after the last line's end
    translate = engines[args.engine](args.folder, args.num_parallel_batches, **args.options)
    translate(lines[:64], 32)
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        command, count = line.split()
        answer: dict[str, Any] = {}
        cpu, start = time.process_time(), time.perf_counter()
        if command == "go":
            args.outputs.write_text("\n".join(translate(lines, int(count))) + "\n", encoding="utf-8")
            answer["sentences"] = len(lines)
        else:
            answer["milliseconds"] = [_milliseconds(translate, text) for text in lines[: int(count)]]
        answer.update(
            seconds=time.perf_counter() - start,
            cpu_seconds=time.process_time() - cpu,
            peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )
        print(json.dumps(answer), file=answers, flush=True)


def _milliseconds(translate: Translate, text: str) -> float:
    start = time.perf_counter()
    translate([text], 1)
    return 1e3 * (time.perf_counter() - start)

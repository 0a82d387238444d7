"""A contestant's process, which trains on command and answers in JSON.

Commands, one per line on stdin: "go N" trains N steps on the next N batches, repeated without end; "loss"
computes the loss on the held-out batches. An answer is one line on stdout, with the key "error" if it failed;
output of libraries goes to stderr.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from batches import Batch, read_batches


@dataclass(frozen=True)
class Config:
    """Model and training settings, equal for all contestants except `precision` and the last three."""

    layers: int  # of the encoder and of the decoder
    hidden_size: int  # channels
    filter_size: int  # channels inside the feed-forward network
    heads: int
    vocab_size: int  # ids, PAD and EOS included
    max_length: int  # tokens of the longest sentence
    dropout: float  # on embedding sums and on the outputs of sub-layers
    inner_dropout: float  # on attention weights and inside the feed-forward network
    label_smoothing: float
    learning_rate_constant: float  # factor of the paper's eq. (3)
    learning_rate_warmup_steps: int
    precision: str  # "float32" or "bfloat16" (mixed)
    seed: int
    compiler: str = ""  # of PyTorch, such as "inductor"
    folder: str = ""  # for Marian's files
    mini_batch_words: str = ""  # sizes of batches that Marian tries, a comma list


@dataclass(frozen=True)
class Contestant:
    """A model in training.

    Attributes:
        name: library and version.
        parameters: number of trained parameters.
        step: trains on the next batch and returns its loss, in the contestant's own definition.
        held_out_loss: returns the sum of -log p(token), in nats, without smoothing and dropout, over the
            target tokens of a batch.
        peak_memory: returns the peak of the GPU memory in use, bytes; `None` without a GPU.
        window: trains on batches and returns the measurements; by default the time of so many steps.
    """

    name: str
    parameters: int
    step: Callable[[], Any]
    held_out_loss: Callable[[Batch], float]
    peak_memory: Callable[[], int | None] = lambda: None
    window: Callable[[list[Batch]], dict[str, Any]] | None = None


def serve(build: Callable[[Config, list[Batch]], Contestant]) -> None:
    """Builds the contestant from --config and --batches, then runs the commands on stdin.

    Args:
        build: makes the contestant from the settings and all training batches in order.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=json.loads, required=True)
    parser.add_argument("--batches", type=Path, required=True)
    args = parser.parse_args()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def answer(**values: Any) -> None:
        print(json.dumps(values), file=answers, flush=True)

    try:
        train, held_out = read_batches(args.batches)
        contestant = build(Config(**args.config), train)
        answer(name=contestant.name, parameters=contestant.parameters)
        waiting = itertools.cycle(train)
        for line in sys.stdin:
            command, *argument = line.split(maxsplit=1)
            if command == "loss":
                answer(loss=_mean_loss(contestant, held_out))
            else:
                batches = list(itertools.islice(waiting, int(argument[0])))
                answer(**(contestant.window or partial(_window, contestant))(batches))
    except Exception as error:
        answer(error=f"{type(error).__name__}: {error}")
        raise


def _window(contestant: Contestant, batches: list[Batch]) -> dict[str, Any]:
    cpu, start = time.process_time(), time.perf_counter()
    for _ in batches:
        loss = contestant.step()
    loss = float(loss)  # waits for the device
    return {
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "target_tokens": sum(batch.target_tokens for batch in batches),
        "training_loss": loss,
        "peak_memory": contestant.peak_memory(),
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _mean_loss(contestant: Contestant, batches: list[Batch]) -> float:
    total = sum(contestant.held_out_loss(batch) for batch in batches)
    return total / sum(batch.target_tokens for batch in batches)

"""Contestant: Marian's own trainer, a process that is stopped (SIGSTOP) while others have their turns.

It cannot be asked for single steps. It reads the pairs of all batches as text and makes its own batches, of
the size that is the fastest in a trial before; smaller ones are more updates. Its log has a line for each
update. A window ends at the first that counts at least as many more target tokens as the others' batches
have, EOS included and padding not. The update that it starts with is not counted.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from typing import Any

import numpy as np
from batches import EOS, FIRST_TOKEN, Batch
from contestant import Config, Contestant, serve

COMMAND = (sys.executable, "-m", "pymarian")
TOKENS = r" after ([\d,]+) : "  # trained until an update, in the log; only with --cost-type=ce-sum
TRIAL = 4  # batches, of whose number of target tokens it is


def flags_of(config: Config) -> list[str]:
    """Returns the flags of the same model and training: post-norm, Adam, the paper's learning rates."""
    warmup = config.learning_rate_warmup_steps
    return f"""--sync-sgd --disp-freq 1u --no-reload --overwrite --seed {config.seed} --workspace 3000
        --type transformer --enc-depth {config.layers} --dec-depth {config.layers} --tied-embeddings-all
        --dim-emb {config.hidden_size} --transformer-dim-ffn {config.filter_size}
        --transformer-heads {config.heads} --transformer-ffn-activation relu
        --transformer-postprocess dan --transformer-postprocess-emb d --transformer-dropout {config.dropout}
        --transformer-dropout-attention {config.inner_dropout}
        --transformer-dropout-ffn {config.inner_dropout}
        --cost-type ce-sum --label-smoothing {config.label_smoothing} --clip-norm 0
        --learn-rate {config.learning_rate_constant * (config.hidden_size * warmup) ** -0.5}
        --lr-warmup {warmup} --lr-decay-inv-sqrt {warmup} --optimizer-params 0.9 0.98 1e-9
        --max-length {config.max_length} --mini-batch-round-up false""".split()


def write_pairs(batches: list[Batch], names: list[str]) -> None:
    """Writes sources and targets to two files, as tokens such as t17."""
    for index, name in enumerate(names):
        rows = (row for batch in batches for row in batch[index].tolist())
        lines = (" ".join(f"t{token}" for token in row if token > EOS) for row in rows)
        Path(name).write_text("".join(f"{line}\n" for line in lines))


class Training:
    """A training that runs in its windows only, the first of which ends with its first update."""

    def __init__(self, flags: list[str]) -> None:
        self.process = subprocess.Popen([*COMMAND, "train", *flags], stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.tokens = 0
        self.window(1)

    def window(self, tokens: int) -> dict[str, Any]:
        """Trains at least so many target tokens, in whole updates."""
        cpu_clock = ~self.process.pid << 3 | 2  # as clock_getcpuclockid(3) makes it
        before, cpu, start = self.tokens, time.clock_gettime(cpu_clock), time.perf_counter()
        self.process.send_signal(SIGCONT)
        while self.tokens < before + tokens:
            self.tokens = self._next_count()
        seconds = time.perf_counter() - start
        self.process.send_signal(SIGSTOP)
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return {
            "seconds": seconds,
            "cpu_seconds": time.clock_gettime(cpu_clock) - cpu,
            "target_tokens": self.tokens - before,
            "peak_rss_mb": int(status.split("VmHWM:")[1].split()[0]) / 1024,
        }

    def end(self) -> None:
        """Ends it; it writes its model."""
        self.process.terminate()
        self.process.send_signal(SIGCONT)
        self.process.wait()

    def _next_count(self) -> int:
        assert self.process.stderr
        log = ""
        for line in self.process.stderr:
            if count := re.search(TOKENS, line):
                return int(count[1].replace(",", ""))
            log += line
        raise RuntimeError(" ".join(["Marian ended", *re.findall("Error: .*", log)]))


def build(config: Config, batches: list[Batch]) -> Contestant:
    names = ("model.npz", "ids.yml", "pairs.source", "pairs.target")
    model, ids, *pairs = (f"{config.folder}/{name}" for name in names)
    vocabulary = {"</s>": 0, "<unk>": 1} | {f"t{i}": i for i in range(FIRST_TOKEN, config.vocab_size)}
    Path(ids).write_text(json.dumps(vocabulary))
    write_pairs(2 * batches, pairs)  # an epoch, with a small batch at its end, is longer than the run
    flags = ["-m", model, "-v", ids, ids, "-t", *pairs, f"--cpu-threads={os.cpu_count()}"]

    def start(words: str) -> Training:
        return Training([*flags, *flags_of(config), f"--mini-batch-words={words}"])

    def speed(words: str) -> float:
        trial = start(words)
        window = trial.window(sum(batch.target_tokens for batch in batches[:TRIAL]))
        trial.end()
        return float(window["target_tokens"] / window["seconds"])

    fastest = max(config.mini_batch_words.split(","), key=speed)
    with np.load(model) as arrays:
        parameters = sum(arrays[name].size for name in arrays.files if not name.startswith("special:"))
    training = start(fastest)

    def held_out_loss(batch: Batch) -> float:
        training.end()
        write_pairs([batch], pairs)
        score = [*COMMAND, "score", *flags, "--summary=ce-sum"]
        return float(subprocess.run(score, stdout=subprocess.PIPE, text=True, check=True).stdout)

    return Contestant(
        name=f"Marian {metadata.version('pymarian')}, batches of {fastest} words",
        parameters=parameters,
        step=lambda: training.window(1),
        held_out_loss=held_out_loss,
        window=lambda batches: training.window(sum(batch.target_tokens for batch in batches)),
    )


if __name__ == "__main__":
    serve(build)

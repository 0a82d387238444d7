"""`t2t-make-tf-configs`: prints TF_CONFIG for each machine of a training.

t2t-make-tf-configs --masters=HOST:PORT,HOST:PORT

Prints a line for each machine: start t2t-trainer --strategy=multi_worker there with the variable TF_CONFIG of
its line. The first machine is the chief, which reports, evaluates and saves; output_dir and data_dir must be
folders that all machines share.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import Flags, flag
from t2t_revival.errors import CommandLine, T2TError

ADDRESS = re.compile(r"(?P<host>[\w.-]+|\[[0-9A-Fa-f:]+\]):(?P<port>\d{1,5})", re.ASCII)


@dataclass(frozen=True)
class TfConfigsFlags(Flags):
    masters: tuple[str, ...] = flag((), "Machines, each with a free port: host1:2222,host2:2222.")
    ps: tuple[str, ...] = flag(
        (), "A flag of tensor2tensor: not supported; prints the command for the same machines."
    )


def tf_configs(workers: Sequence[str]) -> list[str]:
    """Returns `TF_CONFIG` of each worker, whose addresses are "host:port", as JSON."""
    if not workers:
        raise T2TError("--masters=HOST:PORT,... is missing: the machines")
    for worker in workers:
        match = ADDRESS.fullmatch(worker)
        if match is None or not 0 < int(match["port"]) < 65536:
            raise T2TError(f"--masters: {worker!r} is not of the form host:port")
        if workers.count(worker) > 1:
            raise T2TError(f"--masters: {worker} is repeated; each process needs a port of its own")
    return [
        json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})
        for index in range(len(workers))
    ]


def _make(flags: TfConfigsFlags) -> None:
    if flags.ps:
        raise T2TError(_without_ps(flags.masters, flags.ps))
    for config in tf_configs(flags.masters):
        print(f"TF_CONFIG={shlex.quote(config)}")
    example = {"strategy": "multi_worker", "problem": "translate_ende", "hparams_set": "base"}
    print(f"next: {CommandLine('t2t-trainer', **example)}", file=sys.stderr)
    print(
        "on each machine, with its line and a space before it, and with your problem and hparams set",
        file=sys.stderr,
    )


def _without_ps(masters: Sequence[str], ps: Sequence[str]) -> str:
    """Proposes a command instead of `--ps`, which had two meanings in tensor2tensor."""
    command = shlex.join(["t2t-make-tf-configs", f"--masters={','.join(masters if masters[1:] else ps)}"])
    if masters[1:]:
        return (
            "--ps: with several masters, tensor2tensor trained on them asynchronously, and the machines in "
            f"--ps held the weights; here training is synchronous, and no others are needed: {command}"
        )
    also = f" (add {masters[0]} if it is to train too)" if masters else ""
    return (
        "--ps: with one master, tensor2tensor trained synchronously on the machines in --ps; here these are "
        f"the masters: {command}{also}"
    )


main = Command(TfConfigsFlags, _make, __doc__)

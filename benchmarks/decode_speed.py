"""Decoding speed side by side: this project's engines and exports, CTranslate2 and Marian; same weights.

    python benchmarks/decode_speed.py --models=small=OUTPUT_DIR --inputs=test.en --references=test.de

Every contestant is a process with all cores: text in, text out, beam 4, alpha 0.6. They take turns, so that
other work on the machine affects all of them alike. Several models take turns in one run too, and then
contestants are named MODEL/CONTESTANT, such as student/ctranslate2-int8-greedy-shortlist. Throughput is
measured on all lines in batches sorted by length, latency on single lines. BLEU shows the price of speed.
Stopping rules differ: this project stops when no hypothesis can beat the best finished one, CTranslate2 when
as many hypotheses are finished as the beam is wide; it has its own length penalty, as Marian has. Names that
end with -early, -greedy or -shortlist have early_stopping=True, beam_size=1, shortlist=on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import result_file
from peers.decoding_entries import BASELINE, CONTESTANTS, Entry, entry_of, exported, say
from peers.processes import BUSY_CPUS, PEERS, ContestantError, Process, wait_for_quiet

from t2t_revival.metrics.bleu import sacrebleu_score
from t2t_revival.utils.files import text_lines

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True)
class Contestant:
    """A way to decode a model.

    Attributes:
        entry: the way.
        folder: the exported model, or the output_dir.
        vocabulary: the model's.
    """

    entry: Entry
    folder: Path
    vocabulary: Any


@dataclass
class Result:
    """Measurements of one contestant.

    Attributes:
        windows: one answer per round, for each batch size.
        milliseconds: durations of single lines, in all rounds.
        bleu: of the last translations.
        output_tokens: pieces of the last translations.
    """

    windows: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    bleu: float = float("nan")
    output_tokens: int = 0

    def speeds(self, batch: int) -> list[float]:
        """Returns the sentences per second of every round."""
        return [window["sentences"] / window["seconds"] for window in self.windows.get(batch, [])]

    @property
    def peak_rss_mb(self) -> float:
        """Maximum of the throughput process."""
        return max((w["peak_rss_mb"] for windows in self.windows.values() for w in windows), default=0.0)


class Competition:
    """Contestants on one model and one text.

    Args:
        contestants: by name.
        args: parsed flags.
        scratch: a folder for logs and outputs.
        num_parallel_batches: number of batches that are translated in parallel.
    """

    def __init__(
        self,
        contestants: dict[str, Contestant],
        args: argparse.Namespace,
        scratch: Path,
        num_parallel_batches: int,
    ) -> None:
        self.args = args
        self.outputs: dict[str, Path] = {}
        self.processes: dict[str, Process] = {}
        for number, (key, contestant) in enumerate(contestants.items()):
            entry = contestant.entry
            self.outputs[key] = scratch / f"{number}.{num_parallel_batches}.txt"
            command = [
                args.marian_python if entry.engine == "marian" else sys.executable,
                str(PEERS / "decoding.py"),
                f"--engine={entry.engine}",
                f"--options={json.dumps(entry.options)}",
                f"--folder={contestant.folder}",
                f"--num_parallel_batches={num_parallel_batches}",
                f"--lines={args.inputs}",
                f"--outputs={self.outputs[key]}",
            ]
            try:
                self.processes[key] = Process(command, scratch / f"{number}.log")
            except ContestantError as error:
                say(f"{key}: dropped: {error}")

    def round(self, number: int, command: str) -> dict[str, dict[str, Any]]:
        """Sends a command to each contestant, in rotating order; one that fails is dropped."""
        order = list(self.processes)
        turn = number % max(1, len(order))
        answers = {}
        for key in order[turn:] + order[:turn]:
            wait_for_quiet(self.args.wait_quiet)
            try:
                answers[key] = self.processes[key].watched(command)
            except ContestantError as error:
                say(f"{key}, {command}: dropped: {error}")
                del self.processes[key]
                continue
            if (others := answers[key].get("others_cpus", 0)) > BUSY_CPUS:
                say(f"{key}, {command}: disturbed, others used {others:.2f} CPUs")
        return answers

    def stop(self) -> None:
        """Ends the processes."""
        for process in self.processes.values():
            process.stop()


def compete(contestants: dict[str, Contestant], args: argparse.Namespace, scratch: Path) -> dict[str, Result]:
    """Measures throughput with all cores at each batch size, then latency of single lines."""
    results = {key: Result() for key in contestants}
    together = Competition(contestants, args, scratch, os.cpu_count() or 1)
    try:
        for batch in args.batch_sizes:
            for number in range(args.rounds):
                for key, answer in together.round(number, f"go {batch}").items():
                    results[key].windows.setdefault(batch, []).append(answer)
            speeds = ", ".join(
                f"{key} {median(results[key].speeds(batch)):.0f}" for key in together.processes
            )
            say(f"batch {batch}, sentences/s: {speeds}")
        for key in together.processes:
            _score(results[key], together.outputs[key], contestants[key], args.references)
    finally:
        together.stop()
    alone = Competition(contestants, args, scratch, 1)
    try:
        for number in range(args.rounds):
            for key, answer in alone.round(number, f"one {args.singles}").items():
                results[key].milliseconds += answer["milliseconds"]
    finally:
        alone.stop()
    return results


def _score(result: Result, outputs: Path, contestant: Contestant, references: Path) -> None:
    lines = text_lines(outputs.read_bytes(), str(outputs))
    result.bleu = sacrebleu_score(lines, text_lines(references.read_bytes(), str(references))).score
    result.output_tokens = sum(len(line) + 1 for line in contestant.vocabulary.encode_batch(lines))


def table(results: dict[str, Result], batch_sizes: Sequence[int], baseline: str = BASELINE) -> str:
    """Returns the results in Markdown: medians, extremes in brackets, ratios within rounds to a baseline."""
    batches = [f"batch {batch}: sentences/s" for batch in batch_sizes]
    quantiles = "/".join(f"p{percentile}" for percentile in PERCENTILES)
    heads = [
        "contestant",
        *batches,
        "output tokens/s",
        f"one by one: ms, {quantiles}",
        "peak RSS, MB",
        "BLEU",
    ]
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    best = max(batch_sizes)
    for key, result in results.items():
        sentences = [window["sentences"] for window in result.windows.get(best, [])]
        tokens = [
            result.output_tokens * rate / count
            for rate, count in zip(result.speeds(best), sentences, strict=True)
        ]
        rows.append(
            [
                key,
                *(_speed(result, results.get(baseline), batch) for batch in batch_sizes),
                f"{median(tokens):,.0f}" if tokens else "",
                " / ".join(
                    f"{value:.1f}" for value in np.percentile(result.milliseconds or [np.nan], PERCENTILES)
                ),
                f"{result.peak_rss_mb:,.0f}",
                f"{result.bleu:.2f}",
            ]
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _speed(result: Result, baseline: Result | None, batch: int) -> str:
    """Returns text such as "290 (280-295), x 0.95", or "" without rounds."""
    speeds = result.speeds(batch)
    if not speeds:
        return ""
    text = f"{median(speeds):.0f} ({min(speeds):.0f}-{max(speeds):.0f})"
    others = baseline.speeds(batch) if baseline else []
    if not others or baseline is result:
        return text
    return f"{text}, x {median(a / b for a, b in zip(speeds, others, strict=False)):.2f}"


def parse_flags(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the flags."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("--models", type=_models, required=True, help="NAME=OUTPUT_DIR,NAME=OUTPUT_DIR: trained models")
    add("--inputs", type=Path, required=True, help="source text, a sentence a line")
    add("--references", type=Path, required=True, help="its translation")
    add("--contestants", type=_names, default=list(CONTESTANTS), help="comma list; default all")
    add("--marian_python", default=sys.executable, help="interpreter that has pymarian")
    add("--baseline", help=f"contestant that ratios are relative to; default the first {BASELINE}")
    add("--batch_sizes", type=_numbers, default=[1, 8, 32, 64], help="comma list, sentences")
    add("--rounds", type=int, default=3)
    add("--singles", type=int, default=100, help="lines of a round that are translated one by one")
    add("--wait_quiet", type=float, default=0, help="seconds to wait at most for a quiet machine")
    result_file.add_flag(parser)
    args = parser.parse_args(argv)
    try:
        args.entries = _entries(args.models, args.contestants)
    except ValueError as error:
        parser.error(f"argument --contestants: {error}")
    baselines = [args.baseline] if args.baseline else [n for n in args.entries if n.endswith(BASELINE)]
    if args.baseline and args.baseline not in args.entries:
        parser.error(f"argument --baseline: {args.baseline} is none of {', '.join(args.entries)}")
    args.baseline = baselines[0] if baselines else ""
    return args


def _models(text: str) -> dict[str, Path]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and folder for name, _, folder in pairs):
        raise argparse.ArgumentTypeError(f"{text}: expected NAME=OUTPUT_DIR,...")
    return {name: Path(folder).expanduser() for name, _, folder in pairs}


def _entries(models: dict[str, Path], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Returns model and contestant by name; a name without a model stands for each of them."""
    entries: dict[str, tuple[str, str]] = {}
    for name in names:
        model, _, contestant = name.rpartition("/")
        if model and model not in models:
            raise ValueError(f"{name}: unknown model; known: {', '.join(models)}")
        entry_of(contestant)
        for each in [model] if model else models:
            entries[f"{each}/{contestant}" if len(models) > 1 else contestant] = each, contestant
    return entries


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def prepare(args: argparse.Namespace, scratch: Path) -> dict[str, Contestant]:
    """Exports all models.

    Raises:
        OSError, T2TError: a model cannot be read.
    """
    from t2t_revival.model_folder import ModelFolder

    contestants = {}
    for model, output_dir in args.models.items():
        vocabulary = ModelFolder(output_dir).vocabularies.inputs
        own = scratch / model
        own.mkdir()
        names = {name: contestant for name, (of, contestant) in args.entries.items() if of == model}
        folders = exported(output_dir, list(names.values()), own)
        for name, contestant in names.items():
            if contestant in folders:
                contestants[name] = Contestant(entry_of(contestant), folders[contestant], vocabulary)
    return {name: contestants[name] for name in args.entries if name in contestants}


def main() -> int:
    """Runs the comparison."""
    from t2t_revival import T2TError

    args = parse_flags()
    with tempfile.TemporaryDirectory() as scratch:
        try:
            contestants = prepare(args, Path(scratch))
        except (OSError, T2TError) as error:
            say(f"error: {error}")
            return 1
        results = compete(contestants, args, Path(scratch))
    print(f"\n{', '.join(args.models)}: {args.inputs.name}, {os.cpu_count()} CPUs, x {args.baseline}")
    print("\n" + table(results, args.batch_sizes, args.baseline), flush=True)
    result_file.write(args.out, [{"name": name, **asdict(result)} for name, result in results.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())

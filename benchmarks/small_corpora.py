"""Worth of settings on a small corpus in the same minutes: trains each with each seed, and scores it.

    python benchmarks/small_corpora.py --settings=FILE --data_source=FOLDER --work=FOLDER --minutes=30

The settings are JSON, flags of `t2t-trainer` under the names of settings:
{"rotary": ["--hparams_set=small", "--hparams=pos=rotary", "--vocab_size=4000"]}. Every training is a
`t2t-trainer` that ends by itself, and is timed as a whole. Its newest checkpoint is decoded with each of
`--alphas`, from dev; `--lines` names more files, as SOURCE:REFERENCE. A line of JSON for each training is
added to results.jsonl in the work folder; those that are there are not made again.
"""

from __future__ import annotations

import csv
import itertools
import json
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

import result_file
import sacrebleu

BIN = Path(sys.executable).parent
CURVE = ("loss", "bleu")


def parse_flags(arguments: list[str] | None = None) -> Namespace:
    """Parses the command line."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--settings", type=Path, required=True)
    parser.add_argument("--data_source", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder of data, models and results")
    parser.add_argument("--problem", default="translate_ende")
    parser.add_argument("--minutes", type=float, help="of each training; by default as long as its flags say")
    parser.add_argument("--seeds", default="1", help="such as 1,2,3")
    parser.add_argument("--alphas", default="1.0", help="of the beam search on dev, such as 0.6,1.0")
    parser.add_argument("--lines", default="", help="more files, SOURCE:REFERENCE, separated by commas")
    parser.add_argument("--only", default="", help="names of the settings to train, separated by commas")
    return parser.parse_args(arguments)


def main() -> int:
    args = parse_flags()
    settings = json.loads(args.settings.read_text())
    names = args.only.split(",") if args.only else list(settings)
    results = args.work / "results.jsonl"
    args.work.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    for seed, name in itertools.product(map(int, args.seeds.split(",")), names):
        key = {"name": name, "seed": seed, "minutes": args.minutes, "problem": args.problem}
        if any(key.items() <= one.items() for one in done):
            continue
        measured = measured_training(args, name, seed, settings[name])
        found = {**key, "flags": settings[name], **measured, "processor": result_file.machine()["processor"]}
        with results.open("a") as file:
            file.write(json.dumps(found) + "\n")
        print(json.dumps(found), flush=True)
    return 0


def measured_training(args: Namespace, name: str, seed: int, flags: list[str]) -> dict[str, Any]:
    """Trains a model and returns its scores."""
    work, problem = args.work, args.problem
    pieces = next((flag.partition("=")[2] for flag in flags if flag.startswith("--vocab_size=")), "default")
    output_dir = work / f"{problem}-{name}-{seed}-{args.minutes or ''}"
    command = ["t2t-trainer", f"--problem={problem}", f"--data_source={args.data_source}", *flags]
    command += [
        f"--data_dir={work / f'data-{pieces}'}",
        f"--output_dir={output_dir}",
        f"--random_seed={seed}",
    ]
    command += [f"--train_minutes={args.minutes}"] if args.minutes else []
    began = time.monotonic()
    with (work / f"{output_dir.name}.log").open("a") as log:
        subprocess.run([BIN / command[0], *command[1:]], check=True, stdout=log, stderr=log)
    minutes = (time.monotonic() - began) / 60
    with (output_dir / "dev.csv").open() as file:
        last = list(csv.DictReader(file))[-1]
    source, target = problem_languages(output_dir)
    pairs = [f"{args.data_source / f'dev.{source}'}:{args.data_source / f'dev.{target}'}"]
    scores = {}
    for alpha, files in itertools.product(
        args.alphas.split(","), [*pairs, *filter(None, args.lines.split(","))]
    ):
        scores[f"{Path(files.partition(':')[0]).name}, alpha {alpha}"] = score(output_dir, files, alpha)
    updates, tokens = int(last["step"]), int(last["target_tokens"])
    of_curve = {f"dev_{column}": float(last[column]) for column in CURVE if last.get(column)}
    return {
        "wall_minutes": round(minutes, 2),
        "updates": updates,
        "target_tokens": tokens,
        **of_curve,
        **scores,
    }


def problem_languages(output_dir: Path) -> tuple[str, str]:
    """Returns the languages of the model's data."""
    run = json.loads((output_dir / "run.json").read_text())
    (path,) = Path(run["data_dir"]).glob("*.meta.json")
    metadata = json.loads(path.read_text())
    languages = metadata["source_lang"], metadata["target_lang"]
    return languages[::-1] if run["problem"].endswith("_rev") else languages


def score(output_dir: Path, files: str, alpha: str) -> dict[str, float]:
    """Decodes a file by the newest checkpoint, with a beam of 4; returns BLEU, its penalty and chrF."""
    source, _, reference = files.partition(":")
    out = output_dir / "decoded.txt"
    command = [BIN / "t2t-decoder", f"--output_dir={output_dir}", f"--decode_from_file={source}"]
    command += [f"--decode_to_file={out}", f"--decode_hparams=beam_size=4,alpha={alpha}"]
    subprocess.run(command, check=True, capture_output=True)
    outputs, references = out.read_text().splitlines(), Path(reference).read_text().splitlines()
    bleu, chrf = sacrebleu.corpus_bleu(outputs, [references]), sacrebleu.corpus_chrf(outputs, [references])
    return {"bleu": round(bleu.score, 2), "penalty": round(bleu.bp, 3), "chrf": round(chrf.score, 2)}


if __name__ == "__main__":
    sys.exit(main())

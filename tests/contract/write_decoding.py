"""Writes answers of the decoding contract: `python -m tests.contract.write_decoding [--change] [CASES]`.

New cases are added. An answer that differs from the one that is there is shown, and replaced with `--change`
only. No answer is written that changes when all weights change by about `NOISE` of themselves, which is more
than the rounding of float32 differs between processors: then two hypotheses are too close to each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from tests.contract.decoding import (
    CASES,
    FOLDER,
    JSONL,
    Case,
    by_decoder,
    by_python,
    copied,
    differences,
    expectations,
    folder_of,
)

NOISE, SEEDS = 1e-5, (1, 2)
NEAR = 1e-2  # of scores with noise


def answer(model: str, case: Case, folder: Path) -> list[Any]:
    with tempfile.TemporaryDirectory() as scratch:
        if case.ensemble:  # which Python has not
            return by_decoder(model, case, folder, Path(scratch), JSONL)
        return by_python(model, case, folder)


def is_stable(model: str, name: str, case: Case, expected: list[Any]) -> bool:
    """Checks that noise changes nothing but the last digits of scores; says what else it changes."""
    if case.precision != "float32":
        return True
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            found = answer(model, case, copied(model, Path(folder), NOISE, seed))
        changes = list(differences(expected, found, NEAR))
        for change in changes:
            print(f"{model} {name}: with noise {change}")
        if changes:
            return False
    return True


def write(model: str, answers: dict[str, list[Any]]) -> None:
    """Writes answers, an output a line."""
    cases = []
    for name in filter(answers.get, CASES[model]):
        lines = [
            "[" + ",\n   ".join(json.dumps(one, ensure_ascii=False) for one in outputs) + "]"
            for outputs in answers[name]
        ]
        cases.append(f'"{name}": [\n  ' + ",\n  ".join(lines) + "\n]")
    path = FOLDER / "decoding" / f"{model}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text("{\n" + ",\n".join(cases) + "\n}\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--change", action="store_true", help="replace answers that differ")
    parser.add_argument("cases", nargs="*", metavar="MODEL/CASE", help="by default all")
    arguments = parser.parse_args()
    refused = 0
    for model, cases in CASES.items():
        answers = expectations(model)
        for name, case in cases.items():
            if arguments.cases and f"{model}/{name}" not in arguments.cases:
                continue
            found = answer(model, case, folder_of(model))
            changes = list(differences(answers[name], found)) if name in answers else ["new"]
            for change in changes:
                print(f"{model} {name}{change if change[0] in '[.' else f': {change}'}", flush=True)
            if not changes:
                continue
            allowed = name not in answers or arguments.change
            if allowed and is_stable(model, name, case, found):
                answers[name] = found
            else:
                refused += 1
        write(model, answers)
    if refused:
        print(
            f"{refused} cases are not written: give --change, or other lines where hypotheses are too close"
        )
    return int(refused > 0)


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    warnings.simplefilter("ignore")
    sys.exit(main())

"""Writes the contract of trainings by today's code: `python -m tests.contract.write_training`.

Run it when training is meant to give other numbers, and say in the commit why. The vocabulary of trees beside
it stays; t2t-datagen has learned it from `write_corpora`'s trees, with --vocab_size=300.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tests.contract.trainings import CONTRACT, KINDS, RESUMED, STOP, STORED, SUBTOKENS, Trainings, result


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(Path(folder))
        results = {name: result(trainings.of_kind(name)) for name in KINDS}
        store(trainings.train(KINDS[RESUMED], "stopped", STOP), trainings.data_dir(KINDS[RESUMED]))
    CONTRACT.write_text(in_lines(results) + "\n", encoding="utf-8")


def store(output_dir: Path, data_dir: Path) -> None:
    """Keeps the files of an interrupted training and its data, from which a later version must resume it."""
    shutil.rmtree(STORED, ignore_errors=True)
    STORED.mkdir()
    for name in ("hparams.json", "train.csv", "dev.csv", SUBTOKENS, f"model.ckpt-{STOP}.npz"):
        shutil.copy(output_dir / name, STORED)
    shutil.copytree(data_dir, STORED / "data")
    run = json.loads((output_dir / "run.json").read_text(encoding="utf-8"))
    del run["checksum"]
    run["data_dir"] = "data"
    (STORED / "run.json").write_text(json.dumps(run, indent=2) + "\n", encoding="utf-8")


def in_lines(value: object, indent: str = "") -> str:
    """JSON with a line for each list of numbers, so that a change is seen where it is."""
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {in_lines(each, indent + ' ')}" for key, each in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and isinstance(value[0], list):
        items, opening, closing = [json.dumps(row) for row in value], "[", "]"
    else:
        return json.dumps(value)
    return f"{opening}\n{indent} " + f",\n{indent} ".join(items) + f"\n{indent}{closing}"


if __name__ == "__main__":
    main()

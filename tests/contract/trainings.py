"""Trainings whose results are a contract, by commands and files on disk alone.

Each makes 20 updates of a model of one layer. Texts, vocabularies and, for most, the first weights are made
or stored here, so that no result hangs on the package's initialisers or on SentencePiece's version.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from t2t_revival.cli import trainer
from tests.support.backend_process import run_with_backend
from tests.support.line_corpus import write_lines
from tests.support.processes import Process

CONTRACT = Path(__file__).with_name("trainings.json")
TREE_PIECES = Path(__file__).with_name("vocab.trees.spm")
SUBTOKENS = "vocab.contract.subwords"
STORED = Path(__file__).with_name("stored_training")
STEPS, STOP = 20, 14  # updates; where an interrupted training stops, which is in the second epoch
CHECKPOINT = f"model.ckpt-{STEPS}.npz"
HPARAMS = {
    "num_hidden_layers": 1,
    "hidden_size": 16,
    "filter_size": 32,
    "num_heads": 2,
    "batch_size": 192,
    "max_length": 64,
    "length_bucket_step": 1.5,  # few buckets: JAX compiles a step for each
    "layer_prepostprocess_dropout": 0.0,
    "learning_rate_constant": 0.2,
    "learning_rate_warmup_steps": 12,
}
DROPOUT = {"layer_prepostprocess_dropout": 0.1, "attention_dropout": 0.1, "relu_dropout": 0.1}
PAIRS, DEV_PAIRS = 100, 12
NOUNS = ("dog Hund", "cat Katze", "house Haus", "tree Baum", "child Kind", "river Fluss", "bird Vogel")
VERBS = ("sees sieht", "hears hört", "likes mag", "finds findet", "follows verfolgt")
ADVERBS = ("today heute", "often oft", "now jetzt", "never nie")
CURVES = {"train": ("loss", "smoothed_loss", "learning_rate", "target_tokens"), "dev": ("loss", "accuracy")}


@dataclass(frozen=True)
class Kind:
    """A kind of training.

    Attributes:
        hparams: changes of `HPARAMS`.
        flags: of t2t-trainer, besides those of every kind.
        source: `--data_source`, in which {} stands for the folder of the corpora.
        data: a folder of data that is there, in place of a source.
        starts: whether it starts with the weights of `Trainings.start`; else the package draws them.
        devices: CPU devices of the process that trains.
        precise: whether losses, norms and single numbers are the same to 1e-4 on every processor. Else losses
            are to 1e-2, and arrays are alike.
    """

    hparams: dict[str, float] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    source: str = "{}/news"
    data: Path | None = None
    starts: bool = True
    devices: int = 1
    precise: bool = True


KINDS = {
    "from the seed": Kind(starts=False),
    "plain": Kind(),
    "accumulated": Kind({"effective_batch_size": 3 * HPARAMS["batch_size"]}),
    "bfloat16": Kind(flags=("--precision=mixed_bfloat16",), precise=False),
    "two replicas": Kind(DROPOUT, ("--strategy=mirrored",), devices=2),
    "mixture": Kind(source="news={}/news:3,talks={}/talks:1"),
    "subword dropout": Kind({"subword_dropout": 0.2, "ema_decay": 0.8, **DROPOUT}),
    "LoRA and EMA": Kind({"lora_rank": 2, "ema_decay": 0.8}),
    "guided alignment": Kind({"guided_alignment_weight": 0.5}),
    "weighted sentences": Kind(source="{}/weighted"),
    "parser": Kind(source="{}/trees", starts=False),
}

RESUMED = "subword dropout"  # with all random numbers that a training draws, and moving averages


class Trainings:
    """Trainings in a folder, which has their corpora, data and output_dirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write_corpora(folder / "corpora")

    def of_kind(self, name: str) -> Path:
        """Returns the output_dir of a training of `KINDS`, which is run at the first call."""
        output_dir = self.folder / name
        return output_dir if output_dir.exists() else self.train(KINDS[name], name)

    def train(self, kind: Kind, name: str, steps: int = STEPS, backend: str = "") -> Path:
        """Runs or resumes a training; returns its output_dir."""
        command = [*self._command(kind), f"--output_dir={self.folder / name}", f"--train_steps={steps}"]
        if backend:
            command.append("--nopacked")  # as the contract's trainings by TensorFlow
            done = run_with_backend([sys.executable, "-m", trainer.__name__, *command[1:]], backend)
            assert done.returncode == 0, done.stderr
        elif kind.devices > 1:
            Process(self.folder / f"process of {name}", train_on_devices, [kind.devices, command]).end()
        else:
            assert trainer.main(command) == 0
        return self.folder / name

    def _command(self, kind: Kind) -> list[str]:
        corpora, is_parser = self.folder / "corpora", kind.source.endswith("trees")
        hparams = {**HPARAMS, **kind.hparams}
        made = [
            f"--data_source={kind.source.replace('{}', str(corpora))}",
            f"--vocab_file={TREE_PIECES if is_parser else corpora / SUBTOKENS}",
        ]
        return [
            "t2t-trainer",
            f"--problem={'parse_wsj' if is_parser else 'translate_ende'}",
            "--hparams_set=tiny",
            "--hparams=" + ",".join(f"{name}={value}" for name, value in hparams.items()),
            *([] if kind.data else made),
            f"--data_dir={kind.data or self.data_dir(kind)}",
            "--eval_bleu_sentences=0",
            "--log_step_count_steps=1",
            *([f"--warm_start_from={self.start}"] if kind.starts else ()),
            *kind.flags,
        ]

    def data_dir(self, kind: Kind) -> Path:
        return self.folder / kind.source.replace("/", " ")

    @cached_property
    def start(self) -> Path:
        """A checkpoint in an output_dir, whose weights NumPy has drawn."""
        path = shutil.copytree(self.of_kind("from the seed"), self.folder / "start") / CHECKPOINT
        with np.load(path) as checkpoint:
            arrays = {name: drawn(name, checkpoint[name]) for name in checkpoint if name.startswith("model/")}
            meta = json.loads(checkpoint["meta"].tobytes())
        del meta["checksums"]
        np.savez(path, **arrays, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8))
        return path


def drawn(name: str, array: np.ndarray) -> np.ndarray:
    """Random weights in the place of others; those of about 1, which scale normalised vectors, stay so."""
    if array.dtype.kind != "f":
        return array
    normal = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(array.shape)
    return (0.25 * normal + (array.mean() > 0.5)).astype(np.float32)


def train_on_devices(devices: int, command: list[str]) -> int:
    """Runs t2t-trainer with several CPU devices, which only a new process can have."""
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * devices)
    return trainer.main(command)


def result(output_dir: Path) -> dict[str, Any]:
    """The result of a training: its curves and, of each array of its last checkpoint, a few numbers."""
    arrays = last_arrays(output_dir)
    updates = json.loads(arrays.pop("meta").tobytes())["step"]
    curves = {name: curve(output_dir, name) for name in CURVES}
    return {
        "updates": updates,
        **curves,
        "arrays": {name: summary(name, arrays[name]) for name in sorted(arrays)},
    }


def last_arrays(output_dir: Path) -> dict[str, np.ndarray]:
    """The content of the last checkpoint."""
    with np.load(output_dir / CHECKPOINT) as checkpoint:
        return dict(checkpoint)


def curve(output_dir: Path, name: str) -> list[list[float]]:
    """The columns of a curve's file that do not hang on the clock."""
    with (output_dir / f"{name}.csv").open(encoding="utf-8") as file:
        return [[float(row[column]) for column in CURVES[name]] for row in csv.DictReader(file)]


def summary(name: str, array: np.ndarray) -> list[float]:
    """The norm of an array, and three numbers of a weight; a random state as it is."""
    if array.dtype.kind != "f":
        return array.tolist()
    weights = array.ravel()[:: max(1, array.size // 3)][: 0 if name.startswith("optimizer/") else 3]
    return [float(f"{number:.6g}") for number in (np.linalg.norm(array.astype(float)), *weights)]


def write_corpora(folder: Path) -> None:
    """Writes pairs with their alignments, others, pairs with weights, trees, and the vocabulary of pairs."""
    for corpus, first in (("news", 0), ("talks", 1000), ("weighted", 0)):
        for split, begin, count in (("train", first, PAIRS), ("dev", first + 500, DEV_PAIRS)):
            pairs = [pair(number) for number in range(begin, begin + count)]
            for side, language in enumerate(("en", "de")):
                write(folder / corpus / f"{split}.{language}", (texts[side] for texts in pairs))
    lengths = [len(pair(number)[0].split()) for number in range(PAIRS)]
    write(folder / "news" / "train.align", (" ".join(f"{i}-{i}" for i in range(n)) for n in lengths))
    # So small that the gradients are not much above Adam's epsilon.
    write(folder / "weighted" / "train.weights", (f"{number % 3 + 1}e-6" for number in range(PAIRS)))
    write(folder / "trees" / "train.trees", map(tree, range(PAIRS)))
    write(folder / "trees" / "dev.trees", map(tree, range(500, 500 + DEV_PAIRS)))
    words = sorted({word for number in range(500) for text in pair(number) for word in text.split()})
    characters = sorted({*"".join(words), *"<pad>EOS\\_u;0123456789"})
    subtokens = [
        "<pad>",
        "<EOS>",
        *(f"{word}_" for word in words),
        *(word[:2] for word in words),
        *characters,
    ]
    write(folder / SUBTOKENS, (f"'{subtoken}'" for subtoken in dict.fromkeys(subtokens)))


def write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, lines)


def words_of(number: int) -> list[tuple[str, str]]:
    """Subject, verb, object and up to four adverbs of a sentence, in both languages."""
    nouns, verb = (NOUNS[number % 7], NOUNS[number // 7 % 7]), VERBS[number % 5]
    words = [nouns[0], verb, nouns[1], *ADVERBS[: number * number // 3 % 5]]
    return [tuple(word.split()) for word in words]


def pair(number: int) -> tuple[str, str]:
    """A sentence in two languages, word by word."""
    subject, verb, object_, *adverbs = words_of(number)
    words = [("the", "der"), subject, verb, ("the", "den"), object_, *adverbs]
    return " ".join(word[0] for word in words), " ".join(word[1] for word in words)


def tree(number: int) -> str:
    """The tree of such an English sentence."""
    subject, verb, object_, *adverbs = (word for word, _ in words_of(number))
    after = "".join(f" (ADVP (RB {adverb}))" for adverb in adverbs)
    phrases = [f"(NP (DT the) (NN {noun}))" for noun in (subject, object_)]
    return f"( (S {phrases[0]} (VP (VBZ {verb}) {phrases[1]}{after})) )"

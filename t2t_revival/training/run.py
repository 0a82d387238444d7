"""What a training leaves in its output_dir besides checkpoints: all that is needed to use the model.

hparams.json     the resolved hyperparameters
run.json         problem, hparams set, vocabulary
vocab.*.spm      a copy of the vocabulary
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.data.vocabulary import Vocabulary
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams

FILE_NAME = "run.json"
MODEL_FIELDS = [
    "num_hidden_layers",
    "num_encoder_layers",
    "num_decoder_layers",
    "hidden_size",
    "filter_size",
    "num_heads",
    "attention_key_channels",
    "attention_value_channels",
    "pos",
    "shared_embedding_and_softmax_weights",
    "layer_preprocess_sequence",
    "layer_postprocess_sequence",
    "norm_epsilon",
]


@dataclass(frozen=True)
class Run:
    """The file run.json.

    Attributes:
        problem: the problem's name.
        hparams_set: name of the hparams set that hparams.json started from.
        data_dir: where the training data was.
        vocabulary: file name of the vocabulary inside output_dir.
        fingerprint: sha256 of the vocabulary.
        decode_hparams: how the problem is decoded if nobody says otherwise.
    """

    problem: str
    hparams_set: str
    data_dir: str
    vocabulary: str
    fingerprint: str
    decode_hparams: dict[str, Any]

    @classmethod
    def load(cls, output_dir: Path) -> Run:
        """Reads run.json.

        Raises:
            T2TError: there is none, or it is damaged.
        """
        path = Path(output_dir) / FILE_NAME
        if not path.exists():
            raise T2TError(
                f"no trained model in {output_dir}: train one with t2t-trainer, or give --output_dir"
            )
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise T2TError(f"{path}: damaged: {error}; start t2t-trainer again to write it anew") from error

    def save(self, output_dir: Path) -> None:
        """Writes run.json, whole or not at all."""
        text = json.dumps(dataclasses.asdict(self), indent=2) + "\n"
        write_whole(output_dir / FILE_NAME, text.encode())


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file under a temporary name, forces it to the disk and gives it its name."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def load_hparams(output_dir: Path) -> HParams:
    """The hyperparameters that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or the file is damaged.
    """
    hparams = HParams.load(Path(output_dir))
    if hparams is None:
        raise T2TError(f"no trained model in {output_dir}: there is no hparams.json")
    return hparams


def load_vocabulary(output_dir: Path) -> Vocabulary:
    """The vocabulary that the model in `output_dir` was trained with.

    Raises:
        T2TError: there is no trained model, or the vocabulary is missing, damaged or another one.
    """
    run = Run.load(output_dir)
    path = Path(output_dir) / Path(run.vocabulary).name
    vocabulary = Vocabulary(path)
    if vocabulary.fingerprint != run.fingerprint:
        raise T2TError(f"{path}: not the vocabulary that this model was trained with; copy that one here")
    return vocabulary


def open_run(output_dir: Path, run: Run, hparams: HParams, vocabulary: Path) -> None:
    """Makes `output_dir` the place of a run, or checks that it is the place of this very run.

    Args:
        output_dir: made if missing.
        run: what is to be trained.
        hparams: a run that goes on may change how it trains, but not the shape of its model.
        vocabulary: file to copy into output_dir.

    Raises:
        T2TError: output_dir cannot be written, or holds a run of another problem, vocabulary or model.
    """
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
        if (output_dir / FILE_NAME).exists():
            _check_same_run(output_dir, run, hparams)
        if not (output_dir / run.vocabulary).exists():
            temporary = output_dir / f".{run.vocabulary}.tmp"
            shutil.copyfile(vocabulary, temporary)
            temporary.replace(output_dir / run.vocabulary)
        hparams.save(output_dir)
        run.save(output_dir)
    except OSError as error:
        raise T2TError(f"cannot write to output_dir {output_dir}: {error.strerror or error}") from error


def _check_same_run(output_dir: Path, run: Run, hparams: HParams) -> None:
    found, stored = Run.load(output_dir), load_hparams(output_dir)
    for field, what in (
        ("problem", "problem"),
        ("hparams_set", "hparams set"),
        ("fingerprint", "vocabulary with fingerprint"),
    ):
        old, new = getattr(found, field), getattr(run, field)
        if old != new:
            raise T2TError(
                f"{output_dir} holds a run with {what} {old}, not {new}: "
                "give another --output_dir, or remove it"
            )
    for field in MODEL_FIELDS:
        old, new = getattr(stored, field), getattr(hparams, field)
        if old != new:
            raise T2TError(
                f"{output_dir} holds a model with {field}={old}, not {new}: give another --output_dir"
            )

"""An output_dir of tensor2tensor: how it is recognised, and what lies in it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from t2t_revival import registry
from t2t_revival.data.vocabularies import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.t2t_names import problem_here
from t2t_revival.training.run import FILE_NAME

FLAGS = "flags.txt"
T2T_HPARAM = "symbol_modality_num_shards"  # which all of its versions have
STATE = "checkpoint"  # names the newest checkpoint
FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
INDEX = re.compile(r"model\.ckpt-(\d+)\.index")


def t2t_checkpoint(path: Path) -> Path | None:
    """The checkpoint of tensor2tensor that a path names.

    Args:
        path: an output_dir, a checkpoint's prefix, or one of its files.

    Returns:
        As `t2t-import-checkpoint` takes it: the folder, or a prefix where the folder does not say which
        checkpoint is the newest; None: there is none, or the folder holds a model of this project.
    """
    if not path.is_dir():
        prefix = path.with_name(FILE_SUFFIX.sub("", path.name))
        return prefix if index_file(prefix).is_file() else None
    steps = [int(match[1]) for file in path.iterdir() if (match := INDEX.fullmatch(file.name))]
    if not steps or (path / FILE_NAME).exists():
        return None
    return path if (path / STATE).is_file() else path / f"model.ckpt-{max(steps)}"


def has_t2t_hparams(folder: Path) -> bool:
    """Whether the hparams.json in a folder is tensor2tensor's."""
    try:
        values = json.loads((folder / HPARAMS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and T2T_HPARAM in values


def index_file(prefix: Path) -> Path:
    """The file of a checkpoint that lists its variables."""
    return prefix.with_name(f"{prefix.name}.index")


def training_flags(folder: Path) -> dict[str, str]:
    """The flags of the training, from flags.txt; none where there is no file."""
    path = folder / FLAGS
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    pairs = (line.removeprefix("--").partition("=") for line in lines if line.startswith("--"))
    flags = {name: value for name, equals, value in pairs if equals}
    if "problems" in flags:  # T2T 1.4 and before
        flags.setdefault("problem", flags["problems"])
    return flags


def vocab_file(folder: Path, flags: Mapping[str, str]) -> Path:
    """The only vocabulary beside the checkpoint; else the one of T2T's problem in T2T's data_dir.

    Args:
        folder: where the checkpoint is.
        flags: of the training.

    Raises:
        T2TError: there is none, or there are several.
    """
    places = [folder]
    if data_dir := flags.get("data_dir"):
        places.append(Path(data_dir).expanduser())
    name = flags.get("problem", "").removesuffix(registry.REVERSED)
    for place in places:
        found = sorted(place.glob(f"vocab.*{SUBWORDS}"))
        own = [path for path in found if path.name.startswith(f"vocab.{name}.")]
        if len(own or found) == 1:
            return (own or found)[0]
        if found:
            names = ", ".join(path.name for path in found)
            raise T2TError(f"{place} holds several vocabularies ({names}): give one as --vocab_file")
    looked = " nor in ".join(map(str, places))
    raise T2TError(f"no vocabulary vocab.*{SUBWORDS} in {looked}: give --vocab_file, from T2T's data_dir")


def import_command(checkpoint: Path, problem: str | None, data_dir: str | None) -> tuple[Path, list[str]]:
    """The command that imports a checkpoint, and the output_dir that it makes.

    Args:
        checkpoint: what `t2t_checkpoint` gave.
        problem: the problem that was asked for, under its name here or T2T's; None: what the training says.
        data_dir: where to look for the vocabulary besides the places that the import knows.
    """
    folder = checkpoint if checkpoint.is_dir() else checkpoint.parent
    output_dir = folder.absolute().with_name(f"{folder.absolute().name}_imported")
    words = ["t2t-import-checkpoint", f"--checkpoint={checkpoint}", f"--output_dir={output_dir}"]
    flags = training_flags(folder)
    if problem and "problem" not in flags:
        words.append(f"--problem={problem_here(problem) or problem}")
    try:
        vocab_file(folder, flags)
    except T2TError:
        words.append(f"--vocab_file={_vocab_file_in(data_dir, flags)}")
    return output_dir, words


def _vocab_file_in(data_dir: str | None, flags: Mapping[str, str]) -> Path | str:
    try:
        return vocab_file(Path(data_dir or "").expanduser(), flags)
    except T2TError:
        return "T2T_DATA_DIR/vocab.PROBLEM.SIZE.subwords"

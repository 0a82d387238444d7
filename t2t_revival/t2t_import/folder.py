"""Files of a tensor2tensor output_dir."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from t2t_revival import registry
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.t2t_names import problem_here
from t2t_revival.training.run import FILE_NAME

FLAGS = "flags.txt"
T2T_HPARAM = "symbol_modality_num_shards"  # in the hparams.json of every version of T2T
STATE = "checkpoint"  # names the newest checkpoint
FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
INDEX = re.compile(r"model\.ckpt-(\d+)\.index")


def t2t_checkpoint(path: Path) -> Path | None:
    """Finds the tensor2tensor checkpoint that a path names.

    Args:
        path: an output_dir, a checkpoint's prefix, or one of its files.

    Returns:
        The argument for `t2t-import-checkpoint`: the folder, or the newest prefix where the folder has no
        `checkpoint` file. `None` where there is no checkpoint, or the folder holds a model of this project.
    """
    if not path.is_dir():
        prefix = path.with_name(FILE_SUFFIX.sub("", path.name))
        return prefix if index_file(prefix).is_file() else None
    steps = [int(match[1]) for file in path.iterdir() if (match := INDEX.fullmatch(file.name))]
    if not steps or (path / FILE_NAME).exists():
        return None
    return path if (path / STATE).is_file() else path / f"model.ckpt-{max(steps)}"


def has_t2t_hparams(folder: Path) -> bool:
    """Returns whether the hparams.json of a folder is tensor2tensor's."""
    try:
        values = json.loads((folder / HPARAMS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(values, dict) and T2T_HPARAM in values


def index_file(prefix: Path) -> Path:
    """Returns the index file of a checkpoint."""
    return prefix.with_name(f"{prefix.name}.index")


def training_flags(folder: Path) -> dict[str, str]:
    """Returns the training's flags from flags.txt, an empty dict without that file."""
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
    """Finds the vocabulary beside the checkpoint or, failing that, in the training's data_dir.

    Among several, it is the one named after T2T's problem.

    Args:
        folder: folder of the checkpoint.
        flags: of the training.

    Raises:
        T2TError: there is no vocabulary, or several.
    """
    folders = [folder]
    if data_dir := flags.get("data_dir"):
        folders.append(Path(data_dir).expanduser())
    problem = flags.get("problem", "").removesuffix(registry.REVERSED)
    for folder in folders:
        paths = sorted(folder.glob(f"vocab.*{SUBWORDS}"))
        of_problem = [path for path in paths if path.name.startswith(f"vocab.{problem}.")]
        if len(of_problem or paths) == 1:
            return (of_problem or paths)[0]
        if paths:
            names = ", ".join(path.name for path in paths)
            raise T2TError(f"{folder} holds several vocabularies ({names}): select one by --vocab_file")
    searched = " nor in ".join(map(str, folders))
    raise T2TError(f"no vocabulary vocab.*{SUBWORDS} in {searched}: give --vocab_file, from T2T's data_dir")


def import_command(checkpoint: Path, problem: str | None, data_dir: str | None) -> tuple[Path, list[str]]:
    """Returns the command that imports a checkpoint, and the output_dir that it creates.

    Args:
        checkpoint: returned by `t2t_checkpoint`.
        problem: the user's --problem, under its name here or T2T's. `None` uses the training's flags.
        data_dir: another folder to search for the vocabulary.

    Returns:
        The output_dir, and the words of the command.
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

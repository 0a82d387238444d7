"""Files of a tensor2tensor output_dir; its `hparams.json` and `flags.txt` as hparams of this project."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2t_revival import registry
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.hparams import ABOUT
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.model_folder import RUN_FILE
from t2t_revival.t2t_names import LANGUAGES, problem_here
from t2t_revival.utils import checked_json

FLAGS = "flags.txt"
T2T_HPARAM = "symbol_modality_num_shards"  # in the hparams.json of every version of T2T
STATE = "checkpoint"  # names the newest checkpoint
FILE_SUFFIX = re.compile(r"\.(index|meta|data-\d+-of-\d+)$")
INDEX = re.compile(r"model\.ckpt-(\d+)\.index")

AVERAGED = 8  # checkpoints that T2T's t2t-avg-all averages by default
RELATIVE = "dot_product_relative"  # T2T's self_attention_type for pos=relative here
LEGACY_FACTOR = 10  # T2T's learning_rate of 0.1 under the schedule "legacy" is a constant of 1 here
T2TS = [name for name, about in ABOUT.items() if about.t2t]

# Values of settings that the importer supports.
SUPPORTED: dict[str, tuple[Any, ...]] = {
    "attention_variables_3d": (False,),
    "bottom": ("{}", {}),
    "causal_decoder_self_attention": (True,),
    "factored_logits": (False,),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),  # the second is T2T's old name of the first
    "hard_attention_k": (0,),
    "input_modalities": ("default",),
    "multiply_embedding_mode": ("sqrt_depth",),
    "nbr_decoder_problems": (1,),
    "norm_type": ("layer",),
    "num_area_layers": (0,),
    "num_sampled_classes": (0,),
    "pos": ("timing", "emb", None),
    "position_features": ("",),
    "prepend_mode": ("none",),
    "proximity_bias": (False,),
    "self_attention_type": ("dot_product", RELATIVE),
    "shared_source_target_embedding": (False,),
    "split_to_length": (0,),
    "symbol_modality_skip_top": (False,),
    "target_modality": ("default",),
    "top": ("{}", {}),
    "unidirectional_encoder": (False,),
}
# Other settings that T2T 1.4 to 1.15 writes: flags of its trainer, settings of training, data, sampling and
# other models, and settings without effect beside the supported values above. "_" at the end of a name is a
# wildcard.
OTHERS = """
activation_dtype add_relative_to_values area_ attention_dropout_broadcast_dims batch_shuffle_size
clip_grad_norm compress_steps conv_first_kernel daisy_chain_variables data_dir dropout eval_
expected_attention_loss_ force_full_predict gpu_automatic_mixed_precision grad_noise_scale
gumbel_noise_weight heads_share_relative_embedding initializer initializer_gain kernel_
layer_prepostprocess_dropout_broadcast_dims learning_rate learning_rate_ loss max_area_ max_input_seq_length
max_relative_position max_target_seq_length memory_height min_length mixed_precision_ mlperf_mode model_dir
moe_ multiproblem_ name no_data_parallelism optimizer optimizer_ overload_eval_metric_name pack_dataset
pad_batch parameter_attention_ pretrained_model_dir problem_choice relu_dropout_broadcast_dims sampling_
schedule scheduled_sampling_ shared_embedding split_targets_ std_server_protocol summarize_ symbol_dropout
symbol_modality_num_shards tpu_batch_size_per_shard tpu_enable_host_call train_steps use_ video_
vocab_divisor warm_start_from warm_start_from_second weight_ weights_fn
"""
IS_OTHER = re.compile("|".join(f"{name}.*" if name.endswith("_") else name for name in OTHERS.split()))


def t2t_checkpoint(path: Path) -> Path | None:
    """Finds the tensor2tensor checkpoint of an output_dir, a checkpoint's prefix, or one of its files.

    Returns:
        The argument for `t2t-import-checkpoint`: the folder, or the newest prefix where the folder has no
        `checkpoint` file. `None` where there is no checkpoint, or the folder holds a model of this project.
    """
    if not path.is_dir():
        prefix = path.with_name(FILE_SUFFIX.sub("", path.name))
        return prefix if index_file(prefix).is_file() else None
    steps = [int(match[1]) for file in path.iterdir() if (match := INDEX.fullmatch(file.name))]
    if not steps or (path / RUN_FILE).exists():
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


def vocab_files(folder: Path, flags: Mapping[str, str]) -> list[Path]:
    """Finds the vocabularies in the checkpoint's folder or, failing that, in the training's data_dir.

    Among several, they are those named after T2T's problem: one, or two in the order of its languages, as
    `vocab.translate_enzh_wmt32k.32768.subwords.en` and `.zh`.

    Raises:
        T2TError: there is no vocabulary, or too many.
    """
    folders = [folder]
    if data_dir := flags.get("data_dir"):
        folders.append(Path(data_dir).expanduser())
    problem = flags.get("problem", "").removesuffix(registry.REVERSED)
    for folder in folders:
        paths = sorted([*folder.glob(f"vocab.*{SUBWORDS}"), *folder.glob(f"vocab.*{SUBWORDS}.??")])
        found = [path for path in paths if path.name.startswith(f"vocab.{problem}.")] or paths
        if len(found) == 1:
            return found
        if len(pair := _pair(found)) == 2:
            return pair
        if paths:
            names = ", ".join(path.name for path in paths)
            raise T2TError(f"{folder} holds several vocabularies ({names}): select one with --vocab_file")
    searched = " nor in ".join(map(str, folders))
    raise T2TError(f"no vocabulary vocab.*{SUBWORDS} in {searched}: give --vocab_file, from T2T's data_dir")


def _pair(paths: Sequence[Path]) -> list[Path]:
    """Returns the vocabularies of two languages in the order in which T2T's problem names these."""
    found = LANGUAGES.search(paths[0].name) if paths else None
    names = {path.name: path for path in paths}
    if not found or len({path.stem for path in paths}) > 1:
        return []
    return [names[name] for name in (f"{paths[0].stem}.{code}" for code in found.groups()) if name in names]


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
        vocab_files(folder, flags)
    except T2TError:
        words.append(f"--vocab_file={_vocab_file_in(data_dir, flags)}")
    return output_dir, words


def _vocab_file_in(data_dir: str | None, flags: Mapping[str, str]) -> str:
    try:
        return ",".join(map(str, vocab_files(Path(data_dir or "").expanduser(), flags)))
    except T2TError:
        return "T2T_DATA_DIR/vocab.PROBLEM.SIZE.subwords"


@dataclasses.dataclass(frozen=True)
class T2TSettings:
    """Settings of a T2T training.

    Attributes:
        path: hparams.json.
        values: content of hparams.json.
        flags: the training's flags from flags.txt, if there is one.
    """

    path: Path
    values: Mapping[str, Any]
    flags: Mapping[str, str]

    @classmethod
    def load(cls, folder: Path) -> T2TSettings:
        """Reads both files.

        Raises:
            T2TError: hparams.json is missing or corrupt, or the model is not T2T's `transformer`.
        """
        path, hint = folder / HPARAMS_FILE, "copy it from tensor2tensor's output_dir"
        try:
            values = checked_json.load(path, hint)
        except FileNotFoundError as error:
            raise T2TError(f"{path} is missing: {hint}") from error
        flags = training_flags(folder)
        if flags.get("model", "transformer") != "transformer":
            raise T2TError(f"{folder / FLAGS}: --model={flags['model']}: only `transformer` can be imported")
        return cls(path, values, flags)

    @property
    def vocab_divisor(self) -> int:
        """T2T pads the vocabulary to a multiple of this number."""
        return int(self.values.get("vocab_divisor", 1))

    def hparams(self, ignored: tuple[str, ...] = ()) -> tuple[HParams, list[str]]:
        """Returns the hparams without `ignored` settings, and a line for each that could not be imported.

        Raises:
            T2TError: settings are unknown or unsupported; the message names all of them.
        """
        values = {name: value for name, value in self.values.items() if name not in ignored}
        self._check(values)
        imported = {name: value for name, value in values.items() if name in T2TS}
        imported["use_target_space_embedding"] = values.get("use_target_space_embedding", True)
        imported["average_checkpoints"] = AVERAGED
        self._import_positions(imported)
        imported["effective_batch_size"] = 0  # T2T's batch_size is per replica and update
        notes = [*_schedule(values, imported), *_batches(imported)]
        if steps := int(self.flags.get("train_steps") or values.get("train_steps") or 0):
            imported["train_steps"] = steps
        imported["optimizer"] = HParams.optimizer
        if values.get("optimizer", "adam").lower() != "adam":
            notes.append(f"optimizer={values['optimizer']}: a resumed training uses Adam")
        return HParams.from_values(imported, str(self.path)), notes

    def _import_positions(self, imported: dict[str, Any]) -> None:
        """Sets the kind of positions, which T2T tells by two settings.

        Raises:
            T2TError: they cannot be combined here.
        """
        pos = self.values.get("pos", "timing")
        attention = self.values.get("self_attention_type", "dot_product")
        if (pos is None) != (attention == RELATIVE):
            raise T2TError(
                f"{self.path}: pos={pos!r} with self_attention_type={attention!r}: not supported; "
                f"relative positions are pos=None with self_attention_type={RELATIVE!r}"
            )
        if pos is None:
            imported["pos"] = "relative"
        else:
            imported.pop("max_relative_position", None)

    def _check(self, theirs: Mapping[str, Any]) -> None:
        wrong = [
            f"{name}={value!r}"
            for name, value in sorted(theirs.items())
            if (name in SUPPORTED and value not in SUPPORTED[name])
            or not (name in T2TS or name in SUPPORTED or IS_OTHER.fullmatch(name))
        ]
        if wrong:
            raise T2TError(
                f"{self.path}: {', '.join(wrong)}: not supported, or unknown to tensor2tensor 1.4 to 1.15; "
                "give --ignored_hparams=NAME,... if the model does not depend on it"
            )


def _schedule(theirs: Mapping[str, Any], imported: dict[str, Any]) -> list[str]:
    """Sets the learning rate schedule in `imported`, and returns notes."""
    schedule = theirs.get("learning_rate_schedule", "legacy")
    if schedule == "legacy" and theirs.get("learning_rate_decay_scheme", "noam") == "noam":
        imported["learning_rate_schedule"] = "constant*legacy"
        imported["learning_rate_constant"] = LEGACY_FACTOR * theirs.get("learning_rate", 0.1)
        return []
    known = registry.list_schedule_factors()
    if schedule != "legacy" and all(factor.strip() in known for factor in schedule.split("*")):
        return []
    imported.pop("learning_rate_schedule", None)
    return [f"learning_rate_schedule={schedule}: unknown here: a resumed training uses the paper's"]


def _batches(imported: dict[str, Any]) -> list[str]:
    """Sets valid batch sizes in `imported`, and returns notes."""
    defaults = HParams()
    if imported.get("max_length") == 0:  # T2T: no limit but batch_size
        imported["max_length"] = defaults.max_length
    batch_size = imported.get("batch_size", defaults.batch_size)
    if batch_size >= imported.get("max_length", defaults.max_length):
        return []
    imported["batch_size"] = max(defaults.batch_size, imported["max_length"])
    return [f"batch_size={batch_size} is not a number of tokens: {imported['batch_size']} is used"]

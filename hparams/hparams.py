"""`HParams`: every hyperparameter with its type, unit and source, and the override grammar.

The comment behind a field and the one above its group go to `--registry_help` (see `field_comments`).
Field names are T2T's; the defaults are the paper's base model (section 3, table 3, section 5).
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival import registry
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.utils import checked_json
from t2t_revival.utils.texts import shown

FILE_NAME = "hparams.json"
POSITIONS = ("sinusoid", "timing", "emb")
DECODER_SELF_ATTENTIONS = ("attention", "ssru")
SUBWORD_DROPOUT_SIDES = ("both", "source", "target")
EQUATION_3 = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
ARCHITECTURE = (
    *("encoder_layers", "decoder_layers", "hidden_size", "filter_size", "num_heads", "key_channels"),
    *("value_channels", "attention_window", "decoder_self_attention", "pos", "use_target_space_embedding"),
    *("shared_embedding_and_softmax_weights", "pre_norm", "deterministic_attention"),
    "reverse_target",
)
LAYER_SEQUENCES = {("none", "dan"): "post-norm", ("n", "da"): "pre-norm"}


@dataclass(frozen=True)
class HParams:
    """Hyperparameters of model, loss, schedule, batches and training length. Immutable and typed."""

    # Model (section 3)
    num_hidden_layers: int = 6  # N, layers of the encoder and of the decoder
    num_encoder_layers: int = 0  # layers of the encoder; 0 means num_hidden_layers
    num_decoder_layers: int = 0  # layers of the decoder; 0 means num_hidden_layers
    hidden_size: int = 512  # d_model, channels of embeddings and sub-layer outputs (3.1)
    filter_size: int = 2048  # d_ff, channels of the inner layer (3.3)
    num_heads: int = 8  # h, heads of each attention (3.2.2)
    attention_key_channels: int = 0  # h * d_k, channels of all heads; 0 means hidden_size
    attention_value_channels: int = 0  # h * d_v, channels of all heads; 0 means hidden_size
    attention_window: int = 0  # r (4), tokens that self-attention sees; 0 means all
    decoder_self_attention: str = "attention"  # "attention" (3.2.3) or "ssru" (recurrent, Kim et al., 2019)
    pos: str = "sinusoid"  # positions (3.5): "sinusoid" (paper), "timing" (T2T) or "emb" (learned)
    use_target_space_embedding: bool = False  # adds a learned vector to each source position (T2T)
    deterministic_attention: bool = False  # a parser's decoder attends to the next word (6.3, ours)
    shared_embedding_and_softmax_weights: bool = True  # one matrix for embeddings and softmax (3.4)
    layer_preprocess_sequence: str = "none"  # before a sub-layer: "n" norm (T2T v2, v3) or "none" (paper)
    layer_postprocess_sequence: str = "dan"  # after it: d dropout, a add, n norm; "dan" in the paper (3.1)
    norm_epsilon: float = 1e-6  # added to the variance in layer normalisation (3.1)

    # Regularisation (section 5.4)
    layer_prepostprocess_dropout: float = 0.1  # P_drop, probability, on sub-layer outputs and embeddings
    attention_dropout: float = 0.0  # probability, on attention weights (T2T v2, v3)
    relu_dropout: float = 0.0  # probability, in the feed-forward network (T2T v2, v3)
    label_smoothing: float = 0.1  # epsilon_ls, probability spread over all wrong tokens
    subword_dropout: float = 0.0  # probability that a merge of a token is undone in training (BPE-dropout)
    subword_dropout_side: str = "both"  # sides in which merges are undone: "source", "target" or "both"
    reverse_target: bool = False  # the decoder reads and writes targets from the last token to the first
    guided_alignment_weight: float = 0.0  # of the loss of a head that learns word alignments; 0: none

    # Optimizer and learning rate (section 5.3)
    optimizer_adam_beta1: float = 0.9  # decay per update of Adam's mean of gradients
    optimizer_adam_beta2: float = 0.98  # decay per update of Adam's mean of squared gradients
    optimizer_adam_epsilon: float = 1e-9  # added to the divisor of Adam's update
    learning_rate_schedule: str = EQUATION_3  # product of factors (--registry_help lists them); eq. (3)
    learning_rate_constant: float = 1.0  # the factor "constant" of the schedule
    learning_rate_warmup_steps: int = 4000  # updates until the rate decays
    learning_rate_decay_steps: int = 5000  # updates; for linear_decay, exp_decay and the cosine decays
    learning_rate_decay_rate: float = 1.0  # for exp_decay: factor per learning_rate_decay_steps (T2T)
    learning_rate_decay_staircase: bool = False  # for exp_decay: decay in steps, not continuously (T2T)
    ema_decay: float = 0.0  # decay per update of the weights' moving average, which is used then; 0: none
    freeze: str = ""  # regular expression: weights whose paths have a match stay as they are
    lora_rank: int = 0  # rank of low-rank adapters, which alone are trained then; 0: none

    # Batches (section 5.1)
    batch_size: int = 4096  # tokens per replica, padding included, over the longer of source and target
    effective_batch_size: int = 25000  # tokens per update of all replicas; 0 means batch_size x replicas
    max_length: int = 256  # tokens; longer training examples are dropped, longer inputs truncated
    min_length_bucket: int = 8  # tokens; upper bound of the shortest bucket
    length_bucket_step: float = 1.1  # ratio of successive buckets' upper bounds

    # Length of the training (section 5.2) and what follows it (section 6.1)
    train_steps: int = 100_000  # updates
    average_checkpoints: int = 5  # number of last checkpoints to average

    def __post_init__(self) -> None:
        for fault in type_faults(self) or _range_faults(self) or _combination_faults(self):
            raise T2TError(f"hparams: {fault}")

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder."""
        return self.num_encoder_layers or self.num_hidden_layers

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""
        return self.num_decoder_layers or self.num_hidden_layers

    @property
    def key_channels(self) -> int:
        """Channels of queries and keys of all heads: h * d_k."""
        return self.attention_key_channels or self.hidden_size

    @property
    def value_channels(self) -> int:
        """Channels of values of all heads: h * d_v."""
        return self.attention_value_channels or self.hidden_size

    @property
    def guided_head(self) -> tuple[int, int]:
        """Layer and head that `guided_alignment_weight` teaches, from 0: in the last layer but one."""
        return max(self.decoder_layers - 2, 0), 0

    @property
    def pre_norm(self) -> bool:
        """True for normalisation before a sub-layer (T2T v2, v3) instead of after it (paper)."""
        sequences = (self.layer_preprocess_sequence, self.layer_postprocess_sequence)
        return LAYER_SEQUENCES[sequences] == "pre-norm"

    def architecture(self) -> dict[str, Any]:
        """Returns the settings that determine a model's weights and outputs, not its training."""
        names = [*ARCHITECTURE, "max_length"] if self.pos == "emb" else ARCHITECTURE
        return {name: getattr(self, name) for name in names}

    def replace(self, **changes: Any) -> HParams:
        """Returns a copy with some fields changed.

        Raises:
            T2TError: there is no such field (names similar ones), or a value is invalid.
        """
        known = [field.name for field in dataclasses.fields(self)]
        if unknown := [name for name in changes if name not in known]:
            raise T2TError(did_you_mean(unknown[0], known, "hparam"))
        return dataclasses.replace(self, **changes)

    def override(self, text: str) -> HParams:
        """Returns a copy with overrides such as "batch_size=2048,num_heads=4" (T2T's `--hparams`).

        Factors of the learning rate are checked here, before a training, but not when the hyperparameters of
        a trained model are loaded: decoding does not need a user's own factor.

        Raises:
            T2TError: a name is unknown (names similar ones) or repeated, a value has the wrong type, or a
                factor of `learning_rate_schedule` is not registered.
        """
        changed = self.replace(**parse_overrides(text, {f.name: f.type for f in dataclasses.fields(self)}))
        registry.schedule_factors(changed.learning_rate_schedule)
        return changed

    def to_json(self) -> str:
        """Returns all fields as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = FILE_NAME) -> HParams:
        """Parses JSON as written by `to_json`; missing fields have their defaults.

        Raises:
            T2TError: `text` is not a JSON object, or a field is unknown or of the wrong type; names `where`.
        """
        try:
            values = json.loads(text)
        except ValueError as error:
            raise T2TError(f"{where}: not JSON: {error}") from error
        if not isinstance(values, dict):
            raise T2TError(f"{where}: not a JSON object")
        return cls._from_values(values, where)

    @classmethod
    def _from_values(cls, values: dict[str, Any], where: str) -> HParams:
        types = {f.name: f.type for f in dataclasses.fields(cls)}
        for name, value in values.items():
            if name not in types:
                raise T2TError(f"{where}: {did_you_mean(name, types, 'hparam')}")
            if not _is_of_type(value, str(types[name])):
                raise T2TError(f"{where}: {name}={value!r} is not of type {types[name]}")
        try:
            return cls(**values)
        except T2TError as error:
            raise T2TError(f"{where}: {error}") from error

    def save(self, folder: Path) -> None:
        """Writes `folder/hparams.json` atomically."""
        folder.mkdir(parents=True, exist_ok=True)
        checked_json.save(folder / FILE_NAME, dataclasses.asdict(self))

    @classmethod
    def load(cls, folder: Path) -> HParams | None:
        """Reads the file that `save` wrote; returns `None` if it is missing.

        Raises:
            T2TError: the file is corrupt.
        """
        path = folder / FILE_NAME
        if not path.exists():
            return None
        return cls._from_values(checked_json.load(path, "put a copy of it back"), str(path))


def parse_overrides(text: str, types: dict[str, Any]) -> dict[str, Any]:
    """Parses "name=value,name=value"; `types` has that of each known name: "int", "float", "bool" or "str".

    Raises:
        T2TError: `text` is no string, a name is unknown (names similar ones) or repeated, or a value has the
            wrong type.
    """
    if not isinstance(text, str):
        raise T2TError(f"{shown(text)} is not a string of settings, such as 'name=value,name=value'")
    values: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise T2TError(f"override {item!r}: expected name=value")
        if name not in types:
            raise T2TError(did_you_mean(name, types, "hparam"))
        if name in values:
            raise T2TError(f"hparam {name!r} is given twice")
        values[name] = _parse_value(name, value, str(types[name]))
    return values


def _parse_value(name: str, value: str, kind: str) -> Any:
    truth = {"true": True, "1": True, "false": False, "0": False}
    try:
        if kind == "bool":
            return truth[value.lower()]
        return {"int": int, "float": float, "str": str}[kind](value)
    except (ValueError, KeyError) as error:
        raise T2TError(f"hparam {name}={value!r}: expected a value of type {kind}") from error


def type_faults(settings: Any) -> list[str]:
    """Describes values of a dataclass that are not of the type of their field."""
    fields = dataclasses.fields(settings)
    values = ((f.name, getattr(settings, f.name), getattr(f.type, "__name__", str(f.type))) for f in fields)
    return [
        f"{name}={shown(value)} is not of type {kind}"
        for name, value, kind in values
        if not _is_of_type(value, kind)
    ]


def _is_of_type(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    if kind == "float":
        return isinstance(value, (int, float))
    return type(value).__name__ == kind


RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (  # all false for NaN
    (
        "at least 1",
        lambda value: value >= 1,
        "num_hidden_layers hidden_size filter_size num_heads learning_rate_warmup_steps "
        "learning_rate_decay_steps batch_size max_length min_length_bucket train_steps average_checkpoints",
    ),
    (
        "at least 0",
        lambda value: value >= 0,
        "num_encoder_layers num_decoder_layers attention_key_channels attention_value_channels "
        "attention_window effective_batch_size lora_rank",
    ),
    (
        "above 0",
        lambda value: 0 < value < math.inf,
        "norm_epsilon optimizer_adam_epsilon learning_rate_constant learning_rate_decay_rate",
    ),
    (
        "at least 0 and below 1",
        lambda value: 0 <= value < 1,
        "layer_prepostprocess_dropout attention_dropout relu_dropout label_smoothing optimizer_adam_beta1 "
        "optimizer_adam_beta2 ema_decay subword_dropout",
    ),
    ("above 1", lambda value: 1 < value < math.inf, "length_bucket_step"),
)


def _range_faults(h: HParams) -> list[str]:
    """Describes numbers outside of their ranges."""
    return [
        f"{name}={getattr(h, name)} must be {description}"
        for description, is_valid, names in RANGES
        for name in names.split()
        if not is_valid(getattr(h, name))
    ]


def _combination_faults(h: HParams) -> list[str]:
    """Describes combinations of values that cannot be built or trained."""
    channels = {"attention_key_channels": h.key_channels, "attention_value_channels": h.value_channels}
    faults = [
        f"{name}={size} is not divisible by num_heads={h.num_heads}"
        for name, size in channels.items()
        if size % h.num_heads
    ]
    try:
        re.compile(h.freeze)
    except re.error as error:
        faults.append(f"freeze={h.freeze!r} is not a regular expression: {error}")
    if h.pos not in POSITIONS:
        faults.append(f"pos={h.pos!r} is not one of {', '.join(POSITIONS)}")
    if h.decoder_self_attention not in DECODER_SELF_ATTENTIONS:
        known = ", ".join(DECODER_SELF_ATTENTIONS)
        faults.append(f"decoder_self_attention={h.decoder_self_attention!r} is not one of {known}")
    if h.decoder_self_attention == "ssru" and h.attention_window:
        faults.append(
            f"attention_window={h.attention_window} and decoder_self_attention=ssru cannot be combined: "
            "such a decoder has no attention to restrict; leave one out"
        )
    if h.guided_alignment_weight:
        for name, given in (
            ("subword_dropout", h.subword_dropout),
            ("decoder_self_attention=ssru", h.decoder_self_attention != "attention"),
            ("reverse_target", h.reverse_target),
        ):
            if given:
                faults.append(f"guided_alignment_weight cannot be combined with {name}: leave one out")
    if h.reverse_target and h.deterministic_attention:
        faults.append("deterministic_attention reads words in their order: leave out reverse_target")
    if h.subword_dropout_side not in SUBWORD_DROPOUT_SIDES:
        known = ", ".join(SUBWORD_DROPOUT_SIDES)
        faults.append(f"subword_dropout_side={h.subword_dropout_side!r} is not one of {known}")
    elif h.subword_dropout_side != "both" and not h.subword_dropout:
        faults.append(
            f"subword_dropout_side={h.subword_dropout_side} has no effect without subword_dropout: "
            "leave it out, or give a probability such as subword_dropout=0.1"
        )
    if h.pos != "emb" and h.hidden_size % 2:
        faults.append(f"hidden_size={h.hidden_size} must be even for pos={h.pos}")
    sequences = (h.layer_preprocess_sequence, h.layer_postprocess_sequence)
    if sequences not in LAYER_SEQUENCES:
        known = " or ".join(f"{a}/{b} ({name})" for (a, b), name in LAYER_SEQUENCES.items())
        faults.append(f"layer_preprocess_sequence/layer_postprocess_sequence must be {known}")
    if "single_cycle" in h.learning_rate_schedule and h.train_steps <= h.learning_rate_warmup_steps:
        faults.append(
            f"train_steps={h.train_steps} must be more than learning_rate_warmup_steps="
            f"{h.learning_rate_warmup_steps} for single_cycle_cos_decay"
        )
    if h.batch_size < h.max_length:
        faults.append(f"batch_size={h.batch_size} tokens must be at least max_length={h.max_length}")
    return faults

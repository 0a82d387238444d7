"""`HParams`: every hyperparameter with its type, unit and source, and the override grammar.

A field has its meaning, range and choices with it (see `About`): a new hparam is one field.
Field names are T2T's; the defaults are the paper's base model (section 3, table 3, section 5).
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import ge, gt, lt
from pathlib import Path
from typing import Any, TypeVar

from t2t_revival import registration
from t2t_revival.errors import T2TError, at, did_you_mean
from t2t_revival.hparams.variants import (
    FEED_FORWARDS,
    NORMS,
    POSITIONS,
    SELF_ATTENTIONS,
    VARIANTS,
    Variant,
    described,
    variant_of,
)
from t2t_revival.utils import checked_json
from t2t_revival.utils.texts import shown

FILE_NAME = "hparams.json"
T = TypeVar("T")
OF_LENGTH = ("train_steps", "learning_rate_warmup_steps", "learning_rate_decay_steps")
WARMUP_SHARE = 0.2  # of the updates, the longest warm-up before these where the number follows from a time
EQUATION_3 = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
TRUTH = {"true": True, "1": True, "false": False, "0": False}
PARSERS: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: TRUTH[text.lower()],
    "int": int,
    "float": float,
    "str": str,
}
REMOVED = {"reverse_target": False}  # hparams of earlier versions, with the value that models still may have
LAYER_SEQUENCES = {("none", "dan"): "post-norm", ("n", "da"): "pre-norm"}


@dataclass(frozen=True)
class About:
    """All that is known of an hparam besides its name, type and default.

    Attributes:
        meaning: unit and source, for `--registry_help` and the docs.
        least: smallest valid number; `None` here and below sets no bound.
        above: largest number that is too small.
        below: smallest number that is too large.
        choices: all values of a text; empty allows any.
        model: whether a model is another one by it, and not only its training; a text names the property that
            `architecture` has in its place.
        t2t: whether T2T's hparams have it.
        group: title of the group of hparams that it begins.
    """

    meaning: str
    least: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[str, ...] = ()
    model: bool | str = False
    t2t: bool = False
    group: str = ""

    def fault(self, value: Any) -> str:
        """Describes what is wrong with a value of the hparam's type; "" if it is valid."""
        bounds = (("at least", ge, self.least), ("above", gt, self.above), ("below", lt, self.below))
        given = [(word, holds, bound) for word, holds, bound in bounds if bound is not None]
        if given and not (value < math.inf and all(holds(value, bound) for _, holds, bound in given)):
            return f"={value} must be {' and '.join(f'{word} {bound}' for word, _, bound in given)}"
        if self.choices and value not in self.choices:
            return f"={value!r} is not one of {', '.join(self.choices)}"
        return ""


def hparam(default: T, meaning: str, **details: Any) -> T:
    """Returns a field of `HParams`; `details` are those of `About`."""
    return dataclasses.field(default=default, metadata={"about": About(meaning, **details)})


def variant(default: str, of: str, rows: Mapping[str, Variant], **details: Any) -> str:
    """Returns a field whose values are rows of a table of `variants`; `of` begins its meaning."""
    return hparam(default, of + described(rows), choices=tuple(rows), model=True, **details)


@dataclass(frozen=True)
class HParams:
    """Hyperparameters of model, loss, schedule, batches and training length. Immutable and typed."""

    num_hidden_layers: int = hparam(
        6, "N, layers of the encoder and of the decoder", least=1, t2t=True, group="Model (section 3)"
    )
    num_encoder_layers: int = hparam(
        0, "layers of the encoder; 0 means num_hidden_layers", least=0, model="encoder_layers", t2t=True
    )
    num_decoder_layers: int = hparam(
        0, "layers of the decoder; 0 means num_hidden_layers", least=0, model="decoder_layers", t2t=True
    )
    hidden_size: int = hparam(
        512, "d_model, channels of embeddings and sub-layer outputs (3.1)", least=1, model=True, t2t=True
    )
    filter_size: int = hparam(2048, "d_ff, channels of the inner layer (3.3)", least=1, model=True, t2t=True)
    decoder_filter_size: int = hparam(0, "d_ff of the decoder; 0 means filter_size", least=0, model=True)
    num_heads: int = hparam(8, "h, heads of each attention (3.2.2)", least=1, model=True, t2t=True)
    attention_key_channels: int = hparam(
        0, "h * d_k, channels of all heads; 0 means hidden_size", least=0, model="key_channels", t2t=True
    )
    attention_value_channels: int = hparam(
        0, "h * d_v, channels of all heads; 0 means hidden_size", least=0, model="value_channels", t2t=True
    )
    attention_window: int = hparam(
        0, "r (4), tokens that self-attention sees; 0 means all", least=0, model=True
    )
    decoder_self_attention: str = variant("attention", "", SELF_ATTENTIONS)
    pos: str = variant("sinusoid", "positions (3.5): ", POSITIONS, t2t=True)
    max_relative_position: int = hparam(
        20, "tokens; relative positions of this distance and more are alike (T2T)", least=1, t2t=True
    )
    ffn_activation: str = variant("relu", "of the inner layer (3.3): ", FEED_FORWARDS)
    norm_type: str = variant("layer", "normalisation: ", NORMS, t2t=True)
    projection_bias: bool = hparam(False, "adds biases to the projections of attention (3.2.2)", model=True)
    softmax_bias: bool = hparam(False, "adds a bias to the logits (3.4)", model=True)
    use_target_space_embedding: bool = hparam(
        False, "adds a learned vector to each source position (T2T)", model=True, t2t=True
    )
    deterministic_attention: bool = hparam(
        False, "a parser's decoder attends to the next word (6.3, ours)", model=True
    )
    shared_embedding_and_softmax_weights: bool = hparam(
        True, "one matrix for embeddings and softmax (3.4)", model=True, t2t=True
    )
    layer_preprocess_sequence: str = hparam(
        "none", 'before a sub-layer: "n" norm (T2T v2, v3) or "none" (paper)', model="pre_norm", t2t=True
    )
    layer_postprocess_sequence: str = hparam(
        "dan", 'after it: d dropout, a add, n norm; "dan" in the paper (3.1)', t2t=True
    )
    norm_epsilon: float = hparam(1e-6, "added to the variance in norms (3.1)", above=0, model=True, t2t=True)
    start_token: int = hparam(
        0, "whose vector outputs start with: 0 (T2T) or EOS, 1 (fairseq)", least=0, below=2, model=True
    )

    layer_prepostprocess_dropout: float = hparam(
        0.1,
        "P_drop, probability, on sub-layer outputs and embeddings",
        least=0,
        below=1,
        t2t=True,
        group="Regularisation (section 5.4)",
    )
    attention_dropout: float = hparam(
        0.0, "probability, on attention weights (T2T v2, v3)", least=0, below=1, t2t=True
    )
    relu_dropout: float = hparam(
        0.0, "probability, in the feed-forward network (T2T v2, v3)", least=0, below=1, t2t=True
    )
    label_smoothing: float = hparam(
        0.1, "epsilon_ls, probability spread over all wrong tokens", least=0, below=1, t2t=True
    )
    subword_dropout: float = hparam(
        0.0, "probability that a merge of a token is undone in training (BPE-dropout)", least=0, below=1
    )
    subword_dropout_side: str = hparam(
        "both",
        'sides in which merges are undone: "source", "target" or "both"',
        choices=("both", "source", "target"),
    )
    guided_alignment_weight: float = hparam(0.0, "of the loss of a head that learns word alignments; 0: none")

    optimizer: str = hparam(
        "adam",
        "its name (--registry_help lists them)",
        t2t=True,
        group="Optimizer and learning rate (section 5.3)",
    )
    optimizer_adam_beta1: float = hparam(
        0.9, "decay per update of Adam's mean of gradients", least=0, below=1, t2t=True
    )
    optimizer_adam_beta2: float = hparam(
        0.98, "decay per update of Adam's mean of squared gradients", least=0, below=1, t2t=True
    )
    optimizer_adam_epsilon: float = hparam(1e-9, "added to the divisor of Adam's update", above=0, t2t=True)
    learning_rate_schedule: str = hparam(
        EQUATION_3, "product of factors (--registry_help lists them); eq. (3)", t2t=True
    )
    learning_rate_constant: float = hparam(1.0, 'the factor "constant" of the schedule', above=0, t2t=True)
    learning_rate_warmup_steps: int = hparam(4000, "updates until the rate decays", least=1, t2t=True)
    learning_rate_decay_steps: int = hparam(
        5000, "updates; for linear_decay, exp_decay and the cosine decays", least=1, t2t=True
    )
    learning_rate_decay_rate: float = hparam(
        1.0, "for exp_decay: factor per learning_rate_decay_steps (T2T)", above=0, t2t=True
    )
    learning_rate_decay_staircase: bool = hparam(
        False, "for exp_decay: decay in steps, not continuously (T2T)", t2t=True
    )
    ema_decay: float = hparam(
        0.0, "decay per update of the weights' moving average, which is used then; 0: none", least=0, below=1
    )
    freeze: str = hparam("", "regular expression: weights whose paths have a match stay as they are")
    lora_rank: int = hparam(0, "rank of low-rank adapters, which alone are trained then; 0: none", least=0)

    batch_size: int = hparam(
        4096,
        "tokens per replica, padding included, over the longer of source and target",
        least=1,
        t2t=True,
        group="Batches (section 5.1)",
    )
    effective_batch_size: int = hparam(
        25000, "tokens per update of all replicas; 0 means batch_size x replicas", least=0
    )
    max_length: int = hparam(
        256, "tokens; longer training examples are dropped, longer inputs truncated", least=1, t2t=True
    )
    min_length_bucket: int = hparam(8, "tokens; upper bound of the shortest bucket", least=1, t2t=True)
    length_bucket_step: float = hparam(1.1, "ratio of successive buckets' upper bounds", above=1, t2t=True)

    train_steps: int = hparam(
        100_000,
        "updates",
        least=1,
        group="Length of the training (section 5.2) and what follows it (section 6.1)",
    )
    average_checkpoints: int = hparam(5, "number of last checkpoints to average", least=1)

    def __post_init__(self) -> None:
        values = ((name, about.fault(getattr(self, name))) for name, about in ABOUT.items())
        faults = type_faults(self) or [name + fault for name, fault in values if fault]
        for fault in faults or _combination_faults(self):
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
    def decoder_channels(self) -> int:
        """Channels of the decoder's inner layer: its d_ff."""
        return self.decoder_filter_size or self.filter_size

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
        known = [(name, about.model) for name, about in ABOUT.items() if about.model]
        names = [name if shown is True else shown for name, shown in known] + self._settings_of_variants()
        return {name: getattr(self, name) for name in names}

    def _settings_of_variants(self) -> list[str]:
        """Returns the hparams that the model is of by what stands in the place of the paper's parts."""
        rows = [variant_of(name, getattr(self, name)) for name, about in ABOUT.items() if about.model]
        return [setting for row in rows if row for setting in row.settings]

    def not_held_by(self, holder: str) -> dict[str, Any]:
        """Returns the settings of the model that a holder of `variants` lacks.

        One without rows must have its default, that of models that were trained before there was such a one.
        """
        lacking = {}
        for field in (field for field in dataclasses.fields(self) if field.metadata["about"].model):
            name, value = field.name, getattr(self, field.name)
            row = variant_of(name, value)
            if not (holder in row.held_by if row else name not in VARIANTS and value == field.default):
                lacking[name] = value
        return lacking

    def with_model_of(self, other: HParams) -> HParams:
        """Returns a copy with those settings of another set that determine its model.

        Raises:
            T2TError: as `replace`.
        """
        names = ["num_hidden_layers", "layer_postprocess_sequence"]
        names += other._settings_of_variants()
        names += [name for name, about in ABOUT.items() if about.model]
        return self.replace(**{name: getattr(other, name) for name in names})

    def replace(self, **changes: Any) -> HParams:
        """Returns a copy with some fields changed.

        Raises:
            T2TError: there is no such field (names similar ones), or a value is invalid.
        """
        known = [field.name for field in dataclasses.fields(self)]
        if unknown := [name for name in changes if name not in known]:
            raise T2TError(did_you_mean(unknown[0], known, "hparam"))
        return dataclasses.replace(self, **changes)

    def of_length(self, steps: int, falls: bool) -> HParams:
        """Returns a copy for a training of so many updates; `falls`: to a learning rate of 0 in these."""
        if not falls:
            return self.replace(train_steps=steps)
        warmup = min(self.learning_rate_warmup_steps, max(1, int(WARMUP_SHARE * steps)))
        decay = min(self.learning_rate_decay_steps, max(1, steps - warmup))
        return self.replace(**dict(zip(OF_LENGTH, (steps, warmup, decay), strict=True)))

    def override(self, text: str) -> HParams:
        """Returns a copy with overrides such as "batch_size=2048,num_heads=4" (T2T's `--hparams`).

        Optimizer and factors of the learning rate are checked here, before a training, but not when the
        hyperparameters of a trained model are loaded: decoding does not need a user's own.

        Raises:
            T2TError: a name is unknown (names similar ones) or repeated, a value has the wrong type, or a
                factor of `learning_rate_schedule` or the `optimizer` is not registered.
        """
        changed = self.replace(**parse_overrides(text, {f.name: f.type for f in dataclasses.fields(self)}))
        registration.schedule_factors(changed.learning_rate_schedule)
        registration.optimizer(changed.optimizer)
        return changed

    @classmethod
    def from_values(cls, fields: dict[str, Any], where: str) -> HParams:
        """Checks values of fields; missing ones have their defaults.

        Raises:
            T2TError: a field is unknown or of the wrong type; names `where`.
        """
        with at(where):
            for name, kept in REMOVED.items():
                if fields.get(name, kept) != kept:
                    raise T2TError(f"{name}={fields[name]} is of an earlier version, and not supported now")
            return cls().replace(**{name: value for name, value in fields.items() if name not in REMOVED})

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
        return cls.from_values(checked_json.load(path, "put a copy of it back"), str(path))


ABOUT: dict[str, About] = {field.name: field.metadata["about"] for field in dataclasses.fields(HParams)}


def meanings() -> dict[str, dict[str, str]]:
    """Returns the meaning of each hparam by the title of its group and its name, in their order."""
    groups: dict[str, dict[str, str]] = {}
    title = ""
    for name, about in ABOUT.items():
        title = about.group or title
        groups.setdefault(title, {})[name] = about.meaning
    return groups


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
        kind = str(types[name])
        try:
            values[name] = PARSERS[kind](value)
        except (ValueError, KeyError) as error:
            raise T2TError(f"hparam {name}={value!r}: expected a value of type {kind}") from error
    return values


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
    if h.decoder_self_attention == "ssru" and h.attention_window:
        faults.append(
            f"attention_window={h.attention_window} and decoder_self_attention=ssru cannot be combined: "
            "such a decoder has no attention to restrict; leave one out"
        )
    if h.guided_alignment_weight:
        for name, given in (
            ("subword_dropout", h.subword_dropout),
            ("decoder_self_attention=ssru", h.decoder_self_attention != "attention"),
        ):
            if given:
                faults.append(f"guided_alignment_weight cannot be combined with {name}: leave one out")
    if h.subword_dropout_side != "both" and not h.subword_dropout:
        faults.append(
            f"subword_dropout_side={h.subword_dropout_side} has no effect without subword_dropout: "
            "leave it out, or give a probability such as subword_dropout=0.1"
        )
    if not (POSITIONS[h.pos].made_by or POSITIONS[h.pos].settings) and h.hidden_size % 2:
        faults.append(f"hidden_size={h.hidden_size} must be even for pos={h.pos}")
    if h.pos == "rotary" and h.key_channels // h.num_heads % 2:
        faults.append(
            f"pos=rotary needs heads of an even size, not {h.key_channels} / {h.num_heads} channels"
        )
    if POSITIONS[h.pos].made_by and h.attention_window:
        faults.append(f"attention_window cannot be combined with pos={h.pos}: leave one out")
    sequences = (h.layer_preprocess_sequence, h.layer_postprocess_sequence)
    if sequences not in LAYER_SEQUENCES:
        known = " or ".join(f"{a}/{b} ({name})" for (a, b), name in LAYER_SEQUENCES.items())
        faults.append(f"layer_preprocess_sequence/layer_postprocess_sequence must be {known}")
    if "single_cycle" in h.learning_rate_schedule and h.train_steps < h.learning_rate_warmup_steps:
        faults.append(
            f"train_steps={h.train_steps} must be at least learning_rate_warmup_steps="
            f"{h.learning_rate_warmup_steps} for single_cycle_cos_decay"
        )
    if h.batch_size < h.max_length:
        faults.append(f"batch_size={h.batch_size} tokens must be at least max_length={h.max_length}")
    return faults

"""The factors of `learning_rate_schedule` that are built in: all of T2T's, under its names.

Each takes the number of the update, float32 and counted from 1, and the hyperparameters. Each imports Keras
when it is called, so that names can be checked without the second or more that this takes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from t2t_revival.registration import register_schedule_factor

if TYPE_CHECKING:
    from t2t_revival.hparams.hparams import HParams


@register_schedule_factor
def constant(step: Any, h: HParams) -> Any:
    """learning_rate_constant at every step."""
    return h.learning_rate_constant


@register_schedule_factor
def linear_warmup(step: Any, h: HParams) -> Any:
    """Rises linearly from 0 to 1 over the warm-up."""
    from keras import ops

    return ops.minimum(1.0, step / h.learning_rate_warmup_steps)


@register_schedule_factor
def linear_decay(step: Any, h: HParams) -> Any:
    """1, then falls linearly to 0 over the last learning_rate_decay_steps of train_steps."""
    from keras import ops

    return ops.clip((h.train_steps - step) / h.learning_rate_decay_steps, 0.0, 1.0)


@register_schedule_factor
def cosdecay(step: Any, h: HParams) -> Any:
    """1 during the warm-up, then half a cosine that began at step 0 and is 0 at learning_rate_decay_steps."""
    from keras import ops

    return ops.where(
        step <= h.learning_rate_warmup_steps, 1.0, _half_cosine(step / h.learning_rate_decay_steps)
    )


@register_schedule_factor
def single_cycle_cos_decay(step: Any, h: HParams) -> Any:
    """1 during the warm-up, then half a cosine from 1 to 0 at train_steps."""
    return _half_cosine(_after_warmup(step, h) / max(1, h.train_steps - h.learning_rate_warmup_steps))


@register_schedule_factor
def multi_cycle_cos_decay(step: Any, h: HParams) -> Any:
    """1 during the warm-up, then a cosine: to 0 in learning_rate_decay_steps, back in as many, and so on."""
    return _half_cosine(_after_warmup(step, h) / h.learning_rate_decay_steps)


@register_schedule_factor
def exp_decay(step: Any, h: HParams) -> Any:
    """1 during the warm-up, then times learning_rate_decay_rate in every learning_rate_decay_steps."""
    from keras import ops

    periods = _after_warmup(step, h) / h.learning_rate_decay_steps
    if h.learning_rate_decay_staircase:
        periods = ops.floor(periods)
    return ops.power(h.learning_rate_decay_rate, periods)


@register_schedule_factor
def rsqrt_decay(step: Any, h: HParams) -> Any:
    """1 / sqrt(step); during the warm-up, the value at its end."""
    from keras import ops

    return ops.rsqrt(ops.maximum(step, float(h.learning_rate_warmup_steps)))


@register_schedule_factor
def rsqrt_normalized_decay(step: Any, h: HParams) -> Any:
    """1 during the warm-up, then sqrt(learning_rate_warmup_steps / step)."""
    return h.learning_rate_warmup_steps**0.5 * rsqrt_decay(step, h)


@register_schedule_factor
def rsqrt_hidden_size(step: Any, h: HParams) -> Any:
    """1 / sqrt(hidden_size) at every step."""
    return h.hidden_size**-0.5


@register_schedule_factor
def legacy(step: Any, h: HParams) -> Any:
    """T2T v1 and v2: equation (3), one step ahead."""
    from keras import ops

    warmup = h.learning_rate_warmup_steps
    return h.hidden_size**-0.5 * ops.minimum((step + 1.0) * warmup**-1.5, ops.rsqrt(step + 1.0))


def _after_warmup(step: Any, h: HParams) -> Any:
    """Steps since the end of the warm-up; 0 during it."""
    from keras import ops

    return ops.maximum(step - h.learning_rate_warmup_steps, 0.0)


def _half_cosine(share: Any) -> Any:
    """Half a cosine, from 1 at a share of 0 to 0 at a share of 1."""
    from keras import ops

    return 0.5 * (1.0 + ops.cos(math.pi * share))

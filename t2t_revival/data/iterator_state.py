"""`IteratorState`: the place of a training in its data, and how a training resumes there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2t_revival.hparams.hparams import HParams

ORDER_SETTINGS = ("seed", "shards", "chunk", "mixture")  # which determine the order of an epoch's examples


@dataclass(frozen=True)
class IteratorState:
    """The next batch of a training. `dataclasses.asdict` is its form in checkpoints."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0  # micro-batches consumed of that chunk
    cut: str = ""  # the `batching_key` of these batches; "" before the first


def batching_key(
    hparams: HParams,
    *,
    seed: int,
    shards: int,
    chunk: int,
    replicas: int,
    num_buckets: int = 0,
    mixture: str = "",
) -> str:
    """Returns all settings that determine the batches, as "name=value name=value ...".

    For the arguments, see `TrainingBatches`; `shards` is their number, `mixture` the corpora's weights.
    """
    return (
        f"seed={seed} shards={shards} chunk={chunk} replicas={replicas} batch_size={hparams.batch_size} "
        f"max_length={hparams.max_length} min_length_bucket={hparams.min_length_bucket} "
        f"length_bucket_step={hparams.length_bucket_step} num_buckets={num_buckets} "
        f"subword_dropout={hparams.subword_dropout} subword_dropout_side={hparams.subword_dropout_side}"
        + (f" mixture={mixture}" if mixture else "")
    )


def resume_from(state: IteratorState, key: str) -> tuple[IteratorState, str | None]:
    """Returns the state from which a training with the batching key `key` resumes after `state`.

    No example of the epoch is skipped: where batches are made with other settings, the chunk of examples
    begins again; where examples come in another order, the epoch does.

    Returns:
        The state, and one line for the user on which examples are repeated; `None` if there are none.
    """
    resumed = replace(state, cut=key)
    if not state.cut or not (state.chunk or state.batch):
        return resumed, None
    before, now = _settings(state.cut), _settings(key)
    changed = [name for name in now if now[name] != before[name]]
    changes = ", ".join(f"{name}={now[name]} instead of {before[name]}" for name in changed)
    note = f"batching has changed ({changes}): examples of this epoch"
    if any(name in ORDER_SETTINGS for name in changed):
        return replace(resumed, chunk=0, batch=0), f"{note} are repeated"
    if not (changed and state.batch):
        return resumed, None
    after = f" after its first {state.chunk * int(now['chunk']):,}" if state.chunk else ""
    return replace(resumed, batch=0), f"{note}{after} are repeated"


def _settings(key: str) -> dict[str, str]:
    settings = (setting.partition("=") for setting in key.split())
    return {"mixture": ""} | {name: value for name, _, value in settings}

"""`IteratorState`: the place of a training in its data, and how a training resumes there."""

from __future__ import annotations

from dataclasses import dataclass, replace

ORDER_SETTINGS = ("seed", "shards", "chunk", "mixture")  # which determine the order of an epoch's examples


@dataclass(frozen=True)
class IteratorState:
    """The next batch of a training. `dataclasses.asdict` is its form in checkpoints."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0  # micro-batches consumed of that chunk
    cut: str = ""  # the key of these batches; "" before the first


def resume_from(state: IteratorState, key: str) -> tuple[IteratorState, str | None]:
    """Returns the state from which a training resumes after `state`.

    `key` has all settings that determine its batches, as "name=value name=value ...".

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

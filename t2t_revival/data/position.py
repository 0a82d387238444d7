"""Where a run stands in its training data, and whether that is still a place there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2t_revival.hparams.hparams import HParams

ORDER = ("seed", "shards", "chunk")  # settings that the order of an epoch's examples comes from


@dataclass(frozen=True)
class Position:
    """Where a run stands in its data: the next batch to take. `dataclasses.asdict` is its JSON."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0  # micro-batches consumed of that chunk
    cut: str = ""  # the settings it holds for, as `cut_settings` gives them; "": not known


def cut_settings(hparams: HParams, *, seed: int, shards: int, chunk: int, replicas: int) -> str:
    """All that a place in the data depends on, as "name=value name=value ...".

    Args:
        hparams: `batch_size`, `max_length` and the bucket fields are read.
        seed: of the order.
        shards: how many there are.
        chunk: examples shuffled together.
        replicas: the number of rows of every batch is a multiple of this.
    """
    settings = {
        "seed": seed,
        "shards": shards,
        "chunk": chunk,
        "replicas": replicas,
        "batch_size": hparams.batch_size,
        "max_length": hparams.max_length,
        "min_length_bucket": hparams.min_length_bucket,
        "length_bucket_step": hparams.length_bucket_step,
    }
    return " ".join(f"{name}={value}" for name, value in settings.items())


def adapted(start: Position, cut: str) -> tuple[Position, str | None]:
    """The place where a run with the settings `cut` goes on that stopped at `start`.

    No example of the epoch is left out: where batches are cut otherwise, its chunk of examples begins
    again; where the examples come in another order, the epoch does.

    Returns:
        The place, and one line for the user on what comes again; None where nothing does.
    """
    same = replace(start, cut=cut)
    if not start.cut or not (start.chunk or start.batch):
        return same, None
    before, now = _values(start.cut), _values(cut)
    changed = [name for name in now if now[name] != before.get(name)]
    said = ", ".join(f"{name}={now[name]} instead of {before.get(name)}" for name in changed)
    note = f"batches are cut anew ({said}): what was seen of this epoch"
    if any(name in ORDER for name in changed):
        return replace(same, chunk=0, batch=0), f"{note} comes again"
    if not (changed and start.batch):
        return same, None
    after = f" after its first {start.chunk * int(now['chunk']):,} examples" if start.chunk else ""
    return replace(same, batch=0), f"{note}{after} comes again"


def _values(cut: str) -> dict[str, str]:
    return {name: value for name, _, value in (setting.partition("=") for setting in cut.split())}

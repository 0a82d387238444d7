"""Batches of ids from shards of examples (section 5.1; T2T's `data_reader.batching_scheme`).

Examples of similar length are batched together, as many as `batch_size` tokens hold; or they are packed into
rows of one length, see `packing`. The order is a pure function of the seed and the epoch, so that a stopped
training resumes at the exact batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from t2t_revival.data import examples
from t2t_revival.data.examples import SIDES, Mixing
from t2t_revival.data.packing import SEGMENTS, WINDOW, Places, packed_batches, places_of
from t2t_revival.data.records import SplitData
from t2t_revival.data.subword_dropout import pair_keys, sample
from t2t_revival.data.vocabulary.text_encoder import Splits
from t2t_revival.errors import T2TError
from t2t_revival.hparams.hparams import HParams
from t2t_revival.utils.made_of import MadeOf

Element: TypeAlias = dict[str, np.ndarray]  # see `TrainingBatches.elements`
CHUNK = 2**19  # examples held and shuffled together
HISTORY = 4096  # produced batches whose state is kept
EQUAL_WEIGHTS = np.ones((1, 1), np.float32)
ORDER_SETTINGS = ("seed", "shards", "chunk", "mixture")  # which determine the order of an epoch's examples
MIN_WIDTH = 16  # tokens; narrower batches would save little time


def bucket_boundaries(max_length: int, min_length_bucket: int, length_bucket_step: float) -> list[int]:
    """Returns the buckets' upper bounds in tokens, ascending; the last is `max_length` (T2T's rule)."""
    bounds = []
    bound = min_length_bucket
    while bound < max_length:
        bounds.append(bound)
        bound = max(bound + 1, int(bound * length_bucket_step))
    return [*bounds, max_length]


def bucket_batch_sizes(bounds: list[int], batch_size: int) -> list[int]:
    """Returns the examples per replica of each bucket: `batch_size` tokens at its bound, at least one."""
    return [max(1, batch_size // bound) for bound in bounds]


def fixed_width(length: int) -> int:
    """Returns a width for batches that are compiled for each shape: the next power of two, at least 16."""
    return max(MIN_WIDTH, 1 << (length - 1).bit_length())


@dataclass(frozen=True)
class IteratorState:
    """The next batch of a training. `dataclasses.asdict` is its form in checkpoints."""

    epoch: int = 0
    chunk: int = 0
    batch: int = 0  # micro-batches consumed of that chunk
    cut: str = ""  # the key of these batches; "" before the first


BEGINNING = IteratorState()


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
    changed = before.changed(now)
    note = f"batching has changed ({before.difference(now)}): examples of this epoch"
    if any(name in ORDER_SETTINGS for name in changed):
        return replace(resumed, chunk=0, batch=0), f"{note} are repeated"
    if not (changed and state.batch):
        return resumed, None
    after = f" after its first {state.chunk * int(now.values['chunk']):,}" if state.chunk else ""
    return replace(resumed, batch=0), f"{note}{after} are repeated"


def is_packed(state: IteratorState) -> bool:
    """Returns whether the batches before this state were packed."""
    return _settings(state.cut).values["packed"] != "0"


def _settings(key: str) -> MadeOf:
    """Returns the settings of a key; those that not every version writes have defaults."""
    return MadeOf(
        {"mixture": "", "packed": "0", "num_buckets": "0"}
        | dict(setting.split("=", 1) for setting in key.split())
    )


class ExampleCounts(NamedTuple):
    """Numbers of tokens, without padding, and of examples."""

    target_tokens: int = 0
    source_tokens: int = 0
    examples: int = 0


@dataclass(frozen=True)
class BatchSettings:
    """Settings by which examples become batches, beside the hparams.

    Attributes:
        replicas: the number of rows of every batch is a multiple of this.
        accumulate: micro-batches per update, for which weights are computed together.
        seed: seed of the order.
        pad_to_bucket: pad both sides to the bucket's bound and fill the number of rows, so that there is one
            shape per bucket (XLA compiles each shape separately).
        chunk: examples shuffled together.
        packed: several pairs share a row of `max_length` positions, and all batches have one shape; see
            `packing`.
    """

    replicas: int = 1
    accumulate: int = 1
    seed: int = 0
    pad_to_bucket: bool = False
    chunk: int = CHUNK
    packed: bool = False


class TrainingBatches:
    """An endless, resumable stream of training batches.

    Each epoch reads the shards in a new order, up to 16 in parallel, and every example once. Examples are
    shuffled within chunks of about `chunk` examples; batches hold examples of similar length, in random order
    within the chunk. Examples with more than `max_length` tokens on either side are dropped. With
    `subword_dropout`, examples are segmented again in each epoch, before they are put into batches.

    Args:
        data: the training split, whose corpora are mixed by weight.
        hparams: `batch_size`, `max_length`, the bucket fields and `subword_dropout` are read.
        settings: see `BatchSettings`.
        start: the first batch, which begins a group of `accumulate` micro-batches. If its batches were made
            with other settings, its chunk of examples begins again, or its epoch; see `resume_from`.
        splits: of the vocabularies of inputs and targets, for `subword_dropout`.

    Attributes:
        settings: see `BatchSettings`.
        aligned: whether batches have word alignments.
        weighted: whether examples have weights.
        error: the original exception that ended the stream; TensorFlow raises only a copy of its text.
        note: one line for the user on why examples are repeated; `None` if they are not.

    Raises:
        T2TError: there are no alignments for `guided_alignment_weight`.
    """

    def __init__(
        self,
        data: SplitData,
        hparams: HParams,
        settings: BatchSettings | None = None,
        *,
        start: IteratorState = BEGINNING,
        splits: tuple[Splits, Splits] | None = None,
    ) -> None:
        self.error: Exception | None = None
        self._hparams, self._splits = hparams, splits
        self.settings = settings = settings or BatchSettings()
        self._data, self._shards, self.weighted = data, sorted(data.paths), data.weighted
        self.aligned = bool(hparams.guided_alignment_weight)
        if self.aligned and not data.aligned:
            raise T2TError(
                "hparams: guided_alignment_weight needs word alignments, which the data in "
                f"{self._shards[0].parent} lacks: make it in another --data_dir, with --make_alignments"
            )
        self._bounds = bucket_boundaries(
            hparams.max_length, hparams.min_length_bucket, hparams.length_bucket_step
        )
        self._rows = [
            settings.replicas * size for size in bucket_batch_sizes(self._bounds, hparams.batch_size)
        ]
        self._packed_shape = packed_shape(hparams, settings.replicas)
        named = (corpus for corpus in data.corpora if corpus.name)
        mixture = ",".join(f"{corpus.name}:{corpus.weight:.15g}" for corpus in named)
        self._batching_key = (
            f"seed={settings.seed} shards={len(self._shards)} chunk={settings.chunk} "
            f"replicas={settings.replicas} "
            f"batch_size={hparams.batch_size} max_length={hparams.max_length} "
            f"min_length_bucket={hparams.min_length_bucket} "
            f"length_bucket_step={hparams.length_bucket_step} "
            f"subword_dropout={hparams.subword_dropout} subword_dropout_side={hparams.subword_dropout_side}"
            + (f" mixture={mixture}" if mixture else "")
            + (f" packed={WINDOW}" if settings.packed else "")
        )
        self._mixing = Mixing(data.corpora, settings.seed, settings.chunk)
        self._start, self.note = resume_from(start, self._batching_key)
        self._history: dict[int, tuple[IteratorState, ExampleCounts]] = {0: (self._start, ExampleCounts())}

    @property
    def names(self) -> list[str]:
        """The arrays of an element."""
        alignments, segments = ["alignments"] * self.aligned, SEGMENTS if self.settings.packed else ()
        return [*SIDES, *alignments, *segments, "weights"]

    def position(self, batches_consumed: int) -> IteratorState:
        """Returns the state after that many micro-batches, counted from `start`.

        It is a multiple of `accumulate`, is produced, and at most 4,096 ago.
        """
        return self._history[batches_consumed][0]

    def tokens(self, batches_consumed: int) -> ExampleCounts:
        """Returns the total counts of that many micro-batches; see `position`."""
        return self._history[batches_consumed][1]

    def elements(self) -> Iterator[Element]:
        """Yields endless batches of n rows with s source and t target positions, padded with 0.

        Each has "inputs" int32 [n, s], "targets" int32 [n, t], and "weights" of the target tokens, float32
        [n, t], [n, 1] for all of a row or [1, 1] for all; with `guided_alignment_weight`, also "alignments",
        float32 [n, t, s], see `alignment_shares`; packed ones also the segments of both sides, `SEGMENTS`.

        A weight is accumulate / T for the T target tokens of the micro-batches of one update, so that a loss
        summed over each global batch and averaged over these micro-batches is the mean per target token.
        Where examples have weights, it is multiplied by these.

        Raises:
            T2TError: a shard is missing or corrupt, or no example is short enough.
        """
        try:
            batches = self._batches()
            number, total = 0, ExampleCounts()
            while True:
                group = list(islice(batches, self.settings.accumulate))
                weight = np.float32(
                    self.settings.accumulate / sum(batch.counts.target_tokens for _, batch in group)
                )
                for state, batch in group:
                    number, total = number + 1, ExampleCounts(*np.add(total, batch.counts).tolist())
                    self._history[number] = (state, total)
                    self._history.pop(number - HISTORY, None)
                    yield {**batch.arrays, "weights": weight * batch.weights}
        except Exception as error:
            self.error = error
            raise

    def _batches(self) -> Iterator[tuple[IteratorState, _Batch]]:
        """Yields endless batches, each with the state after it."""
        state = self._start
        while True:
            batches = self._epoch(state)
            first = next(batches, None)
            if first is not None:
                yield first
                yield from batches
            elif not (state.chunk or state.batch):
                raise T2TError(
                    f"{self._shards[0].parent}: every training example has a side of more than "
                    f"max_length={self._bounds[-1]} tokens; increase max_length"
                )
            state = IteratorState(state.epoch + 1)

    def _epoch(self, start: IteratorState) -> Iterator[tuple[IteratorState, _Batch]]:
        skip = start.batch
        for chunk, records in enumerate(self._mixing.chunks(start.epoch, start.chunk), start.chunk):
            if records:  # of a mixture, the rest of an epoch may round to none
                yield from self._chunk_batches(records, start.epoch, chunk, skip)
            skip = 0

    def _chunk_batches(
        self, records: list[examples.Block], epoch: int, chunk: int, skip: int
    ) -> Iterator[tuple[IteratorState, _Batch]]:
        """Yields the batches of a chunk after the first `skip`; clears `records` to free memory early."""
        pairs = examples.parse(records, self._data.swapped)
        if self._hparams.subword_dropout and self._splits:
            keys = pair_keys(records, self._shards, self.settings.seed)
            pairs = sample(pairs, keys, self._splits, self._hparams)
        serialised = [record for block in records for record in block.records]
        weights = examples.floats(serialised, "weight", 1.0) if self._data.weighted else None
        alignments = examples.int_lists(serialised, "alignment")[0] if self.aligned else None
        records.clear()
        generator = np.random.default_rng([self.settings.seed % 2**64, epoch, chunk + 1])
        make_batches = self._pack_batches if self.settings.packed else self._make_batches
        batches = pairwise(chain(make_batches(pairs, generator), [None]))
        for number, (batch, next_one) in enumerate(batches):
            if number >= skip and batch:
                following = (chunk, number + 1) if next_one else (chunk + 1, 0)
                state = IteratorState(epoch, *following, self._batching_key)
                yield state, self._assemble(pairs, weights, alignments, *batch)

    def _make_batches(self, pairs: examples.Pairs, generator: np.random.Generator) -> list[_Members]:
        """Assigns a chunk's examples to batches of similar length, of which one at most is not full."""
        source, target = pairs.inputs.lengths, pairs.targets.lengths
        longest = np.maximum(source, target)
        kept = generator.permutation(np.flatnonzero(longest <= self._bounds[-1]))
        buckets = np.searchsorted(self._bounds, longest[kept])
        # By target length, then by source length, rising and falling in turn so that neighbours are similar.
        order = target * (2 * self._bounds[-1]) + np.where(target % 2, source, self._bounds[-1] - source)
        batches: list[_Members] = []
        rest = kept[:0]
        for bucket, rows in enumerate(self._rows):
            members = np.concatenate([rest, kept[buckets == bucket]])
            members = members[np.argsort(order[members], kind="stable")]
            full = len(members) // rows * rows
            batches += [_Members(batch, bucket) for batch in members[:full].reshape(-1, rows)]
            rest = members[full:]
        if len(rest):
            batches.append(_Members(rest, len(self._rows) - 1))
        return [batches[i] for i in generator.permutation(len(batches))]

    def _pack_batches(self, pairs: examples.Pairs, generator: np.random.Generator) -> Iterator[_Members]:
        """Packs a chunk's examples into rows, a window of them at a time, and the rows into batches."""
        lengths = pairs.inputs.lengths, pairs.targets.lengths
        kept = generator.permutation(np.flatnonzero(np.maximum(*lengths) <= self._hparams.max_length))
        for batch in packed_batches(kept, *lengths, *self._packed_shape, generator.permutation):
            yield _Members(np.concatenate(batch), -1, places_of(batch, *lengths))

    def _assemble(
        self,
        pairs: examples.Pairs,
        weights: np.ndarray | None,
        alignments: examples.Side | None,
        members: np.ndarray,
        bucket: int,
        places: Places | None,
    ) -> _Batch:
        rows, width = -(-len(members) // self.settings.replicas) * self.settings.replicas, 0
        if self.settings.pad_to_bucket:
            rows, width = self._rows[bucket], self._bounds[bucket]
        begins = None
        if places:
            begins = places.rows, places.targets, places.sources
            arrays = packed_sides(pairs, members, places, self._packed_shape)
        else:
            arrays = {
                name: side.padded(members, rows, width) for name, side in zip(SIDES, pairs, strict=True)
            }
        source_tokens, target_tokens = (side.tokens(members) for side in pairs)
        if alignments is not None:
            shape = (*arrays["targets"].shape, arrays["inputs"].shape[1])
            arrays["alignments"] = examples.alignment_shares(
                alignments, pairs, members, shape, self._data.swapped, begins
            )
        counts = ExampleCounts(target_tokens, source_tokens, len(members))
        if weights is None:
            return _Batch(arrays, counts, EQUAL_WEIGHTS)
        if places:
            flat = np.zeros(self._packed_shape, np.float32)
            flat[arrays[SEGMENTS[1]] > 0] = np.repeat(weights[members], pairs.targets.lengths[members])
            return _Batch(arrays, counts, flat)
        return _Batch(arrays, counts, np.pad(weights[members], (0, rows - len(members)))[:, None])


def packed_shape(hparams: HParams, replicas: int) -> tuple[int, int]:
    """Returns rows and positions of packed batches: `max_length`, or more where `batch_size` has room."""
    rows = hparams.batch_size // hparams.max_length
    return replicas * rows, hparams.batch_size // rows


def packed_sides(
    pairs: examples.Pairs, members: np.ndarray, places: Places, shape: tuple[int, int]
) -> dict[str, np.ndarray]:
    """Returns the ids and the segments of both sides of a packed batch, each int32 of the shape."""
    arrays = {}
    for name, segments, side, begins in zip(SIDES, SEGMENTS, pairs, places[2:], strict=True):
        at = places.rows * shape[1] + begins
        arrays[name], arrays[segments] = side.packed(members, at, places.numbers, shape)
    return arrays


class _Members(NamedTuple):
    """Examples of a batch.

    Attributes:
        indices: of the examples in their chunk.
        bucket: of their lengths.
        places: where they stand in packed rows; `None` is a row for each.
    """

    indices: np.ndarray
    bucket: int
    places: Places | None = None


class _Batch(NamedTuple):
    arrays: Element  # without weights
    counts: ExampleCounts
    weights: np.ndarray  # float32, [n, t], [n, 1] or [1, 1]


def evaluation_batches(
    data: SplitData, hparams: HParams, *, fixed_shapes: bool = False, packed: bool = False
) -> list[Element]:
    """Returns batches of every example once, without truncation; those that are not packed longest first.

    Args:
        data: the split.
        hparams: `batch_size` is read, and `max_length` where they are packed.
        fixed_shapes: pad both sides to the same power of two and fill up rows, so that there are few shapes,
            one for each width (XLA compiles each shape separately).
        packed: several examples share a row of `max_length` positions, in batches of the shape of a
            training's; those that are longer come in batches of other shapes.

    Returns:
        Elements as those of a training, without weights.

    Raises:
        T2TError: a shard is missing or corrupt.
    """
    blocks = [block for shard in sorted(data.paths) for block in examples.read_blocks(shard, examples.BLOCK)]
    pairs = examples.parse(blocks, data.swapped)
    source, target = pairs.inputs.lengths, pairs.targets.lengths
    longest = np.maximum(source, target)
    order = np.lexsort((source, target, longest))[::-1]
    made: list[Element] = []
    if packed:
        shape, is_short = packed_shape(hparams, replicas=1), longest[order] <= hparams.max_length
        for batch in packed_batches(order[is_short], source, target, *shape):
            places = places_of(batch, source, target)
            made.append(packed_sides(pairs, np.concatenate(batch), places, shape))
        order = order[~is_short]
    begin = 0
    while begin < len(order):
        width = int(longest[order[begin]])
        width = fixed_width(width) if fixed_shapes else width
        (most_rows,) = bucket_batch_sizes([width], hparams.batch_size)
        members = order[begin : begin + most_rows]
        shape = (most_rows, width) if fixed_shapes else (len(members), 0)
        made.append({name: side.padded(members, *shape) for name, side in zip(SIDES, pairs, strict=True)})
        begin += most_rows
    return made

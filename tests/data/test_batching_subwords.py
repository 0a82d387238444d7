"""Batches of pairs that are segmented again in each epoch (`subword_dropout`)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.batching import TrainingBatches
from t2t_revival.data.buckets import bucket_batch_sizes, bucket_boundaries
from t2t_revival.data.records import Shards
from t2t_revival.data.vocabulary.splits import merge_splits
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from tests.data import test_batching
from tests.data.test_batching import EXAMPLES, HPARAMS, assert_same, epoch, pairs_of, take

corpus = test_batching.corpus  # a fixture
PIECES = ["", "", *(chr(0x4E00 + n) + chr(0x4E01 + n) * (n % 2 == 0) for n in range(2 * EXAMPLES + 1000))]
ALPHABET = [chr(0x4E00 + n) for n in range(2 * EXAMPLES + 1001)]
SPLITS = (merge_splits([*PIECES, *ALPHABET], range(len(PIECES + ALPHABET))),) * 2
DROPOUT = HPARAMS.replace(subword_dropout=0.3)


def texts_of(pairs: list[tuple[list[int], list[int]]]) -> list[tuple[str, ...]]:
    names = [*PIECES, *ALPHABET]
    return sorted(tuple("".join(names[token] for token in side) for side in pair) for pair in pairs)


@pytest.mark.slow
class TestSubwordDropout:
    def batches(self, corpus: tuple, hparams: HParams = DROPOUT, **settings: object) -> TrainingBatches:
        return TrainingBatches(corpus[0], hparams, **{"splits": SPLITS, "seed": 3, "chunk": 60, **settings})

    def test_the_same_texts_in_other_tokens_in_each_epoch(self, corpus: tuple) -> None:
        batches = self.batches(corpus)
        short = [p for p in corpus[1] if max(map(len, p)) <= HPARAMS.max_length]
        epochs = [pairs_of(epoch(batches, number)) for number in (0, 1)]
        assert texts_of(epochs[0]) == texts_of(epochs[1]) == texts_of(short)
        assert len({str(sorted(pairs)) for pairs in (*epochs, short)}) == 3

    def test_batches_are_made_of_the_new_lengths(self, corpus: tuple) -> None:
        batches = epoch(self.batches(corpus, pad_to_bucket=True, chunk=1000))
        bounds = bucket_boundaries(24, 4, 1.5)
        sizes = bucket_batch_sizes(bounds, HPARAMS.batch_size)
        assert {labels.shape for _, labels, _ in batches} <= set(zip(sizes, bounds, strict=True))
        tokens = sum(int((labels > 0).sum()) for _, labels, _ in batches)
        plain = epoch(TrainingBatches(corpus[0], HPARAMS, chunk=1000))
        assert tokens > 1.05 * sum(int((labels > 0).sum()) for _, labels, _ in plain)

    def test_chunks_and_replicas_do_not_change_segmentations(self, corpus: tuple) -> None:
        found = [
            sorted(pairs_of(epoch(self.batches(corpus, **settings))))
            for settings in ({}, {"chunk": 1000}, {"replicas": 2})
        ]
        assert found[0] == found[1] == found[2]
        assert found[0] != sorted(pairs_of(epoch(self.batches(corpus, seed=4))))

    @settings(max_examples=8, deadline=None)
    @given(groups=st.integers(0, 60), accumulate=st.integers(1, 3))
    def test_a_resumed_training_continues_at_the_exact_batch(
        self, corpus: tuple, groups: int, accumulate: int
    ) -> None:
        consumed = groups * accumulate
        whole = self.batches(corpus, accumulate=accumulate)
        expected = take(whole, consumed + 12)[consumed:]
        resumed = self.batches(corpus, accumulate=accumulate, start=whole.position(consumed))
        assert resumed.note is None
        assert_same(take(resumed, 12), expected)

    def test_it_is_of_the_models_sides_also_for_reversed_shards(self, corpus: tuple) -> None:
        shards = (Shards(corpus[0], swapped=True), corpus[1])
        hparams = DROPOUT.replace(subword_dropout_side="source")
        sources, targets = zip(*pairs_of(epoch(self.batches(shards, hparams))), strict=True)
        known = [source for source, _ in corpus[1]]
        assert all(target in known for target in targets)
        assert not all(source in [target for _, target in corpus[1]] for source in sources)

    def test_without_splits_it_is_an_error(self, corpus: tuple) -> None:
        with pytest.raises(T2TError, match="subword_dropout needs the splits of the vocabulary"):
            TrainingBatches(corpus[0], DROPOUT)

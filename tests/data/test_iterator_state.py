"""Resumption from an `IteratorState`, with the settings of its batches and with others."""

import dataclasses

import pytest

from t2t_revival.data.iterator_state import IteratorState, batching_key, resume_from
from t2t_revival.hparams import HParams

HPARAMS = HParams(batch_size=64, max_length=16)
DATA = {"seed": 1, "shards": 10, "chunk": 1000, "replicas": 1}
KEY = batching_key(HPARAMS, **DATA)
SMALLER = batching_key(dataclasses.replace(HPARAMS, batch_size=32), **DATA)


@pytest.mark.parametrize(
    "state", [IteratorState(3, 2, 5, KEY), IteratorState(3, 2, 0, KEY), IteratorState(3, 2, 5)]
)
def test_the_same_or_unknown_settings_change_nothing(state):
    assert resume_from(state, KEY) == (dataclasses.replace(state, cut=KEY), None)


@pytest.mark.parametrize(("chunk", "after"), [(0, ""), (2, " after its first 2,000")])
def test_batches_made_with_other_settings_begin_the_chunk_again(chunk, after):
    resumed, note = resume_from(IteratorState(3, chunk, 5, KEY), SMALLER)
    assert resumed == IteratorState(3, chunk, 0, SMALLER)
    assert note == (
        f"batching has changed (batch_size=32 instead of 64): examples of this epoch{after} are repeated"
    )


@pytest.mark.parametrize("name", ["seed", "shards", "chunk"])
@pytest.mark.parametrize(("chunk", "batch"), [(2, 5), (2, 0), (0, 5)])
def test_another_order_of_the_examples_begins_the_epoch_again(name, chunk, batch):
    key = batching_key(HPARAMS, **{**DATA, name: 7})
    resumed, note = resume_from(IteratorState(3, chunk, batch, KEY), key)
    assert resumed == IteratorState(3, 0, 0, key)
    assert f"({name}=7 instead of {DATA[name]})" in note


@pytest.mark.parametrize("before", ["", " subword_dropout=0.0 subword_dropout_side=both"])
def test_subword_dropout_that_is_turned_on_or_off_begins_the_chunk_again(before):
    """Keys of earlier versions are those without it."""
    on = batching_key(HPARAMS.replace(subword_dropout=0.1), **DATA)
    off = KEY.partition(" subword_dropout")[0] + before
    assert resume_from(IteratorState(3, 1, 5, off), KEY) == (IteratorState(3, 1, 5, KEY), None)
    resumed, note = resume_from(IteratorState(3, 1, 5, off), on)
    assert resumed == IteratorState(3, 1, 0, on)
    assert "(subword_dropout=0.1 instead of 0.0)" in note
    resumed, note = resume_from(IteratorState(3, 1, 5, on), KEY)
    assert resumed == IteratorState(3, 1, 0, KEY)
    assert "(subword_dropout=0.0 instead of 0.1)" in note


def test_between_chunks_only_the_order_matters():
    assert resume_from(IteratorState(3, 2, 0, KEY), SMALLER) == (IteratorState(3, 2, 0, SMALLER), None)


def test_the_start_of_an_epoch_is_resumed_with_any_settings():
    other = batching_key(HPARAMS, **{**DATA, "seed": 7, "replicas": 3})
    assert resume_from(IteratorState(3, 0, 0, KEY), other) == (IteratorState(3, 0, 0, other), None)


def test_settings_of_another_version_are_not_the_same():
    resumed, note = resume_from(IteratorState(3, 0, 5, "seed=1 shards=10 chunk=1000"), KEY)
    assert resumed == IteratorState(3, 0, 0, KEY)
    assert "batch_size=64 instead of None" in note

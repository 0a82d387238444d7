"""Places in the data under the settings they were made with, and under others."""

import dataclasses

import pytest

from t2t_revival.data.position import Position, adapted, cut_settings
from t2t_revival.hparams import HParams

HPARAMS = HParams(batch_size=64, max_length=16)
DATA = {"seed": 1, "shards": 10, "chunk": 1000, "replicas": 1}
CUT = cut_settings(HPARAMS, **DATA)
SMALLER = cut_settings(dataclasses.replace(HPARAMS, batch_size=32), **DATA)


@pytest.mark.parametrize("position", [Position(3, 2, 5, CUT), Position(3, 2, 0, CUT), Position(3, 2, 5)])
def test_the_same_or_unknown_settings_change_nothing(position):
    assert adapted(position, CUT) == (dataclasses.replace(position, cut=CUT), None)


@pytest.mark.parametrize(("chunk", "after"), [(0, ""), (2, " after its first 2,000 examples")])
def test_batches_cut_otherwise_begin_the_chunk_again(chunk, after):
    place, note = adapted(Position(3, chunk, 5, CUT), SMALLER)
    assert place == Position(3, chunk, 0, SMALLER)
    assert note == (
        f"batches are cut anew (batch_size=32 instead of 64): what was seen of this epoch{after} comes again"
    )


@pytest.mark.parametrize("name", ["seed", "shards", "chunk"])
@pytest.mark.parametrize(("chunk", "batch"), [(2, 5), (2, 0), (0, 5)])
def test_another_order_of_the_examples_begins_the_epoch_again(name, chunk, batch):
    cut = cut_settings(HPARAMS, **{**DATA, name: 7})
    place, note = adapted(Position(3, chunk, batch, CUT), cut)
    assert place == Position(3, 0, 0, cut)
    assert f"({name}=7 instead of {DATA[name]})" in note


def test_between_chunks_only_the_order_matters():
    assert adapted(Position(3, 2, 0, CUT), SMALLER) == (Position(3, 2, 0, SMALLER), None)


def test_the_start_of_an_epoch_is_a_place_with_any_settings():
    other = cut_settings(HPARAMS, **{**DATA, "seed": 7, "replicas": 3})
    assert adapted(Position(3, 0, 0, CUT), other) == (Position(3, 0, 0, other), None)


def test_settings_of_another_version_are_not_the_same():
    place, note = adapted(Position(3, 0, 5, "seed=1 shards=10 chunk=1000"), CUT)
    assert place == Position(3, 0, 0, CUT)
    assert "batch_size=64 instead of None" in note

"""Examples are read as TensorFlow reads them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.example_format import encode_example
from t2t_revival.data.example_parser import float_lists, int_lists

IDS = st.lists(st.integers(0, 2**31 - 1), max_size=5)
EXAMPLES = st.lists(st.dictionaries(st.sampled_from(["inputs", "targets", "alignment"]), IDS), max_size=6)


def serialised(example: dict[str, list[int]]) -> bytes:
    """An example of TensorFlow's own, with features of other kinds beside."""
    feature = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=ids)) for name, ids in example.items()
    }
    feature["text"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b" * 200]))
    feature["weight"] = tf.train.Feature(float_list=tf.train.FloatList(value=[len(example) / 2]))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


@given(EXAMPLES)
@settings(deadline=None)
def test_examples_of_tensorflow(examples: list[dict[str, list[int]]]) -> None:
    records = [serialised(example) for example in examples]
    inputs, targets = int_lists(records, "inputs", "targets")
    for name, lists in (("inputs", inputs), ("targets", targets)):
        found = np.split(lists.values, lists.offsets[1:-1]) if examples else []
        assert [ids.tolist() for ids in found] == [example.get(name, []) for example in examples]
        assert lists.values.dtype == np.int32
    weights = float_lists(records, "weight")
    assert weights.values.tolist() == [len(example) / 2 for example in examples]
    assert weights.offsets.tolist() == list(range(len(examples) + 1))


@given(IDS, IDS)
@settings(deadline=None)
def test_own_examples(source: list[int], target: list[int]) -> None:
    inputs, targets, links = int_lists([encode_example(source, target)], "inputs", "targets", "alignment")
    assert (inputs.values.tolist(), targets.values.tolist(), links.values.tolist()) == (source, target, [])


@given(st.binary(max_size=40), st.integers(1, 40))
@settings(deadline=None)
def test_other_bytes_are_refused_or_read(content: bytes, cut: int) -> None:
    """Bytes of anything, and an example that is cut short."""
    example = serialised({"inputs": [3, 300]})
    for record in (content, example[:-cut] + content, example[:-cut]):
        with suppress(ValueError):
            (inputs,) = int_lists([record], "inputs")
            assert len(inputs.offsets) == 2
    with pytest.raises(ValueError, match="lists of such values"):
        int_lists([example[:-cut]], "inputs")


def test_a_list_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="lists of such values"):
        int_lists([serialised({})], "text")

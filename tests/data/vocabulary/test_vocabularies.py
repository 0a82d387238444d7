"""The properties that vocabularies of both kinds share."""

import pickle
from pathlib import Path

import pytest
import tensorflow as tf

from t2t_revival import T2TError
from t2t_revival.data.vocabulary import copy_name, open_vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import TextEncoder


def test_decoding_stops_at_eos_and_skips_pad_also_in_a_graph(either: TextEncoder) -> None:
    """The graph side can be first used inside a function, and the vocabulary in another process."""
    copy = pickle.loads(pickle.dumps(either))
    assert copy.fingerprint == either.fingerprint
    assert len(either.fingerprint) == 64

    @tf.function(
        input_signature=[tf.TensorSpec([None], tf.string), tf.RaggedTensorSpec([None, None], tf.int32)]
    )
    def in_graph(texts: tf.Tensor, ids: tf.RaggedTensor) -> tuple[tf.Tensor, tf.Tensor]:
        return copy.graph.decode(copy.graph.encode(texts)), copy.graph.decode(ids)

    the, dog = either.encode("the"), either.encode("dog")
    rows = [[*the, 0, *dog, 1, *dog, 1, 0], [1], [], [0, 0], dog]
    expected = [either.decode([*the, *dog]), "", "", "", "dog"]
    assert [either.decode(row) for row in rows] == expected
    texts = ["the ö ▁ dogs", ""]
    found = in_graph(tf.constant(texts), tf.ragged.constant(rows, dtype=tf.int32))
    assert [[text.decode() for text in side.numpy()] for side in found] == [texts, expected]
    assert copy.graph.encode(tf.constant(["dog"])).to_list() == [dog]


@pytest.mark.parametrize("kind", ["spm", "subwords"])
def test_a_missing_file_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(T2TError, match=rf"none\.{kind}: no such vocabulary"):
        open_vocabulary(tmp_path / f"none.{kind}")


@pytest.mark.parametrize(
    ("name", "copy"),
    [
        ("vocab.translate_enzh_wmt8k.8192.subwords.zh", "vocab.translate_enzh_wmt8k.8192.zh.subwords"),
        ("vocab.translate_ende_wmt8k.8192.subwords", "vocab.translate_ende_wmt8k.8192.subwords"),
        ("vocab.translate_enzh.zh.300.spm", "vocab.translate_enzh.zh.300.spm"),
    ],
)
def test_the_copy_of_t2ts_file_of_a_language_ends_as_all_of_its_files(name: str, copy: str) -> None:
    assert copy_name(Path("somewhere", name)) == copy
    assert copy_name(Path(copy)) == copy


def test_t2ts_file_of_a_language_is_opened_as_t2ts(tmp_path: Path, subwords_file: Path) -> None:
    path = tmp_path / "vocab.translate_enzh_wmt8k.8192.subwords.zh"
    path.write_bytes(subwords_file.read_bytes())
    vocabulary = open_vocabulary(path)
    assert isinstance(vocabulary, SubwordVocabulary)
    assert vocabulary.unknown == 0, "it spells every character"

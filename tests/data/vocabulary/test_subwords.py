"""T2T's subword vocabulary: the ids that T2T gave, the same in Python and in the graph for any text."""

import json
from pathlib import Path

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.subword_format import alphanumeric_bounds, is_alphanumeric
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

T2T = Path(__file__).parents[4] / "shared" / "data" / "t2t_reference"
KNOWN = "the dogs_\\u;0123456789,üé \u00a0日\n"
TEXTS = st.text(st.one_of(st.sampled_from(KNOWN), st.characters(exclude_categories=["Cs"])), max_size=30)
ODD_LINES = [
    "",
    " ",
    "  ",
    " a",
    "a ",
    " . ",
    "a b",
    "a  b",
    "a . b",
    "\n",
    "\0",
    "\ufeffa",
    "\U0010ffff\ufffe",
    "_",
]
ODD_LINES += ["\\u", "\\95;", "\\", "\\\\;", "日本", "٣ ½", "e\u0301", "-" * 3000, "a" * 3000, "😀" * 50]


@pytest.fixture(scope="module")
def vocabulary(subwords_file):
    return SubwordVocabulary(subwords_file)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the dogs", ["the_", "dog", "s_"]),  # the longest first: not "do" and "gs_"
        ("dog", ["dog", "_"]),
        ("the, the", ["the_", ", _", "the_"]),
        ("the  the", ["the_", " ", " ", "_", "the_"]),
        (" the ", [" ", "_", "the_", " ", "_"]),
        ("_", ["\\u", "_"]),
        ("\\u", ["\\", "\\", "_", "u", "_"]),
        ("ö", ["\\", "2", "4", "6", ";_"]),
        ("\n", ["\\", "1", "0", ";_"]),
        ("", []),
    ],
)
def test_the_rules(vocabulary, text, expected):
    ids = vocabulary.encode(text)
    assert [vocabulary.pieces[token] for token in ids] == expected
    assert vocabulary.decode(ids) == text


def check_python_and_graph(vocabulary, lines):
    ids = vocabulary.encode_batch(lines)
    ragged = vocabulary.graph.encode(tf.constant([line.encode() for line in lines]))
    assert ragged.dtype == tf.int32
    assert ragged.to_list() == ids
    assert [vocabulary.decode(line) for line in ids] == lines
    assert [text.decode() for text in vocabulary.graph.decode(ragged).numpy()] == lines


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_any_text_is_lossless_with_the_same_ids_in_python_and_graph(vocabulary, lines):
    check_python_and_graph(vocabulary, lines)


def test_odd_lines(vocabulary):
    check_python_and_graph(vocabulary, ODD_LINES)


@pytest.mark.slow
@given(st.data())
def test_any_ids_decode_alike_in_python_and_graph(vocabulary, data):
    ids = st.lists(st.integers(0, vocabulary.size - 1), max_size=20)
    lines = data.draw(st.lists(ids, min_size=1, max_size=3))
    found = vocabulary.graph.decode(tf.ragged.constant(lines, dtype=tf.int32, ragged_rank=1))
    assert [text.decode() for text in found.numpy()] == [vocabulary.decode(line) for line in lines]


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        ("\\65;_", "A"),
        ("\\0065;_", "A"),
        ("\\;_", "\\;"),
        ("\\\\65;_", "\\65;"),
        ("\\\\\\65;_", "\\A"),
        ("\\1114111;_", "\U0010ffff"),
        ("\\1114112;_", "〓"),
        ("\\55296;_", "〓"),  # half a surrogate pair is no character
        ("\\" + "9" * 5000 + ";_", "〓"),
        ("\\" + "0" * 5000 + "9;_", "\t"),
        ("\\u\\u_", "__"),
    ],
)
def test_unescaping(vocabulary, escaped, text):
    ids = [vocabulary.pieces.index(c) for c in escaped]
    assert vocabulary.decode(ids) == text
    (found,) = vocabulary.graph.decode(tf.ragged.constant([ids], dtype=tf.int32)).numpy()
    assert found.decode() == text


def test_bounds_are_those_of_the_categories():
    bounds = set(alphanumeric_bounds())
    kind = False
    for code in range(0x30000):
        kind ^= code in bounds
        assert kind == is_alphanumeric(chr(code)), code


def test_a_new_seed_leaves_the_graph_side_as_it_is(vocabulary):
    tf.random.set_seed(1)
    check_python_and_graph(vocabulary, ["the dogs"])


def test_quotes_are_left_out_where_there_are_any(vocabulary, tmp_path):
    """Reads subtokens with quotes and without, as T2T wrote both."""
    bare = [subtoken if subtoken.strip() else f"'{subtoken}'" for subtoken in vocabulary.subtokens]
    (tmp_path / "bare.subwords").write_text("\n".join([*bare, "'''", '"\'"']), encoding="utf-8")
    found = SubwordVocabulary(tmp_path / "bare.subwords")
    assert found.subtokens == [*vocabulary.subtokens, "'", "'"]
    assert len(set(found.pieces)) == found.size


def test_empty_subtokens_are_ids_without_text(vocabulary, subwords_file, tmp_path):
    padded = tmp_path / "padded.subwords"
    padded.write_bytes(subwords_file.read_bytes() + b"''\n''\n")
    longer = SubwordVocabulary(padded)
    assert longer.size == vocabulary.size + 2
    assert longer.encode("the dogs") == vocabulary.encode("the dogs")
    assert longer.decode([longer.size - 1, *longer.encode("dog"), longer.size - 2]) == "dog"
    assert len(set(longer.pieces)) == longer.size
    check_python_and_graph(longer, ["the dogs"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "'.*' is not a subtoken"),
        (b"<pad>\n<EOS>\nab_\n", "'.*' is not a subtoken"),
        (b"\xff\n", "not UTF-8"),
    ],
)
def test_a_corrupt_file_is_named(tmp_path, content, message):
    path = tmp_path / "bad.subwords"
    path.write_bytes(content)
    with pytest.raises(T2TError, match=rf"bad\.subwords: not a T2T vocabulary.*{message}"):
        SubwordVocabulary(path)


@pytest.mark.skipif(not T2T.is_dir(), reason=f"no {T2T.name} beside the repository")
def test_all_lines_as_t2t_had_them():
    vocabulary = SubwordVocabulary(T2T / "vocab.translate_ende_wmt8k.8192.subwords")
    lines = json.loads((T2T / "subword_wmt8k.json").read_text(encoding="utf-8"))
    assert len(lines) == 214
    texts, ids = [line["text"] for line in lines], [line["ids"] for line in lines]
    assert vocabulary.encode_batch(texts) == ids
    assert [vocabulary.decode(row) for row in ids] == [line["decoded"] for line in lines]
    ragged = vocabulary.graph.encode(tf.constant([text.encode() for text in texts]))
    assert ragged.to_list() == ids
    found = vocabulary.graph.decode(ragged).numpy()
    assert [text.decode() for text in found] == [line["decoded"] for line in lines]

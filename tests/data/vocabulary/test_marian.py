"""`MarianVocabulary`: the same ids in Python and in the graph; tags; two sides of one table."""

import pickle
import re

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary import Vocabularies, open_vocabulary
from t2t_revival.data.vocabulary.extension import extend, extends
from t2t_revival.data.vocabulary.marian import MarianVocabulary, in_order, pack
from tests.support.marian_models import LINES, PIECES, ZIELE, sentencepiece_model, table, vocabulary_content

CONTENT = vocabulary_content()


@pytest.fixture(scope="module")
def sides(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.x.marian"
    path.write_bytes(CONTENT)
    return Vocabularies.open([path])


def test_two_sides_of_one_vocabulary(sides):
    inputs, targets = sides
    assert (sides.separate, sides.all, sides.target_size) == (False, [inputs], None)
    assert inputs.pieces == targets.pieces
    assert (inputs.size, inputs.pieces[:3]) == (PIECES, ["<pad>", "</s>", "<unk>"])
    assert targets.of_targets is targets
    for side, line in ((inputs, LINES[0]), (targets, ZIELE[0])):
        assert side.decode([*side.encode(line), 1, 5]) == line
    assert inputs.encode(ZIELE[1]) != targets.encode(ZIELE[1])
    assert not Vocabularies(*pickle.loads(pickle.dumps([inputs, targets]))).separate
    again = pickle.loads(pickle.dumps(targets))
    assert again.encode(ZIELE[1]) == targets.encode(ZIELE[1])
    with pytest.raises(T2TError, match="Marian's vocabularies are for one direction"):
        sides.reversed()


def test_tags(sides):
    """A leading tag is one piece; what stands in the text is text. So it is in transformers 5."""
    inputs, _ = sides
    tag, unknown = inputs.pieces.index(">>deu<<"), inputs.unknown
    plain = inputs.encode("The dog")
    assert inputs.tags == [">>deu<<", ">>nds<<"]
    assert inputs.encode(">>deu<< The dog") == inputs.encode(">>deu<<The dog") == [tag, *plain]
    assert inputs.encode(">>xyz<< The dog") == [unknown, *plain]
    assert inputs.encode("The >>deu<< dog")[0] == plain[0]
    assert inputs.banned == unknown == 2


TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("abc >><<\u2581ä.")),
    max_size=20,
)


@settings(max_examples=25)
@given(texts=st.lists(TEXTS, min_size=1, max_size=40))
def test_the_graph_is_python(sides, texts):
    for side in sides:
        expected = side.encode_batch([*texts, ">>deu<< b", ""])
        assert side.graph.encode(tf.constant([*texts, ">>deu<< b", ""])).to_list() == expected
        decoded = side.graph.decode(tf.ragged.constant(expected, tf.int32, ragged_rank=1))
        assert [text.decode() for text in decoded.numpy()] == [side.decode(ids) for ids in expected]


def test_the_order_of_ids():
    """EOS may have any id in Marian's table, as it has in later models of OPUS-MT."""
    assert in_order({"a": 0, "</s>": 1, "<unk>": 2}) == ["<pad>", "</s>", "a", "<unk>"]
    assert in_order({"<unk>": 0, "<pad>": 1, "</s>": 2}) == ["<pad>", "</s>", "<unk>"]
    for wrong in ({"a": 0, "</s>": 1}, {"</s>": 0, "<unk>": 2}, {"</s>": 0, "<unk>": 0}):
        with pytest.raises(ValueError, match="it lacks </s> or <unk>, or its ids are not 0, 1, 2"):
            in_order(wrong)


@pytest.mark.parametrize("content", [b"", b"PK", CONTENT[:-50], CONTENT[:200]])
def test_corrupt_files(tmp_path, content):
    (tmp_path / "vocab.x.marian").write_bytes(content)
    with pytest.raises(T2TError, match=r"vocab\.x\.marian: corrupt, or not a vocabulary"):
        open_vocabulary(tmp_path / "vocab.x.marian")


def test_merges_can_be_undone(sides):
    for side in sides:
        splits = side.splits()
        assert splits.parts.any()
        piece = next(i for i, parts in enumerate(splits.parts[: side.size]) if parts.all())
        joined = "".join(side.pieces[part] for part in splits.parts[piece] if part < side.size)
        assert side.pieces[piece].startswith(joined[:1])
        assert side.parts(side.pieces[piece]) == [piece]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_it_grows(kind, tmp_path):
    """Old ids stay, new words are pieces of the side whose words they are, and other texts come back."""
    source, target = (sentencepiece_model(lines, kind, 80) for lines in (LINES * 2, ZIELE * 2))
    path = tmp_path / "vocab.x.marian"
    path.write_bytes(pack(table(source, target, size=200), source, target))
    old = MarianVocabulary(path)
    domain = "the brown barn of the bread", "der graue Garten des Hauses"
    new = extend(old, [*domain] * 12, tmp_path / "vocab.y.marian", old.size + 40)
    assert old.size < new.size <= old.size + 40
    assert extends(new, old)
    sides = (old, new, LINES), (old.of_targets, new.of_targets, ZIELE)
    for line, (before, after, lines) in zip(domain, sides, strict=True):
        ids = after.encode(line)
        assert len(ids) < 0.6 * len(before.encode(line))
        assert max(ids) >= old.size
        assert after.decode(ids) == line
        assert after.graph.encode(tf.constant([line])).to_list() == [ids]
        for piece in (after.pieces[token] for token in ids if token >= old.size):
            known = "".join(old.pieces[part] for part in before.parts(piece))
            assert re.fullmatch(known.replace("<unk>", "."), piece)
        for other in lines:
            assert after.decode(after.encode(other)) == other
    with pytest.raises(T2TError, match="occurs 10 times: leave it out"):
        extend(old, [*domain], tmp_path / "vocab.z.marian")


def test_both_sides_learn_what_is_new_to_both(sides, tmp_path):
    """In the form that SentencePiece gives it: here the ligature becomes two letters."""
    inputs, _ = sides
    line = "\ufb01x 5 \u20ac"
    new = extend(inputs, [line] * 12, tmp_path / "vocab.y.marian", inputs.size + 9)
    for side in (new, new.of_targets):
        assert side.decode(side.encode(line)) == "fix 5 \u20ac"
    assert "\ufb01" not in "".join(new.pieces)
    assert extend(inputs, [line] * 12, tmp_path / "vocab.z.marian", inputs.size + 1).size == inputs.size + 1

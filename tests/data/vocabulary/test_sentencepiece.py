import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.sentencepiece import ESCAPE, SPACE_MARK, Vocabulary, VocabularyTooLargeError

TEXT = [
    f"the {adjective} {noun} sees {number} houses . das {noun}haus sieht grüne Bäume !"
    for adjective in ("old", "young", "green")
    for noun in ("dog", "cat", "house")
    for number in range(5)
]
LINES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40)
ODD_LINES = [
    "",
    " ",
    "  two  spaces ",
    "\t tab\t",
    "a\x00b",
    "\x00",
    "\x1b[0m\x7f",
    "no\u00a0break",
    "line\u2028separator\u2029",
    "carriage\r",
    "\ufeffmark",
    "👩‍👩‍👧 emoji",
    "\u0301 lone accent",
    "</s>",
    "<unk>",
    "<pad>",
    "<0x41>",
    "\u2047 \u2585",
    SPACE_MARK,
    f"a {SPACE_MARK}b",
    ESCAPE,
    f"{ESCAPE}0{ESCAPE}1{SPACE_MARK}{ESCAPE}",
    "\U0010ffff\ufffd\ufffe",
]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 340)


def check_lossless_in_python_and_graph(vocabulary, lines):
    import tensorflow as tf

    ids = vocabulary.encode_batch(lines)
    ragged = vocabulary.graph.encode(tf.constant([line.encode() for line in lines]))
    assert ragged.to_list() == ids
    assert [vocabulary.decode(line) for line in ids] == lines
    assert [text.decode() for text in vocabulary.graph.decode(ragged).numpy()] == lines
    assert all(token > 2 for line in ids for token in line)  # neither PAD nor EOS nor UNK


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, min_size=1, max_size=3))
def test_any_line_is_lossless_with_the_same_ids_in_python_and_graph(vocabulary, lines):
    check_lossless_in_python_and_graph(vocabulary, lines)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=f"{ESCAPE}{SPACE_MARK}01 a\t", max_size=8))
def test_the_escape_is_injective(vocabulary, line):
    check_lossless_in_python_and_graph(vocabulary, [line])


def test_odd_lines_are_lossless(vocabulary):
    check_lossless_in_python_and_graph(vocabulary, ODD_LINES)


def test_training_on_odd_lines_keeps_them_lossless(tmp_path):
    vocabulary = Vocabulary.train(TEXT + ODD_LINES * 3, tmp_path / "v.spm", 350)
    check_lossless_in_python_and_graph(vocabulary, ODD_LINES)


def test_ids_are_t2ts(vocabulary):
    assert vocabulary.size == 340
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocabulary.content)
    assert (processor.pad_id(), processor.eos_id(), processor.unk_id(), processor.bos_id()) == (0, 1, 2, -1)


def test_a_line_is_cut_into_subwords(vocabulary):
    ids = vocabulary.encode("the old dog")
    assert 1 < len(ids) < len("the old dog")
    assert "".join(map(vocabulary.decode, ([token] for token in ids))) == "the old dog"


def test_training_is_deterministic(vocabulary, tmp_path):
    again = Vocabulary.train(iter(TEXT), tmp_path / "v.spm", 340)
    assert again.fingerprint == vocabulary.fingerprint
    assert len(again.fingerprint) == 64


def test_user_symbols_are_one_piece(tmp_path):
    vocabulary = Vocabulary.train(
        TEXT, tmp_path / "v.spm", 350, user_symbols=("(NP", ")NP", f"{SPACE_MARK},x")
    )
    assert vocabulary.decode(vocabulary.encode("(NPdog)NP")[:1]) == "(NP"
    assert len(vocabulary.encode(f"{SPACE_MARK},x")) == 1
    check_lossless_in_python_and_graph(vocabulary, [f"(NP the dog )NP{SPACE_MARK},x"])


def test_a_vocabulary_too_large_for_the_text_names_the_largest(tmp_path):
    path = tmp_path / "v.spm"
    with pytest.raises(VocabularyTooLargeError, match=r"--vocab_size=50000: .* --vocab_size=\d+") as raised:
        Vocabulary.train(TEXT, path, 50_000)
    assert not any(tmp_path.iterdir())
    assert Vocabulary.train(TEXT, path, raised.value.max_size).size == raised.value.max_size


def test_a_vocabulary_smaller_than_its_characters_is_refused(tmp_path):
    with pytest.raises(T2TError, match=r"--vocab_size=100: too small, .* need \d+"):
        Vocabulary.train(TEXT, tmp_path / "v.spm", 100)


def test_no_text_is_refused(tmp_path):
    with pytest.raises(T2TError, match="every line is empty"):
        Vocabulary.train(["", ""], tmp_path / "v.spm", 300)


@pytest.mark.parametrize("content", [b"", b"no model", b"\n\3\n\1\xff" * 2, "half"])
def test_a_corrupt_file_is_named(vocabulary, tmp_path, content):
    path = tmp_path / "bad.spm"
    path.write_bytes(vocabulary.content[: len(vocabulary.content) // 2 + 1] if content == "half" else content)
    with pytest.raises(T2TError, match=r"bad\.spm: corrupt"):
        Vocabulary(path)


def test_a_model_with_other_ids_is_refused(tmp_path):
    with (tmp_path / "other.spm").open("wb") as model:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(TEXT), model_writer=model, vocab_size=60, model_type="bpe", minloglevel=2
        )
    with pytest.raises(T2TError, match=r"other\.spm: PAD and EOS of this vocabulary are not 0 and 1"):
        Vocabulary(tmp_path / "other.spm")

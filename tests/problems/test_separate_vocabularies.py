"""Problems whose inputs and targets have a vocabulary each."""

from pathlib import Path

import pytest

from t2t_revival import T2TError, Text2TextProblem
from t2t_revival.data.vocabulary import open_vocabulary
from tests.support.line_corpus import write_pairs

ENGLISH, CHINESE = "a dog sees {} cats", "狗看见{}只猫"
TRAIN = [(ENGLISH.format(n), CHINESE.format(n)) for n in range(100)]
DEV = [("a dog", "狗"), ("cats", "猫")]
SIZES = {"vocab_size": 290}


class TranslateEnxx(Text2TextProblem):
    source_lang, target_lang = "en", "xx"


class TwoScripts(TranslateEnxx):
    separate_vocabularies = True


@pytest.fixture
def corpus(tmp_path):
    return str(write_pairs(tmp_path / "corpus", {"train": TRAIN, "dev": DEV}, ("en", "xx")))


@pytest.fixture
def made(corpus, tmp_path):
    """A problem with two vocabularies, and its data_dir."""
    problem = TranslateEnxx(data_source=corpus, separate_vocabularies=True, **SIZES)
    problem.generate_data(tmp_path / "data")
    return problem, tmp_path / "data"


def test_in_the_other_direction_they_are_swapped(made):
    problem, data = made
    reverse = problem.reversed()
    forward, backward = problem.open(data).vocabularies, reverse.open(data).vocabularies
    assert [each.fingerprint for each in backward] == [each.fingerprint for each in reversed(forward)]
    first = next(reverse.dataset("dev", data).as_numpy_iterator())
    assert first["inputs"].tolist() == [*forward.targets.encode("狗"), 1]
    assert list(reverse.open(data).text("dev")) == [pair[::-1] for pair in DEV]


def test_existing_data_is_taken_as_it_is_unless_the_other_is_asked_for(made):
    problem, data = made
    assert TranslateEnxx().generate_data(data) == problem.open(data).metadata
    with pytest.raises(
        T2TError, match="made with separate_vocabularies=True, not False: give another --data_dir"
    ):
        TranslateEnxx(separate_vocabularies=False).open(data)
    with pytest.raises(T2TError, match="vocab_size=290, not 300"):
        TranslateEnxx(vocab_size=300).open(data)


def test_another_target_vocabulary_or_none_is_refused(made):
    problem, data = made
    metadata = problem.open(data).metadata
    (data / metadata.target_vocab_file).write_bytes((data / metadata.vocab_file).read_bytes())
    with pytest.raises(T2TError, match=r"\.xx\.290\.spm: not the vocabulary that the shards"):
        problem.open(data)
    (data / metadata.target_vocab_file).unlink()
    with pytest.raises(T2TError, match=f"{metadata.target_vocab_file}: no such vocabulary"):
        problem.open(data)


def test_given_vocabularies_are_copied(made, corpus, tmp_path):
    """Takes two files as separate vocabularies, without another flag."""
    problem, data = made
    files = [data / each.name for each in problem.open(data).metadata.vocabularies]
    other = TranslateEnxx(data_source=corpus, vocab_file=",".join(map(str, files)))
    metadata = other.generate_data(tmp_path / "other")
    assert metadata.vocabularies == problem.open(data).metadata.vocabularies
    assert (tmp_path / "other" / files[1].name).read_bytes() == files[1].read_bytes()
    with pytest.raises(T2TError, match="separate_vocabularies=True, not False"):
        TranslateEnxx(vocab_file=files[0]).open(tmp_path / "other")
    with pytest.raises(
        T2TError, match=r"made with vocab_file=vocab\.translate_enxx\.xx\.290\.spm, not .*en\.290"
    ):
        TranslateEnxx(vocab_file=files[::-1]).open(tmp_path / "other")


def test_both_grow_by_the_text_of_their_side(made, corpus, tmp_path):
    problem, data = made
    files = [data / each.name for each in problem.open(data).metadata.vocabularies]
    Path(corpus, "train.en").write_text("the birds fly north ω\n" * 100, encoding="utf-8")
    Path(corpus, "train.xx").write_text("鸟往北飞\n" * 100, encoding="utf-8")
    grown = TranslateEnxx(data_source=corpus, vocab_file=files, update_vocab=True)
    grown.generate_data(tmp_path / "grown")
    for new, old, piece in zip(grown.open(tmp_path / "grown").vocabularies, files, "ω鸟", strict=True):
        older = open_vocabulary(old)
        assert new.size > older.size
        assert new.pieces[: older.size] == older.pieces
        assert piece in new.pieces[older.size :]


def test_a_size_that_one_side_does_not_reach_names_that_side(corpus, tmp_path):
    problem = TranslateEnxx(data_source=corpus, separate_vocabularies=True, vocab_size=9000)
    with pytest.raises(T2TError, match=r"^en: --vocab_size=9000: the text yields at most"):
        problem.generate_data(tmp_path / "data")
    chosen = TranslateEnxx(data_source=corpus, separate_vocabularies=True).generate_data(tmp_path / "data")
    assert chosen.vocab_size != chosen.target_vocab_size, "each as large as its text allows"


def test_messages_ask_for_two():
    start = "t2t-datagen --problem=two_scripts --data_dir=d --data_source=FOLDER"
    assert str(TwoScripts().datagen_command(Path("d"))) == f"{start} --separate_vocabularies"
    files = [Path("a.spm"), Path("b.spm")]
    assert str(TwoScripts().datagen_command(Path("d"), files)) == f"{start} --vocab_file=a.spm,b.spm"

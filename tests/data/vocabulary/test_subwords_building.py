"""Building T2T's subword vocabulary: the subtokens that T2T 1.15.7 builds, and the cases of its own tests.

`subwords_built.json` was made by T2T's `SubwordTextEncoder`. The corpora and the expected subtokens of the
tests from `test_frequent_pieces` on are those of T2T's `text_encoder_test.py`.
"""

import json
import pickle
import random
import string
from collections import Counter
from pathlib import Path

import pytest

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "reference" / "subwords_built.json").read_text(encoding="utf-8")
)
TEXT = REFERENCE["text"]
FOX = "The quick brown fox jumps over the lazy dog"
RESERVED = ["<pad>", "<EOS>", "<S>", "<E>"]


def words(text):
    return Counter(text.split(" "))


@pytest.mark.parametrize("built", REFERENCE["built"], ids=lambda built: str(built["target_size"]))
def test_text_gives_the_subtokens_and_ids_that_t2t_gives(built):
    settings = {key: built[key] for key in ("max_subtoken_length", "reserved_tokens") if key in built}
    vocabulary = SubwordVocabulary.build_from_generator(iter(TEXT), built["target_size"], **settings)
    assert vocabulary.subtokens == built["subtokens"]
    lines = [*TEXT[:3], "Ein neues Wort: größer_als 7!"]
    assert vocabulary.encode_batch(lines) == built["ids"]
    assert [vocabulary.decode(ids) for ids in built["ids"]] == lines


def test_counts_and_the_file_are_t2ts(tmp_path):
    expected = REFERENCE["from_counts"]
    letters = SubwordVocabulary.build_from_generator(TEXT, 400)
    counts = Counter(run for text in TEXT for run in _runs_of(letters, text))
    vocabulary = SubwordVocabulary.build_from_token_counts(
        counts, expected["min_count"], expected["num_iterations"]
    )
    assert vocabulary.subtokens == expected["subtokens"]
    vocabulary.store_to_file(tmp_path / "v.subwords")
    assert (tmp_path / "v.subwords").read_text(encoding="utf-8") == expected["file"]


def _runs_of(vocabulary, text):
    """Returns the separately encoded runs of ids: each ends in "_"."""
    runs = "".join(vocabulary.subtokens[token] for token in vocabulary.encode(text)).split("_")[:-1]
    return [run.replace("\\u", "_").replace("\\\\", "\\") for run in runs]


def test_decoding_ends_at_eos_where_t2t_writes_it():
    vocabulary = SubwordVocabulary("v.subwords", REFERENCE["from_counts"]["file"].encode())
    for ids, whole, _ in REFERENCE["decode"]:
        assert vocabulary.decode(ids) == whole.partition("<EOS>")[0].replace("<pad>", "")
    assert ["<EOS>", ""] in [found[1:] for found in REFERENCE["decode"]], "T2T's; ours is the second"


@pytest.mark.nightly
@pytest.mark.slow
def test_long_runs_take_no_time_where_pieces_are_short():
    draw = random.Random(0)
    runs = ["".join(draw.choices(string.ascii_uppercase, k=4000)) for _ in range(50)]
    vocabulary = SubwordVocabulary.build_to_target_size(
        600, Counter(runs), 1, 500, num_iterations=1, max_subtoken_length=10
    )
    assert set(string.ascii_uppercase) <= vocabulary.alphabet & set(vocabulary.subtokens)


@pytest.mark.parametrize("generated", [True, False])
def test_reserved_tokens_of_ones_own(generated):
    vocabulary = (
        SubwordVocabulary.build_from_generator((FOX for _ in range(3)), 10, reserved_tokens=RESERVED)
        if generated
        else SubwordVocabulary.build_to_target_size(10, words(FOX), 2, 10, reserved_tokens=RESERVED)
    )
    assert (vocabulary.decode([2]), vocabulary.decode([3])) == ("<S>", "<E>")
    assert vocabulary.decode([*vocabulary.encode("hi"), 2]) == "hi<S>"
    assert vocabulary.decode(vocabulary.encode(FOX)) == FOX


@pytest.mark.parametrize("quotes", [True, False])
@pytest.mark.parametrize("text", ["dog", FOX.lower()])
def test_stored_and_loaded(text, quotes, tmp_path):
    vocabulary = SubwordVocabulary.build_to_target_size(100, words(text), 2, 10)
    loaded = vocabulary.store_to_file(tmp_path / "v.subwords", add_single_quotes=quotes)
    for other in (loaded, pickle.loads(pickle.dumps(vocabulary))):
        assert other.subtokens == vocabulary.subtokens
        assert other.alphabet == vocabulary.alphabet
        assert other.encode("<pad> <EOS> dog") == vocabulary.encode("<pad> <EOS> dog")
    assert (tmp_path / "v.subwords").read_text()[0] == ("'" if quotes else "<")


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(
        T2TError, match=r"reserved_tokens=\['<S>'\]: they must begin with \['<pad>', '<EOS>'\]"
    ):
        SubwordVocabulary.build_from_token_counts({"a": 1}, 1, reserved_tokens=["<S>"])
    spaced = SubwordVocabulary.build_from_generator(["a . b"], 10)
    with pytest.raises(T2TError, match=r"the subtoken '.*' needs quotes"):
        spaced.store_to_file(tmp_path / "v.subwords", add_single_quotes=False)
    assert not any(tmp_path.iterdir())


def test_a_line_feed_is_no_subtoken(tmp_path):
    vocabulary = SubwordVocabulary.build_from_generator(["a\nb"], 10)
    assert vocabulary.store_to_file(tmp_path / "v.subwords").decode(vocabulary.encode("a\nb")) == "a\nb"

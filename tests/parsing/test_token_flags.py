"""What a parser's model is told of its vocabulary."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data.vocabulary import EOS, Vocabulary
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model.deterministic_attention import DeterministicAttention
from t2t_revival.parsing.symbols import symbols
from t2t_revival.parsing.word_marks import word_marks

WORDS = ["The", "dog", "XX", "MAXX", "(NP", ")NP", "x", "€", "▁", "sleeps", "(", "."]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    text = [f"The {noun} sleeps ( again ) near XX houses ." for noun in ("dog", "cat", "horse")] * 9
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(text, path, 310, user_symbols=symbols(["NP", "S"]))


@pytest.fixture(scope="module")
def attention(vocabulary: Vocabulary) -> DeterministicAttention:
    layer = DeterministicAttention(HParams(hidden_size=2, num_heads=1), vocabulary.size)
    layer.build()
    layer.marks.assign(word_marks(vocabulary.pieces))
    return layer


@settings(deadline=None, max_examples=60)
@given(words=st.lists(st.sampled_from(WORDS) | st.text("aX▁€(N", min_size=1), min_size=1, max_size=9))
def test_every_word_is_found_at_its_first_token(
    words: list[str], vocabulary: Vocabulary, attention: DeterministicAttention
) -> None:
    ids = vocabulary.encode(" ".join(words))
    found = attention.words(np.array([[*ids, EOS]]), np.zeros((1, len(ids) + 1, 2), "float32"))
    (numbers,) = np.asarray(found.numbers)
    places = [place for place, number in enumerate(numbers) if number >= 0]
    assert [numbers[place] for place in places] == list(range(len(words) + 1))
    pieces = [vocabulary.decode(ids[start:end]).strip(" ") for start, end in pairwise(places)]
    assert pieces == words


def test_one_token_stands_for_a_word(vocabulary: Vocabulary) -> None:
    (token,) = np.flatnonzero(word_marks(vocabulary.pieces)[:, 2])
    assert vocabulary.decode([int(token)]) == "XX "


def test_a_vocabulary_without_trees_is_refused() -> None:
    with pytest.raises(T2TError, match="deterministic_attention=True is for parsing"):
        word_marks(["<pad>", "</s>", "<unk>", "a", "▁b"])

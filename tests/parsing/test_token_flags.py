"""Token flags of a parser's vocabulary, as deterministic attention reads them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.sentencepiece import EOS, Vocabulary
from t2t_revival.model.extensions.deterministic_attention import DeterministicAttention
from t2t_revival.parsing.symbols import symbols, token_flags

WORDS = ["The", "dog", "XX", "MAXX", "(NP", ")NP", "x", "€", "▁", "sleeps", "(", "."]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    text = [f"The {noun} sleeps ( again ) near XX houses ." for noun in ("dog", "cat", "horse")] * 9
    path = tmp_path_factory.mktemp("vocabulary") / "v.spm"
    return Vocabulary.train(text, path, 310, user_symbols=symbols(["NP", "S"]))


@pytest.fixture(scope="module")
def attention(vocabulary: Vocabulary) -> DeterministicAttention:
    layer = DeterministicAttention(vocabulary.size, 2)
    layer.build()
    layer.token_flags.assign(token_flags(vocabulary.pieces))
    return layer


@given(words=st.lists(st.sampled_from(WORDS) | st.text("aX▁€(N", min_size=1), min_size=1, max_size=9))
def test_every_word_is_found_at_its_first_token(
    words: list[str], vocabulary: Vocabulary, attention: DeterministicAttention
) -> None:
    ids = vocabulary.encode(" ".join(words))
    found = attention.words(np.array([[*ids, EOS]]), np.zeros((1, len(ids) + 1, 2), "float32"))
    (numbers,) = np.asarray(found.word_ids)
    places = [place for place, number in enumerate(numbers) if number >= 0]
    assert [numbers[place] for place in places] == list(range(len(words) + 1))
    pieces = [vocabulary.decode(ids[start:end]).strip(" ") for start, end in pairwise(places)]
    assert pieces == words


def test_one_token_stands_for_a_word(vocabulary: Vocabulary) -> None:
    (token,) = np.flatnonzero(token_flags(vocabulary.pieces)[:, 2])
    assert vocabulary.decode([int(token)]) == "XX "


def test_flags_are_not_trained(attention: DeterministicAttention) -> None:
    assert [weight.name for weight in attention.trainable_weights] == ["kernel"]

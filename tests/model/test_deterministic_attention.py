"""Which word the decoder of a parser is shown."""

import numpy as np
import pytest
from keras import ops

from t2t_revival.model.extensions.deterministic_attention import DeterministicAttention

EOS, BEGINS, INSIDE, ENDS, WORD = 1, 3, 4, 5, 6
VOCAB = 7


@pytest.fixture
def attention() -> DeterministicAttention:
    layer = DeterministicAttention(VOCAB, hidden_size=8)
    layer.build()
    marks = np.zeros((VOCAB, 3), "float32")
    marks[[EOS, BEGINS], 0] = marks[ENDS, 1] = marks[WORD, 2] = 1
    layer.token_flags.assign(marks)
    return layer


def test_a_word_is_where_its_first_token_is(attention: DeterministicAttention) -> None:
    source = np.array(
        [
            [INSIDE, INSIDE, BEGINS, INSIDE, BEGINS, EOS],
            [ENDS, INSIDE, INSIDE, EOS, 0, 0],  # a token that ends a word: what follows is the next
            [INSIDE, ENDS, EOS, 0, 0, 0],
        ]
    )
    words = attention.words(source, np.zeros((3, 6, attention.hidden_size), "float32"))
    expected = [[0, -1, 1, -1, 2, 3], [0, 1, -1, 2, -1, -1], [0, -1, 1, -1, -1, -1]]
    assert ops.convert_to_numpy(words.word_ids).tolist() == expected


def test_marks_are_not_trained(attention: DeterministicAttention) -> None:
    assert [weight.name for weight in attention.trainable_weights] == ["kernel"]

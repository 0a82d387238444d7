"""No text is unknown to a vocabulary that is trained here, so that no model learns to write UNK."""

from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.data.vocabulary.sentencepiece import UNK, Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
def test_no_text_is_encoded_with_unk(vocabulary_file, subwords_file, text):
    assert UNK not in Vocabulary(vocabulary_file).encode(text)
    assert SubwordVocabulary(subwords_file).unknown == 0, "T2T's vocabularies spell every character"

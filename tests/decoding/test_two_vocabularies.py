"""Models of two vocabularies: labels of attention, and a format that needs two of one kind."""

from pathlib import Path

import pytest

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.addons.attention.attention import compute_attention
from t2t_revival.addons.ctranslate2.format import write_ctranslate2
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.contract.decoding import SUBWORDS, folder_of


def test_attention_is_labelled_by_both() -> None:
    translator = Translator.load(folder_of(SUBWORDS))
    inputs, targets = translator.vocabularies
    found = compute_attention(translator, "the dog", "小猫")
    assert (found.source, found.target) == ("the dog", "小猫")
    last = found.kinds[-1]
    assert last.memory == [*(inputs.pieces[i] for i in inputs.encode("the dog")), "<EOS>"]
    assert last.queries == [*(targets.pieces[i] for i in targets.encode("小猫")), "<EOS>"]


def test_ctranslate2_refuses_vocabularies_of_two_kinds(
    vocabulary: Vocabulary, subwords_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    subwords = SubwordVocabulary(subwords_file)
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2)
    mixed = Transformer(hparams, vocabulary.size, target_vocab_size=subwords.size)
    translator = Translator(mixed, vocabulary, target_vocabulary=subwords)
    with pytest.raises(T2TError, match="CTranslate2 needs two vocabularies of one kind"):
        write_ctranslate2(mixed, translator.vocabularies, 40, tmp_path / "model")
    assert not (tmp_path / "model").exists()

"""Text is encoded by the source's vocabulary and decoded by the target's, on every engine."""

from pathlib import Path

import keras
import pytest

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translator
from t2t_revival.addons.attention.attention import compute_attention
from t2t_revival.addons.ctranslate2.format import write_ctranslate2
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.model_folder import ModelFolder, Run

CHINESE = ["老狗看见一只小猫。", "小鸟跟着黑马。", "孩子找到鸟。"] * 9
HPARAMS = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=30)
OPTIONS = DecodeHParams(beam_size=2, extra_length=4)


@pytest.fixture(scope="module")
def chinese(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return Vocabulary.train(CHINESE, tmp_path_factory.mktemp("vocabulary") / "zh.spm", 290)


def model(vocabulary: Vocabulary, chinese: Vocabulary) -> Transformer:
    keras.utils.set_random_seed(3)
    made = Transformer(HPARAMS, vocabulary.size, target_vocab_size=chinese.size)
    for embedding in (made.source_embedding, made.target_embedding):
        embedding.embeddings.assign(embedding.embeddings * 3.0)
    return made


@pytest.fixture(scope="module")
def out(vocabulary: Vocabulary, chinese: Vocabulary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output_dir with random weights."""
    folder = tmp_path_factory.mktemp("out")
    names = [(each.path.name, each.fingerprint) for each in (vocabulary, chinese)]
    run = Run("translate_ende", "tiny", "data", *names[0], {"beam_size": 2, "extra_length": 4}, *names[1])
    ModelFolder(folder).save(run, HPARAMS, vocabulary.path, chinese.path)
    arrays = checkpoints.model_arrays(model(vocabulary, chinese))
    checkpoints.save(folder / "model.ckpt-7.npz", arrays, {"step": 7})
    return folder


@pytest.fixture(scope="module")
def translator(out: Path) -> Translator:
    return Translator.load(out)


def test_attention_is_labelled_by_both(translator: Translator, chinese: Vocabulary) -> None:
    found = compute_attention(translator, "the dog", "小猫")
    assert (found.source, found.target) == ("the dog", "小猫")
    last = found.kinds[-1]
    assert last.memory == [
        *(translator.vocabulary.pieces[i] for i in translator.encode("the dog")[:-1]),
        "<EOS>",
    ]
    assert last.queries == [*(chinese.pieces[i] for i in chinese.encode("小猫")), "<EOS>"]


def test_ctranslate2_refuses_vocabularies_of_two_kinds(
    vocabulary: Vocabulary, subwords_file: Path, tmp_path: Path
) -> None:
    pytest.importorskip("ctranslate2")
    subwords = SubwordVocabulary(subwords_file)
    mixed = Transformer(HPARAMS, vocabulary.size, target_vocab_size=subwords.size)
    translator = Translator(mixed, vocabulary, OPTIONS, target_vocabulary=subwords)
    with pytest.raises(T2TError, match="CTranslate2 needs two vocabularies of one kind"):
        write_ctranslate2(mixed, translator.vocabularies, 40, tmp_path / "model")
    assert not (tmp_path / "model").exists()

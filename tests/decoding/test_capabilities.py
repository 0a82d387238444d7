"""Engines and formats refuse models with hyperparameters or values that nobody has tried there."""

import dataclasses

import keras
import pytest

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.decoding.capabilities import HOLDERS, OF_TRAINING, SIZES, VALUES, check_held
from t2t_revival.decoding.ctranslate2_format import check_convertible
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.hparams import hparams
from t2t_revival.serving.litert import write_litert
from t2t_revival.serving.module import ServingModule
from tests.support.searches import ensemble, jax_engine

TINY = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2)


@dataclasses.dataclass(frozen=True)
class Newer(HParams):
    """Hyperparameters of a later version."""

    sandwich: bool = False


def test_each_hyperparameter_is_listed_once():
    listed = [*VALUES, *SIZES, *OF_TRAINING]
    assert sorted(listed) == sorted(field.name for field in dataclasses.fields(HParams))
    assert all(set(values) == set(HOLDERS) for values in VALUES.values())


def test_what_is_listed_is_what_there_is():
    for name in ("pos", "decoder_self_attention"):
        for values in VALUES[name].values():
            assert set(values) <= set(hparams.ABOUT[name].choices)


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_new_value_is_refused(holder, monkeypatch):
    check_held(TINY, holder)
    monkeypatch.setitem(hparams.ABOUT, "pos", hparams.About("", choices=("rotary",)))
    with pytest.raises(T2TError, match=f"^{holder} does not support pos=rotary, which this model has: "):
        check_held(TINY.replace(pos="rotary"), holder)


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_new_hyperparameter_is_refused_where_it_has_an_effect(holder):
    newer = Newer(**dataclasses.asdict(TINY))
    check_held(newer, holder)
    with pytest.raises(T2TError, match=f"^{holder} does not support sandwich=True, which this model has: "):
        check_held(dataclasses.replace(newer, sandwich=True), holder)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    text = [f"the dog sees {number} houses . der Hund sieht" for number in range(18)]
    vocabulary = Vocabulary.train(text, tmp_path_factory.mktemp("vocabulary") / "v.spm", 300)
    keras.utils.set_random_seed(3)
    return Translator(Transformer(TINY, vocabulary.size), vocabulary)


@pytest.mark.parametrize(
    "use",
    [
        lambda translator, folder: ServingModule(translator),
        lambda translator, folder: write_litert(translator, folder),
        lambda translator, folder: check_convertible(translator.model.hparams),
        lambda translator, folder: Translator(
            translator.model, translator.vocabulary, config=EngineConfig(precision="int8")
        ),
        lambda translator, folder: jax_engine(translator.model),
        lambda translator, folder: ensemble(translator.model),
    ],
)
def test_all_that_hold_a_model_ask(translator, tmp_path, monkeypatch, use):
    monkeypatch.setitem(hparams.ABOUT, "pos", hparams.About("", choices=("rotary",)))
    monkeypatch.setattr(translator.model, "hparams", TINY.replace(pos="rotary"))
    with pytest.raises(T2TError, match=r"does not support pos=rotary, which this model has: .+$"):
        use(translator, tmp_path / "new")
    assert not (tmp_path / "new").exists()

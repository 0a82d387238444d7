"""One table says what goes with what; what nobody has tried somewhere is refused there."""

import dataclasses
import pkgutil

import keras
import pytest

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translator
from t2t_revival.addons.ctranslate2.format import check_convertible
from t2t_revival.addons.formats import FORMATS
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.decoding import capabilities
from t2t_revival.decoding import options as settings
from t2t_revival.decoding.capabilities import OF_CALLS_HELD_BY, Place, check, check_held
from t2t_revival.decoding.combinations import EXCLUDE, NEEDS, OF_CALLS
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.engines import CLASSES
from t2t_revival.decoding.holders import Holder
from t2t_revival.hparams import hparams
from t2t_revival.hparams.variants import ALL, M2M100, PACKED, POSITIONS, SAVED_MODEL, VARIANTS, Variant
from t2t_revival.serving.module import ServingModule
from tests.support.m2m100_models import MODEL
from tests.support.searches import ensemble, jax_engine
from tests.support.setting_values import values_of

TINY = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, pos="timing")


SETTINGS = {name: values_of(name)[len(values_of(name)) // 2] for name in settings.SETTINGS}
OF_DECODING = [place for place in vars(capabilities).values() if isinstance(place, Place)]
PLACES = [*dict.fromkeys([*OF_DECODING, *(row.place for row in FORMATS.values())])]
OTHER_PLACES = [row.other_place for row in FORMATS.values() if row.other_place]
HOLDERS = [place for place in [*PLACES, *OTHER_PLACES] if place.holds]
METHODS = {  # of engines, by what they are for
    "constraints": "spelling",
    "scores": "score",
    "annotations": "annotate",
    "coverage_penalty": "attend",
}


@dataclasses.dataclass(frozen=True)
class NewerSettings(DecodeHParams):
    """Settings of a later version."""

    sandwich: bool = False


@dataclasses.dataclass(frozen=True)
class Newer(HParams):
    """Hyperparameters of a later version."""

    sandwich: bool = hparams.hparam(False, "layers in another order", model=True)


def tiny_of(holder):
    """Returns the hyperparameters of a model that a place holds."""
    return TINY.replace(**MODEL) if holder.holds == M2M100 else TINY


def test_features_are_settings_or_of_calls():
    assert OF_CALLS_HELD_BY.keys() == OF_CALLS.keys()
    known = SETTINGS.keys() | OF_CALLS.keys()
    listed = [
        *(place.remedies.keys() for place in PLACES),
        *({feature, *excluded} for place in PLACES for feature, excluded in place.exclude.items()),
        *({feature, *excluded} for feature, excluded in EXCLUDE.items()),
        *({feature, needed.partition("=")[0]} for feature, needed in NEEDS.items()),
    ]
    assert set().union(*listed) <= known


def test_each_place_is_a_holder_of_its_own():
    holders = [place.holder for place in PLACES if place.holder]
    assert len(holders) == len(Holder) == len(set(holders))


def excluded_in(names: set[str]) -> list[set[str]]:
    return [{feature, other} for feature in names & EXCLUDE.keys() for other in names & EXCLUDE[feature]]


@pytest.mark.parametrize("first", SETTINGS)
def test_pairs_are_refused_or_made(first):
    for second in (*SETTINGS, "greedy", "n", "prefixes", "constraints"):
        names = {first, second} | {NEEDS[name].partition("=")[0] for name in {first, second} & NEEDS.keys()}
        given = {name: value for name, value in SETTINGS.items() if name in names}
        given |= {"beam_size": 1} if second == "greedy" else {}
        shown = {name: OF_CALLS.get(name, f"{name}={given.get(name)}") for name in names}
        said = ""
        try:
            check(DecodeHParams(**given).asked({name: name in names for name in OF_CALLS}))
        except T2TError as error:
            said = str(error).removesuffix(": leave one of them out")
        expected = [{shown[name] for name in pair} for pair in excluded_in(names)]
        assert {*said.split(" cannot be combined with ")} in (expected or [{""}])


@pytest.mark.parametrize("feature", sorted(NEEDS))
def test_what_has_no_effect_alone(feature):
    with pytest.raises(T2TError, match=f"{feature}=.* has no effect without {NEEDS[feature]}"):
        DecodeHParams(**{feature: SETTINGS[feature]})


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_new_setting_is_refused(place):
    with pytest.raises(T2TError, match=f"^{place.name} does not support sandwich=True: {place.remedy}$"):
        check(NewerSettings(sandwich=True).asked(), place)


ENGINES = [f"decoding.engines.{name}" for name in CLASSES.values()]


@pytest.mark.parametrize("name", [*ENGINES, "addons.ctranslate2.engine:CTranslate2Engine"])
def test_engines_have_the_methods_of_what_they_support(name):
    engine = pkgutil.resolve_name(f"t2t_revival.{name}")
    for feature, method in METHODS.items():
        assert (method in vars(engine)) == (feature in engine.place.features), feature


def test_attention_of_one_set_of_heads():
    for name, value in (("alignments", "pharaoh"), ("markup", "html")):
        asked = DecodeHParams(coverage_penalty=0.2, **{name: value}).asked()
        check(asked, capabilities.TENSORFLOW)
        with pytest.raises(T2TError, match=rf"coverage_penalty=0\.2 cannot be combined with {name}={value}"):
            check(asked, capabilities.CTRANSLATE2)


@pytest.mark.parametrize("place", [capabilities.TENSORFLOW, capabilities.JAX], ids=lambda place: place.name)
def test_int8_is_that_of_ctranslate2(place):
    asked = DecodeHParams().asked({"int8": True})
    check(asked, capabilities.CTRANSLATE2)
    with pytest.raises(T2TError, match=f"^{place.name} does not support int8: use --engine=ctranslate2, or"):
        check(asked, place)


def test_each_hyperparameter_of_a_model_is_listed_once():
    of_models = {name for name, about in hparams.ABOUT.items() if about.model}
    assert VARIANTS.keys() == of_models
    assert {place.holds for place in HOLDERS} == ALL - {PACKED}


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.name)
def test_a_new_value_is_refused(holder, monkeypatch):
    tiny = tiny_of(holder)
    check_held(tiny, holder)
    monkeypatch.setitem(hparams.ABOUT, "norm_type", hparams.About("", choices=("power",)))
    with pytest.raises(T2TError, match=rf"^{holder.name} does not support norm_type=power, which this model"):
        check_held(tiny.replace(norm_type="power"), holder)


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.name)
def test_a_variant_is_refused_by_what_its_row_does_not_name(holder, monkeypatch):
    monkeypatch.setitem(hparams.ABOUT, "pos", hparams.About("", choices=("alibi",)))
    monkeypatch.setitem(POSITIONS, "alibi", Variant(frozenset({SAVED_MODEL}), "Press et al., 2022"))
    newer = TINY.replace(pos="alibi")
    if holder.holds == SAVED_MODEL:
        check_held(newer, holder)
        return
    with pytest.raises(T2TError, match=rf"^{holder.name} does not support pos=alibi, which this model"):
        check_held(newer, holder)


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda holder: holder.name)
def test_a_new_hyperparameter_is_refused_where_it_has_an_effect(holder):
    newer = Newer(**dataclasses.asdict(tiny_of(holder)))
    check_held(newer, holder)
    with pytest.raises(T2TError, match=rf"^{holder.name} does not support sandwich=True, which this model"):
        check_held(dataclasses.replace(newer, sandwich=True), holder)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    text = [f"the dog sees {number} houses . der Hund sieht" for number in range(18)]
    vocabulary = Vocabulary.train(text, tmp_path_factory.mktemp("vocabulary") / "v.spm", 300)
    keras.utils.set_random_seed(3)
    return Translator(Transformer(TINY, vocabulary.size), vocabulary)


def test_a_translator_on_tensorflow_has_no_int8(translator):
    with pytest.raises(T2TError, match="TensorFlow does not support int8"):
        Translator(translator.model, translator.vocabulary, config=EngineConfig(precision="int8"))


@pytest.mark.parametrize(
    "use",
    [
        lambda translator, folder: ServingModule(translator),
        lambda translator, folder: check_convertible(translator.model.hparams),
        lambda translator, folder: jax_engine(translator.model),
        lambda translator, folder: ensemble(translator.model),
    ],
)
def test_all_that_hold_a_model_ask(translator, tmp_path, monkeypatch, use):
    monkeypatch.setitem(hparams.ABOUT, "norm_type", hparams.About("", choices=("power",)))
    monkeypatch.setattr(translator.model, "hparams", TINY.replace(norm_type="power"))
    with pytest.raises(T2TError, match=r"does not support norm_type=power, which this model has: .+$"):
        use(translator, tmp_path / "new")
    assert not (tmp_path / "new").exists()

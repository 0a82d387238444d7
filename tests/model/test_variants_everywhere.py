"""Each variant of the model has its scores in all that its row names; the others refuse it by name."""

import shutil
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.special

from t2t_revival import RunConfig, T2TError, Translator
from t2t_revival.addons.imports import m2m100
from t2t_revival.addons.imports.marian import import_model
from t2t_revival.addons.imports.transformers import import_folder
from t2t_revival.data.packing import SEGMENTS
from t2t_revival.data.vocabulary.text_encoder import EOS
from t2t_revival.hparams.variants import ALL, ANY, M2M100, PACKED, VARIANTS
from t2t_revival.training.run_config import packs
from tests.support.doors import HPARAMS, LINES, Doors, Model, eagerly, on_jax
from tests.support.exported import asking
from tests.support.m2m100_models import MODEL, write_multilingual
from tests.support.searches import ensemble

LINE, OUTPUT = LINES[2], "the house sees"
BASE = "beam_size=2,extra_length=4"
USUAL = "beam_size=4,alpha=0.6,extra_length=50"  # for formats that hold no settings
ONE_OF_ANY = {  # for rows that are those of any value
    "attention_window": 2,
    "norm_epsilon": 0.1,
    "attention_key_channels": 128,
    "attention_value_channels": 128,
    "projection_bias": True,
    "softmax_bias": False,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "hidden_size": 128,
    "filter_size": 192,
    "decoder_filter_size": 128,
    "num_heads": 1,
}
OF_THEIR_OWN = (
    "CTranslate2",
    "transformers",
    "Marian",
    M2M100,
)  # models, and not the classes that are trained
BESIDE = {  # what values need, and settings of theirs
    ("layer_preprocess_sequence", "n"): {"layer_postprocess_sequence": "da"},
    ("start_token", 1): {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"},  # as M2M100
    ("pos", "relative"): {"max_relative_position": 1},
    ("attention_key_channels", 128): {"attention_value_channels": 128},
    ("attention_value_channels", 128): {"attention_key_channels": 128},
}


class Holders(Doors):
    """Holders as `Variant.held_by` names them: the score of a given output, or of the best one, of a line."""

    def _load(self, engine="tensorflow", folder=None):
        return Translator.load(folder or self._folder, decode_hparams=BASE, engine=engine)

    def expected(self, holder):
        kind = score if holder in (*OF_THEIR_OWN, PACKED) else best
        return eagerly(lambda: kind(self._load()))

    def JAX(self):
        with on_jax():
            return self.expected("JAX")

    def ensemble(self):
        alone = self._load()
        both = ensemble(alone.model, alone.model)
        translator = Translator(both, alone.vocabulary, alone.options, alone.max_length)
        return eagerly(lambda: best(translator))

    def SavedModel(self):
        return best(asking(Model(self._load(), heads=None)))

    def CTranslate2(self):
        return score(self._load("ctranslate2"))

    def LiteRT(self):
        _, files = self.litert(BASE, False)
        return np.frombuffer(files["scores"], np.float32)[0]

    def _and_back(self, export, take_in):
        export(USUAL, False)
        (theirs,) = (self._folder / "export").iterdir()
        shutil.rmtree(self._folder / "back", ignore_errors=True)
        take_in(theirs, self._folder / "back", "translate_en_de")
        return score(self._load(folder=self._folder / "back"))

    def transformers(self):
        return self._and_back(self.transformers_format, import_folder)

    def Marian(self):
        return self._and_back(self.marian_format, import_model)

    def M2M100(self):
        def take_in(theirs, folder, problem):
            m2m100.import_folder(theirs, folder, m2m100.Pair(problem))

        return self._and_back(self.transformers_format, take_in)

    def packed(self):
        """Scores an output behind another pair in one row."""
        translator = self._load()
        packs(RunConfig("run", packed=True), translator.model.hparams, compiles_shapes=False)
        sides = {
            "inputs": [[*translator.vocabulary.encode(line), EOS] for line in ("dog dog", LINE)],
            "targets": [[*translator.vocabulary.encode(line), EOS] for line in ("the", OUTPUT)],
        }
        batch = {name: np.array([ids[0] + ids[1]], np.int32) for name, ids in sides.items()}
        for segments, ids in zip(SEGMENTS, sides.values(), strict=True):
            batch[segments] = np.repeat([[1, 2]], list(map(len, ids)), axis=1)
        logits = np.array(translator.model(batch))[0, len(sides["targets"][0]) :]
        chosen = np.take_along_axis(logits, np.array(sides["targets"][1])[:, None], axis=1)[:, 0]
        return (chosen - scipy.special.logsumexp(logits, axis=1)).sum()

    def bergamot(self):
        """Writes a model; tests/serving/test_bergamot_format.py reads one."""
        self.bergamot_format(USUAL, False)
        return self.expected("bergamot")


def best(translator):
    return translator.nbest([LINE])[0][0].score


def score(translator):
    return translator.score([(LINE, OUTPUT)])[0].log_prob


def cases():
    for name, rows in VARIANTS.items():
        for value, row in rows.items():
            value = ONE_OF_ANY.get(name, value) if value is ANY else value
            if value == getattr(HPARAMS, name) and name != "pos":
                continue  # that model's row of `pos` is enough
            for holder in sorted(ALL):
                is_held = holder in row.held_by
                usual = holder not in OF_THEIR_OWN or len(rows) == 1
                marks = [pytest.mark.slow, *[pytest.mark.nightly] * usual] * is_held
                yield pytest.param(name, value, holder, is_held, id=f"{name}={value}-{holder}", marks=marks)


@pytest.fixture(scope="module")
def holders(tmp_path_factory):
    @cache
    def made(name, value, multilingual):
        """Changes a model of ours, or one that came from M2M100."""
        changes, folder = {name: value, **BESIDE.get((name, value), {})}, tmp_path_factory.mktemp("model")
        if not multilingual:
            return Holders(folder, **changes)
        theirs = write_multilingual(folder / "theirs")
        m2m100.import_folder(theirs, folder / "out", m2m100.Pair("translate_en_de"))
        return Holders(folder, folder / "out", **{**MODEL, **changes})

    return made


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "value", "holder", "is_held"), cases())
def test_a_variant_is_held_or_refused(holders, name, value, holder, is_held):
    if holder == "CTranslate2" and not find_spec("ctranslate2"):
        pytest.skip("needs CTranslate2")
    models = holders(name, value, holder == M2M100)
    if is_held:
        assert getattr(models, holder)() == pytest.approx(models.expected(holder), rel=5e-3)
        return
    named = "|".join([name, *BESIDE.get((name, value), {})])
    with pytest.raises(T2TError, match=f"does not support ({named})=.*, which this model has"):
        getattr(models, holder)()


@pytest.mark.slow
def test_what_a_format_refuses_at_last_leaves_no_folder(tmp_path):
    with pytest.raises(T2TError, match="needs multiples of 64"):
        Holders(tmp_path, filter_size=96).bergamot()
    assert not [*tmp_path.rglob("export")]

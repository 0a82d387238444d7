"""`PROBLEM_rev`: the same files, read in the other direction."""

import numpy as np
import pytest

from t2t_revival import PairsSource, T2TError, Text2TextProblem, registry
from t2t_revival.data.config import DataConfig
from t2t_revival.problems.problem import Finished

PAIRS = {
    "train": [(f"a dog sees {n} cats", f"ein Hund sieht {n} Katzen") for n in range(60)],
    "dev": [("a cat", "eine Katze"), ("a dog", "ein Hund")],
}


class UsrAnimals(Text2TextProblem):
    "Animals."

    source_lang, target_lang = "en", "de"
    usual_hparams = ("small", "small", "small")

    def make_source(self, data_source, tmp_dir):
        assert (self.source_lang, self.target_lang) == ("en", "de")
        return PairsSource("animals", PAIRS, self.source_lang, self.target_lang, tmp_dir)

    def decode_hparams(self):
        return {"beam_size": 2, "alpha": 0.0, "extra_length": 5}


@pytest.fixture(autouse=True)
def registered():
    registry.register_problem(UsrAnimals)


@pytest.fixture
def data(tmp_path):
    registry.problem("usr_animals", vocab_size=300).generate_data(tmp_path)
    return tmp_path


def test_data_of_the_problem_serves_both_directions(data):
    before = {path: path.stat().st_mtime_ns for path in data.iterdir()}
    reverse = registry.problem("usr_animals_rev")
    assert reverse.has_data(data)
    reverse.generate_data(data)
    assert {path: path.stat().st_mtime_ns for path in data.iterdir()} == before
    assert list(reverse.open(data).text("dev")) == [(target, source) for source, target in PAIRS["dev"]]
    assert list(reverse.open(data).references("dev")) == list(reverse.open(data).text("dev"))
    forward = registry.problem("usr_animals")
    assert (
        reverse.open(data).vocabularies.inputs.fingerprint
        == forward.open(data).vocabularies.inputs.fingerprint
    )
    for one, other in zip(forward.dataset("dev", data), reverse.dataset("dev", data), strict=True):
        np.testing.assert_array_equal(one["inputs"], other["targets"])
        np.testing.assert_array_equal(one["targets"], other["inputs"])


def test_data_made_for_the_reverse_is_the_problems(data, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    metadata = registry.problem("usr_animals_rev", vocab_size=300).generate_data(other)
    assert metadata.name == "usr_animals"
    names = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (data, other)]
    assert names[0] == names[1]


def test_names_languages_and_settings():
    reverse = registry.problem("usr_animals_rev", data_source="x", vocab_size=700)
    assert reverse.name == "usr_animals_rev"
    assert (reverse.source_lang, reverse.target_lang) == ("de", "en")
    assert (reverse.config, reverse.was_reversed) == (DataConfig("x", 700), True)
    assert reverse.decode_hparams() == UsrAnimals().decode_hparams()
    assert reverse.usual_hparams == UsrAnimals.usual_hparams
    assert not UsrAnimals().was_reversed


def test_the_built_in_translations_have_a_reverse():
    listed = registry.list_problems()
    assert listed["translate_ende_rev"] == "translate_ende with inputs and targets swapped, on the same data."
    assert {"translate_enfr_rev", "usr_animals_rev"} <= set(listed)
    assert not {name for name in listed if name.startswith("parse") and name.endswith("_rev")}
    assert registry.problem("translate_ende_rev").approx_vocab_size == 37_000
    assert list(listed) == sorted(listed)


def test_what_has_no_reverse():
    @registry.register_problem
    class UsrShouting(UsrAnimals):
        def postprocess(self, inputs, output):
            return Finished(output.upper())

    for name, reason in (
        ("parse_wsj", "it has preprocess, postprocess, encode_target"),
        ("usr_shouting", "it has postprocess for one direction"),
    ):
        with pytest.raises(T2TError, match=f"problem {name} has no reverse: {reason}"):
            registry.problem(f"{name}_rev")
        assert f"{name}_rev" not in registry.list_problems()


def test_a_class_of_that_name_goes_before():
    @registry.register_problem
    class UsrAnimalsRev(UsrAnimals):
        "My own reverse."

    assert isinstance(registry.problem("usr_animals_rev"), UsrAnimalsRev)
    assert registry.list_problems()["usr_animals_rev"] == "My own reverse."

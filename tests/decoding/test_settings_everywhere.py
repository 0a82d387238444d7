"""Each setting of decoding changes what comes back, or is refused by name, wherever it can be given."""

import re
from importlib.util import find_spec

import pytest

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.decoding.holders import Holder
from t2t_revival.decoding.options import SETTINGS
from tests.support.doors import BASE, Doors
from tests.support.setting_values import NEED, values_of

OF_ARGOS = "Argos Translate has its own, beside which a model's usual ones are ignored"
IGNORED = {("argos_format", name): OF_ARGOS for name in ("beam_size", "alpha", "normalize")}
IGNORED["jax", "constrained"] = "it warns: a parser's problem repairs trees"
IGNORED["parser", "early_stopping"] = "the search is the engine's; these few words are found either way"
LINES_ALONE = {"translations", "score_lines", "text_lines"}  # what is written of an engine's outputs


DOORS = [name for name in vars(Doors) if not name.startswith("_")]


def cases():
    for door in DOORS:
        holder = Holder.__members__.get(door.upper(), Holder.REQUEST)
        for name, about in SETTINGS.items():
            is_quick = door in ("request", "server") or holder not in about.held_by
            marks = [] if is_quick and "_ctranslate2" not in door else [pytest.mark.slow]
            yield pytest.param(door, name, marks=marks, id=f"{name}-{door}")


@pytest.fixture(scope="module")
def doors(tmp_path_factory):
    return Doors(tmp_path_factory.mktemp("doors"))


def test_each_holder_has_a_door():
    assert {holder.name.lower() for holder in Holder} - {*DOORS} == LINES_ALONE


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("door", "name"), cases())
def test_a_setting_is_used_or_refused(doors, door, name):
    if "ctranslate2" in door and not find_spec("ctranslate2"):
        pytest.skip("needs CTranslate2")
    needed = NEED.get(name, "")
    base = ",".join(
        part for part in f"{BASE},{needed}".split(",") if part and not part.startswith(f"{name}=")
    )
    for value in values_of(name):
        given = f"{base},{name}={value}"
        DecodeHParams.parse(given)  # no other fault is taken for a refusal
        for as_json in (True, False):
            try:
                answer = doors.answer(door, given, as_json)
            except T2TError as refusal:
                known = [name, *re.findall(r"(\w+)=", needed)]
                assert any(one in str(refusal) for one in known), f"{door} and {name}: {refusal}"  # noqa: PT017
                return
            if answer != doors.answer(door, base, as_json):
                return
    assert (door, name) in IGNORED, f"{door} accepts {name} and ignores it"

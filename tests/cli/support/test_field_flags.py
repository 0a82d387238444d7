"""Flags generated from the fields of a dataclass."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from absl import flags

from t2t_revival import DecodeHParams, RunConfig
from t2t_revival.cli.support.field_flags import define_fields, descriptions, field_values
from t2t_revival.cli.support.training_flags import RUN_CONFIG_FLAGS


@dataclass(frozen=True)
class Oven:
    """An oven.

    Attributes:
        heat: temperature in degrees,
            as `baked`. With 0 it is off.
        fan: hot air.
        mode: kind of heat.
        racks: numbers of the racks.
        book: file of recipes.
        share: of the heat.
    """

    heat: int = 180
    fan: bool = False
    mode: Literal["top", "bottom"] = "top"
    racks: tuple[str, ...] = ()
    book: Path | None = None
    share: float = 0.5


FIELDS = {"degrees": "heat", **{name: name for name in ("fan", "mode", "racks", "book", "share")}}


@pytest.fixture
def values():
    defined = flags.FlagValues()
    define_fields(defined, Oven, FIELDS, {"degrees": (0, 300)})
    return defined


def test_defaults_types_and_help_are_the_fields(values):
    values(["t2t-bake"])
    assert field_values(values, FIELDS) == {
        name: value for name, value in dataclasses.asdict(Oven(racks=[])).items() if name != "book"
    }
    assert values["degrees"].help == "Temperature in degrees, as baked. With 0 it is off."
    assert values["mode"].help == "<top|bottom>: Kind of heat."


def test_parsed_values_make_the_dataclass(values):
    values(["t2t-bake", "--degrees=200", "--fan", "--mode=bottom", "--racks=a,b", "--book=x", "--share=1"])
    assert Oven(**field_values(values, FIELDS)) == Oven(200, True, "bottom", ["a", "b"], "x", 1.0)


@pytest.mark.parametrize("wrong", ["--degrees=301", "--degrees=-1", "--degrees=0x10", "--mode=left"])
def test_wrong_values(values, wrong):
    with pytest.raises(flags.IllegalFlagValueError):
        values(["t2t-bake", wrong])


def test_optional_flags_that_are_not_given_are_left_out():
    values = flags.FlagValues()
    define_fields(values, Oven, FIELDS, optional=True)
    values(["t2t-bake", "--degrees=0"])
    assert field_values(values, FIELDS) == {"heat": 0}


@pytest.mark.parametrize("owner", [RunConfig, DecodeHParams])
def test_every_field_of_a_config_has_a_description(owner):
    assert descriptions(owner).keys() == {field.name for field in dataclasses.fields(owner)}


def test_the_trainer_has_a_flag_for_each_field_of_a_run():
    named = set(RUN_CONFIG_FLAGS.values())
    set_by_the_command = {"output_dir", "num_parallel_batches", "warm_start"}
    assert named | set_by_the_command == {field.name for field in dataclasses.fields(RunConfig)}

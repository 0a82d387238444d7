"""Flags generated from the fields of a dataclass; the trainer's and the decoder's tests use them."""

import dataclasses

import pytest

from t2t_revival import RunConfig
from t2t_revival.cli.support.flags import descriptions
from t2t_revival.cli.support.run_flags import RUN_CONFIG_FLAGS
from t2t_revival.data.config import DataConfig


@pytest.mark.parametrize("owner", [DataConfig, RunConfig])
def test_every_field_of_a_config_has_a_description(owner):
    assert descriptions(owner).keys() == {field.name for field in dataclasses.fields(owner)}


def test_the_trainer_has_a_flag_for_each_field_of_a_run():
    named = set(RUN_CONFIG_FLAGS.values())
    set_by_the_command = {"output_dir", "num_parallel_batches", "warm_start"}
    assert named | set_by_the_command == {field.name for field in dataclasses.fields(RunConfig)}

"""Sets with T2T's names have T2T's values: each field of its sets is in exactly one of the groups below."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from t2t_revival import HParams, make_optimizer, registry
from t2t_revival.hparams.hparams import ABOUT
from t2t_revival.training.engines.engine import accumulation
from tests.support.tables import table

FIELDS = Path(__file__).with_name("t2t_fields.txt")
SAME = [name for _, names in table(FIELDS, "same") for name in names.split()]
ALWAYS = {name: json.loads(value) for name, value, *_ in table(FIELDS, "always")}
NO_INFLUENCE = [name for _, names in table(FIELDS, "no influence") for name in names.split()]

# Together they are a product of factors, which ours is too; see `factors`.
RATE = ["learning_rate", "learning_rate_constant", "learning_rate_schedule"]

# Said by another field of ours: T2T's value, from that field. "adam" is LazyAdam, which differs from Adam for
# sparse gradients only, and T2T makes those of the embeddings dense.
EXPRESSED: dict[str, Callable[[HParams], Any]] = {
    "optimizer": lambda h: "multistep_adam" if accumulation(h, replicas=1) > 1 else "adam",
    "pos": lambda h: None if h.pos == "relative" else h.pos,
    "self_attention_type": lambda h: "dot_product_relative" if h.pos == "relative" else "dot_product",
    "max_relative_position": lambda h: h.max_relative_position if h.pos == "relative" else 0,
    "optimizer_multistep_accumulate_steps": lambda h: accumulation(h, 1) if accumulation(h, 1) > 1 else 0,
}

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "hparams.json").read_text())
SETS = {name: {**REFERENCE["transformer_base"], **d} for name, d in REFERENCE["differences"].items()}


def factors(schedule: str, constant: float) -> tuple[set[str], float]:
    """Returns the factors of a schedule that depend on step or size, and a number."""
    names = set(schedule.split("*"))
    return names - {"constant"}, constant if "constant" in names else 1.0


def factors_in_t2t(values: dict[str, Any]) -> tuple[set[str], float]:
    """Evaluates T2T's "legacy", with its own constant, 10 * learning_rate: 5000 * 0.002 for kinds of Adam."""
    names, constant = factors(values["learning_rate_schedule"], values["learning_rate_constant"])
    return names, constant * (10 * values["learning_rate"] if "legacy" in names else 1.0)


def test_every_field_of_t2t_is_in_one_group() -> None:
    grouped = [*SAME, *RATE, *EXPRESSED, *ALWAYS, *NO_INFLUENCE]
    assert len(grouped) == len(set(grouped))
    for name, values in SETS.items():
        assert set(values) == set(grouped), name


def test_every_field_that_t2t_has_is_compared() -> None:
    fields = {name for name, about in ABOUT.items() if about.t2t}
    rate = {"learning_rate_constant", "learning_rate_schedule"}
    assert fields == {*SAME, *rate, "optimizer", "pos", "max_relative_position"}


def test_the_sets_are_those_of_the_reference() -> None:
    assert {name for name in registry.list_hparams() if name.startswith("transformer_")} == set(SETS)


@pytest.mark.parametrize("name", SETS)
def test_values_are_those_of_tensor2tensor(name: str) -> None:
    h, values = registry.hparams(name), SETS[name]
    assert {field: getattr(h, field) for field in SAME} == {field: values[field] for field in SAME}
    assert {field: value(h) for field, value in EXPRESSED.items()} == {f: values[f] for f in EXPRESSED}
    assert {field: values[field] for field in ALWAYS} == ALWAYS
    assert factors(h.learning_rate_schedule, h.learning_rate_constant) == factors_in_t2t(values)


@pytest.mark.parametrize("name", SETS)
def test_lengths_of_a_training_are_those_of_its_commands(name: str) -> None:
    h = registry.hparams(name)
    assert (h.train_steps, h.average_checkpoints) == (250_000, 8)


def test_nothing_is_done_to_gradients() -> None:
    optimizer = make_optimizer(registry.hparams("transformer_base"))
    assert {optimizer.clipnorm, optimizer.clipvalue, optimizer.global_clipnorm, optimizer.weight_decay} == {
        None
    }


def test_eight_micro_batches_on_one_device_one_on_eight() -> None:
    h = registry.hparams("transformer_base_multistep8")
    assert [accumulation(h, replicas) for replicas in (1, 2, 8)] == [8, 4, 1]
    assert accumulation(registry.hparams("transformer_base"), 1) == 1

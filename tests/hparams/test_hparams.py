"""`HParams`: overrides, JSON, files, and sets that cannot be trained."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import HParams, T2TError, registry
from t2t_revival.hparams.hparams import LAYER_SEQUENCES, parse_overrides
from tests.support.tables import table

REFUSALS = Path(__file__).with_name("refusals.txt")
TYPES = {"size": "int", "rate": "float", "shared": "bool", "pos": "str"}
PRE = {"layer_preprocess_sequence": "n", "layer_postprocess_sequence": "da"}


# Overrides


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("size=3", {"size": 3}),
        (" size = -3 , rate = 1e-9 ", {"size": -3, "rate": 1e-9}),
        ("rate=2", {"rate": 2.0}),
        ("shared=True", {"shared": True}),
        ("shared=false,", {"shared": False}),
        ("shared=1,pos=a*b", {"shared": True, "pos": "a*b"}),
        ("pos=a=b", {"pos": "a=b"}),
    ],
)
def test_overrides(text: str, values: dict[str, Any]) -> None:
    got = parse_overrides(text, TYPES)
    assert got == values
    assert [type(v) for v in got.values()] == [type(v) for v in values.values()]


@pytest.mark.parametrize(
    ("text", "message"), table(REFUSALS, "overrides of size (int), rate (float), shared (bool), pos (str)")
)
def test_wrong_overrides(text: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        parse_overrides(text, TYPES)
    assert str(raised.value) == message


def test_override_of_a_set() -> None:
    h = HParams().override("batch_size=2048,num_heads=4,label_smoothing=0")
    assert (h.batch_size, h.num_heads, h.label_smoothing) == (2048, 4, 0.0)
    assert HParams().override("") == HParams()
    with pytest.raises(T2TError, match="unknown hparam 'bach_size'; did you mean batch_size"):
        HParams().override("bach_size=2048")


# JSON

SETS = st.builds(
    lambda heads, width, keys, sequences, **rest: HParams(
        num_heads=heads,
        hidden_size=2 * heads * width,
        attention_key_channels=heads * keys,
        layer_preprocess_sequence=sequences[0],
        layer_postprocess_sequence=sequences[1],
        **rest,
    ),
    heads=st.integers(1, 16),
    width=st.integers(1, 64),
    keys=st.integers(0, 64),
    sequences=st.sampled_from(sorted(LAYER_SEQUENCES)),
    norm_epsilon=st.floats(1e-12, 1),
    label_smoothing=st.floats(0, 0.99),
    shared_embedding_and_softmax_weights=st.booleans(),
    learning_rate_schedule=st.lists(st.sampled_from([*registry.list_schedule_factors()]), min_size=1).map(
        "*".join
    ),
    train_steps=st.integers(4001, 10**12),
)


@settings(max_examples=50, deadline=None)
@given(SETS)
def test_json_round_trip(h: HParams) -> None:
    assert HParams.from_values(json.loads(json.dumps(dataclasses.asdict(h))), "") == h


@settings(max_examples=50, deadline=None)
@given(SETS)
def test_every_field_can_be_overridden(h: HParams) -> None:
    text = ",".join(f"{name}={value}" for name, value in dataclasses.asdict(h).items())
    assert HParams().override(text) == h


@pytest.mark.parametrize(("text", "message"), table(REFUSALS, "hparams.json"))
def test_corrupt_json_names_its_file(text: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        HParams.from_values(json.loads(text), "run/hparams.json")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_field_that_json_does_not_name_has_its_default() -> None:
    values = {"filter_size": 7, "label_smoothing": 0}
    assert HParams.from_values(values, "") == HParams(filter_size=7, label_smoothing=0.0)


def test_hparams_of_earlier_versions() -> None:
    assert HParams.from_values({"num_heads": 2, "reverse_target": False}, "") == HParams(num_heads=2)
    with pytest.raises(T2TError, match=r"^run: reverse_target=True is of an earlier version"):
        HParams.from_values({"reverse_target": True}, "run")


def test_save_and_load(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "run"
    assert HParams.load(folder) is None
    HParams(num_heads=4).save(folder)
    HParams(num_heads=2).save(folder)
    assert HParams.load(folder) == HParams(num_heads=2)
    assert [path.name for path in folder.iterdir()] == ["hparams.json"]
    (folder / "hparams.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(T2TError, match=f"^{folder / 'hparams.json'}: "):
        HParams.load(folder)


# What cannot be trained


@pytest.mark.parametrize(("changes", "message"), table(REFUSALS, "sets"))
def test_invalid_sets(changes: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        HParams().override(changes)
    assert str(raised.value).startswith(f"hparams: {message}")


def test_derived_values() -> None:
    h = HParams()
    assert (h.encoder_layers, h.decoder_layers, h.key_channels, h.value_channels) == (6, 6, 512, 512)
    assert not h.pre_norm
    assert h.replace(hidden_size=9, num_heads=3, pos="emb").key_channels == 9, "odd, with learned positions"
    h = h.replace(num_encoder_layers=3, num_decoder_layers=1, attention_key_channels=64, **PRE)
    assert (h.encoder_layers, h.decoder_layers, h.key_channels, h.value_channels) == (3, 1, 64, 512)
    assert h.pre_norm


@pytest.mark.parametrize("name", [*registry.list_hparams(), "emb"])
def test_the_model_of_another_set(name):
    """All that its weights and outputs depend on is that set's; the training stays."""
    other = (
        registry.hparams(name) if name != "emb" else HParams(pos="emb", max_length=99, num_hidden_layers=3)
    )
    own = registry.hparams("tiny")
    found = own.with_model_of(other)
    assert found.architecture() == other.architecture()
    assert (found.batch_size, found.learning_rate_constant) == (own.batch_size, own.learning_rate_constant)

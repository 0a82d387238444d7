"""`HParams`: overrides, JSON, files, and sets that cannot be trained."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import registry
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.hparams import LAYER_SEQUENCES, parse_overrides

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
    ("text", "message"),
    [
        ("sise=3", "unknown hparam 'sise'; did you mean size?"),
        ("zzzzzz=3", "unknown hparam 'zzzzzz'; known: pos, rate, shared, size"),
        ("size=3,rate=1,size=4", "hparam 'size' is given twice"),
        ("size", "override 'size': expected name=value"),
        ("size=3.0", "hparam size='3.0': expected a value of type int"),
        ("size=", "hparam size='': expected a value of type int"),
        ("rate=fast", "hparam rate='fast': expected a value of type float"),
        ("shared=yes", "hparam shared='yes': expected a value of type bool"),
    ],
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
    assert HParams.from_json(h.to_json()) == h


@settings(max_examples=50, deadline=None)
@given(SETS)
def test_every_field_can_be_overridden(h: HParams) -> None:
    text = ",".join(f"{name}={value}" for name, value in dataclasses.asdict(h).items())
    assert HParams().override(text) == h


def test_json_names_every_field() -> None:
    assert list(json.loads(HParams().to_json())) == [f.name for f in dataclasses.fields(HParams)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "run/hparams.json: not JSON"),
        ('{"hidden_size": 512', "run/hparams.json: not JSON"),
        ("[1]", "run/hparams.json: not a JSON object"),
        ('{"hiden_size": 512}', "run/hparams.json: unknown hparam 'hiden_size'; did you mean hidden_size"),
        ('{"hidden_size": "512"}', "run/hparams.json: hidden_size='512' is not of type int"),
        ('{"hidden_size": 512.0}', "run/hparams.json: hidden_size=512.0 is not of type int"),
        ('{"hidden_size": true}', "run/hparams.json: hidden_size=True is not of type int"),
        ('{"hidden_size": null}', "run/hparams.json: hidden_size=None is not of type int"),
        ('{"norm_epsilon": true}', "run/hparams.json: norm_epsilon=True is not of type float"),
        ('{"norm_epsilon": NaN}', "run/hparams.json: hparams: norm_epsilon=nan must be above 0"),
        ('{"pos": 1}', "run/hparams.json: pos=1 is not of type str"),
        (
            '{"shared_embedding_and_softmax_weights": 1}',
            "run/hparams.json: shared_embedding_and_softmax_weights=1 is not of type bool",
        ),
        ('{"num_heads": 7}', "run/hparams.json: hparams: attention_key_channels=512 is not divisible"),
    ],
)
def test_corrupt_json_names_its_file(text: str, message: str) -> None:
    with pytest.raises(T2TError) as raised:
        HParams.from_json(text, where="run/hparams.json")
    assert str(raised.value).startswith(message)
    assert "\n" not in str(raised.value)


def test_a_field_that_json_does_not_name_has_its_default() -> None:
    assert HParams.from_json('{"filter_size": 7, "label_smoothing": 0}') == HParams(
        filter_size=7, label_smoothing=0.0
    )


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_hidden_layers": 0}, "num_hidden_layers=0 must be at least 1"),
        ({"train_steps": -1}, "train_steps=-1 must be at least 1"),
        ({"num_encoder_layers": -1}, "num_encoder_layers=-1 must be at least 0"),
        ({"attention_value_channels": -8}, "attention_value_channels=-8 must be at least 0"),
        ({"attention_window": -1}, "attention_window=-1 must be at least 0"),
        ({"effective_batch_size": -1}, "effective_batch_size=-1 must be at least 0"),
        ({"label_smoothing": 1.0}, "label_smoothing=1.0 must be at least 0 and below 1"),
        ({"attention_dropout": -0.1}, "attention_dropout=-0.1 must be at least 0 and below 1"),
        ({"relu_dropout": float("nan")}, "relu_dropout=nan must be at least 0 and below 1"),
        ({"norm_epsilon": 0.0}, "norm_epsilon=0.0 must be above 0"),
        ({"learning_rate_constant": float("inf")}, "learning_rate_constant=inf must be above 0"),
        ({"learning_rate_decay_steps": 0}, "learning_rate_decay_steps=0 must be at least 1"),
        ({"learning_rate_decay_rate": 0.0}, "learning_rate_decay_rate=0.0 must be above 0"),
        (
            {"learning_rate_schedule": "constant*single_cycle_cos_decay", "train_steps": 4000},
            "train_steps=4000 must be more than learning_rate_warmup_steps=4000 for single_cycle_cos_decay",
        ),
        ({"length_bucket_step": 1.0}, "length_bucket_step=1.0 must be above 1"),
        ({"num_heads": 7}, "attention_key_channels=512 is not divisible by num_heads=7"),
        ({"attention_value_channels": 12}, "attention_value_channels=12 is not divisible by num_heads=8"),
        ({"pos": "rotary"}, "pos='rotary' is not one of sinusoid, timing, emb"),
        ({"decoder_self_attention": "rnn"}, "decoder_self_attention='rnn' is not one of attention, ssru"),
        (
            {"decoder_self_attention": "ssru", "attention_window": 8},
            "attention_window=8 and decoder_self_attention=ssru cannot be combined: such a",
        ),
        ({"subword_dropout": 1.0}, "subword_dropout=1.0 must be at least 0 and below 1"),
        (
            {"subword_dropout": 0.1, "subword_dropout_side": "left"},
            "subword_dropout_side='left' is not one of both, source, target",
        ),
        (
            {"subword_dropout_side": "source"},
            "subword_dropout_side=source has no effect without subword_dropout: leave it out, or give",
        ),
        ({"hidden_size": 9, "num_heads": 1}, "hidden_size=9 must be even for pos=sinusoid"),
        ({"layer_preprocess_sequence": "n"}, "layer_preprocess_sequence/layer_postprocess_sequence must be"),
        ({"batch_size": 255}, "batch_size=255 tokens must be at least max_length=256"),
    ],
)
def test_invalid_sets(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(T2TError) as raised:
        HParams(**changes)
    assert str(raised.value).startswith(f"hparams: {message}")


def test_derived_values() -> None:
    h = HParams()
    assert (h.encoder_layers, h.decoder_layers, h.key_channels, h.value_channels) == (6, 6, 512, 512)
    assert not h.pre_norm
    assert h.replace(hidden_size=9, num_heads=3, pos="emb").key_channels == 9, "odd, with learned positions"
    h = h.replace(num_encoder_layers=3, num_decoder_layers=1, attention_key_channels=64, **PRE)
    assert (h.encoder_layers, h.decoder_layers, h.key_channels, h.value_channels) == (3, 1, 64, 512)
    assert h.pre_norm

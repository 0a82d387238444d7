"""Fields of hparams: each is described in `--registry_help`, and read by the code that it is meant for."""

import ast
import dataclasses
import re

import pytest

from t2t_revival import HParams
from t2t_revival.cli import decoder, trainer
from t2t_revival.hparams.hparams import meanings
from tests.support.source_tree import MODULES, parsed

FIELDS = [field.name for field in dataclasses.fields(HParams)]


def test_each_field_has_a_meaning_and_each_group_its_section() -> None:
    found = {name: meaning for fields in meanings().values() for name, meaning in fields.items()}
    assert list(found) == FIELDS
    assert all(re.search(r"\w{2}", meaning) for meaning in found.values())
    assert all(re.search(r"\(section \d(\.\d)?\)", title) for title in meanings())
    assert found["num_heads"] == "h, heads of each attention (3.2.2)"


def shown(capsys: pytest.CaptureFixture[str], *flags: str, main=trainer.main) -> list[str]:
    assert main(["t2t-trainer", "--registry_help", *flags]) == 0
    return capsys.readouterr().out.splitlines()


def test_all_fields_of_a_set(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--hparams_set=tiny")
    assert lines[0].startswith("tiny: 2+2 layers")
    assert max(map(len, lines[1:])) <= 100
    assert re.findall(r"^[* ] (\w+)=", "\n".join(lines), re.M) == FIELDS
    assert "Optimizer and learning rate (section 5.3)" in lines
    assert "* num_heads=4                           h, heads of each attention (3.2.2) [base: 8]" in lines
    assert "  num_decoder_layers=0                  layers of the decoder; 0 means num_hidden_layers" in lines
    schedule = "  learning_rate_schedule=constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"
    assert lines[lines.index(schedule) + 1].startswith(" " * 40 + "product of factors")


def test_overrides_are_marked_with_the_values_before(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys, "--hparams_set=tiny", "--hparams=num_heads=2,filter_size=2048", "--train_steps=9")
    starts = [line.partition("  ")[0] + line[line.find(" [") :] for line in lines if line.startswith("*")]
    expected = ("num_heads=2 [tiny: 4; base: 8]", "filter_size=2048 [tiny: 512]")
    assert {f"* {text}" for text in (*expected, "train_steps=9 [tiny: 2500; base: 100000]")} <= set(starts)
    assert not [line for line in shown(capsys, "--hparams_set=base")[2:] if line.startswith("*")]


def test_other_commands_describe_a_set_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    described = shown(capsys, "--hparams_set=big", main=decoder.main)
    assert described == shown(capsys, "--hparams_set=big")


def test_without_a_set_factors_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(capsys)
    factors = lines[lines.index("Factors of learning_rate_schedule:") + 1 :]
    assert {"cosdecay", "linear_decay", "single_cycle_cos_decay"} <= {line.split()[0] for line in factors}


def test_each_field_is_read() -> None:
    """By an attribute of its name somewhere, be it in a property of `HParams`."""
    nodes = (node for path in MODULES.values() for node in ast.walk(parsed(path)))
    assert set(FIELDS) <= {
        node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }

"""Behaviour of every command on a wrong command line, an error, an interrupt and `--help`."""

import importlib
import io
import pkgutil
import signal
import sys

import pytest
from absl import flags

from t2t_revival import T2TError, cli
from t2t_revival.cli.support import command

USAGE = "\nt2t-bake [--minutes=N]\n\nBakes.\n"


@pytest.fixture
def values():
    values = command.new_flags()
    command.define_integer(
        "minutes", 40, "How long the " + "very " * 30 + "hot oven is on.", flag_values=values
    )
    flags.DEFINE_string("cake", None, "What is baked.", flag_values=values)
    flags.DEFINE_multi_string("topping", ["sugar"], "What is on it.", flag_values=values)
    return values


def run(values, *arguments, raises=None):
    def bake(values):
        if raises is not None:
            raise raises
        print(f"baked {values.cake} with {'+'.join(values.topping)} for {values.minutes}")

    return command.run(values, USAGE, bake, ["/usr/bin/t2t-bake", *arguments])


def test_a_call_forgets_the_one_before(values, capsys):
    run(values, "--cake=pie", "--minutes=7", "--topping=nuts", "--topping=jam", "--debug")
    assert run(values) == 0
    assert capsys.readouterr().out.splitlines() == [
        "baked pie with nuts+jam for 7",
        "baked None with sugar for 40",
    ]
    assert run(values, "--help") == 0
    assert run(values) == 0
    assert capsys.readouterr().out.endswith("baked None with sugar for 40\n")


def test_integers_of_all_commands_are_decimal():
    names = (module.name for module in pkgutil.iter_modules(cli.__path__))
    modules = (importlib.import_module(f"t2t_revival.cli.{name}") for name in names)
    tables = [module.command_flags() for module in modules if hasattr(module, "command_flags")]
    parsers = {(name, values[name].parser) for values in tables for name in values}
    integers = {name: parser for name, parser in parsers if isinstance(parser, flags.IntegerParser)}
    assert {"train_steps", "decode_shards", "wait_minutes"} <= integers.keys()
    for parser in integers.values():
        assert parser.convert("010") == 10
        with pytest.raises(ValueError, match="decimal"):
            parser.convert("0x10")


@pytest.mark.parametrize("error", [T2TError("no\noven"), OSError("no oven")])
def test_error_is_one_line(values, capsys, error):
    assert run(values, raises=error) == 1
    assert capsys.readouterr().err == "t2t-bake: error: no oven\n"


def test_debug_shows_the_traceback(values, capsys):
    assert run(values, "--debug", raises=T2TError("no oven")) == 1
    output = capsys.readouterr().err
    assert output.startswith("Traceback (most recent call last):")
    assert output.endswith("t2t-bake: error: no oven\n")


def test_an_internal_error_is_not_hidden(values):
    with pytest.raises(ZeroDivisionError):
        run(values, raises=ZeroDivisionError())


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_characters_that_the_terminal_cannot_print(values, monkeypatch, stream):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, stream, terminal)
    status = run(values, "--cake=Käse", raises=T2TError("kein Käse") if stream == "stderr" else None)
    assert status == (stream == "stderr")
    terminal.flush()
    assert b"K\\xe4se" in terminal.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_signals_end_a_command_in_order(values, capsys, number, status):
    before = signal.signal(number, signal.SIG_DFL)  # SIGHUP may be ignored where the tests run
    cleaned = []

    def bake(values):
        try:
            signal.raise_signal(number)
        finally:
            cleaned.append(True)

    assert command.run(values, USAGE, bake, ["t2t-bake"]) == status
    assert capsys.readouterr().err == "t2t-bake: error: interrupted\n"
    assert cleaned
    assert signal.signal(number, before) == signal.SIG_DFL


def test_interrupt(values, capsys):
    assert run(values, raises=KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "t2t-bake: error: interrupted\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["--help", "pie"], ["--help", "--unknown"], ["--unknown", "--help"]]
)
def test_help(values, capsys, arguments):
    assert run(values, *arguments) == 0
    usage, described = capsys.readouterr().out.split("\nFlags:\n")
    assert usage.strip() == USAGE.strip()
    lines = described.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  --")] == [
        "--cake",
        "--[no]debug",
        "--[no]help",
        "--minutes",
        "--topping",
    ]
    assert lines[0] == "  --cake       What is baked."
    assert lines[1] == "  --[no]debug  Show the whole traceback of an error. (default: false)"
    assert max(map(len, lines)) <= 100
    assert "hot oven is on. (default: 40)" in " ".join(described.split())

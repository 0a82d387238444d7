"""Behaviour of every command on a wrong command line, an error, an interrupt and `--help`."""

import io
import signal
import sys
from dataclasses import dataclass

import pytest

from t2t_revival import T2TError
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import Flags, flag

USAGE = "t2t-bake [--minutes=N]\n\nBakes."
TEXT = f"`t2t-bake`: bakes.\n\n{USAGE}\n"


@dataclass(frozen=True)
class BakeFlags(Flags):
    exclusive = (("cake", "bread"),)
    needs = (("topping", "cake", "bread"),)
    minutes: int = flag(40, "How long the " + "very " * 30 + "hot oven is on.")
    cake: str | None = flag(None, "What is baked.")
    bread: bool = flag(False, "Bake bread.")
    topping: tuple[str, ...] = flag(("sugar",), "What is on it.", repeated=True)


def run(*arguments, raises=None):
    def bake(flags):
        if raises is not None:
            raise raises
        print(f"baked {flags.cake} with {'+'.join(flags.topping)} for {flags.minutes}")

    return Command(BakeFlags, bake, TEXT)(["/usr/bin/t2t-bake", *arguments])


def test_a_call_forgets_the_one_before(capsys):
    run("--cake=pie", "--minutes=7", "--topping=nuts", "--topping=jam", "--debug")
    assert run() == 0
    assert capsys.readouterr().out.splitlines() == [
        "baked pie with nuts+jam for 7",
        "baked None with sugar for 40",
    ]
    assert run("--help") == 0
    assert run() == 0
    assert capsys.readouterr().out.endswith("baked None with sugar for 40\n")


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--cake=pie", "--bread"], "--cake and --bread cannot be combined: give one of them"),
        (["--topping=jam"], "--topping needs --cake or --bread"),
        (["--topping=jam", "--cake=", "--nobread"], "--topping needs --cake or --bread"),
    ],
)
def test_flags_that_do_not_go_together(capsys, words, fault):
    assert run(*words) == 1
    assert capsys.readouterr().err == f"t2t-bake: error: {fault}\n"
    assert run("--cake=pie", "--nobread", "--topping=jam") == 0


@pytest.mark.parametrize("error", [T2TError("no\noven"), OSError("no oven")])
def test_error_is_one_line(capsys, error):
    assert run(raises=error) == 1
    assert capsys.readouterr().err == "t2t-bake: error: no oven\n"


def test_debug_shows_the_traceback(capsys):
    assert run("--debug", raises=T2TError("no oven")) == 1
    output = capsys.readouterr().err
    assert output.startswith("Traceback (most recent call last):")
    assert output.endswith("t2t-bake: error: no oven\n")


def test_an_internal_error_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        run(raises=ZeroDivisionError())


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_characters_that_the_terminal_cannot_print(monkeypatch, stream):
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, stream, terminal)
    status = run("--cake=Käse", raises=T2TError("kein Käse") if stream == "stderr" else None)
    assert status == (stream == "stderr")
    terminal.flush()
    assert b"K\\xe4se" in terminal.buffer.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_signals_end_a_command_in_order(capsys, number, status):
    before = signal.signal(number, signal.SIG_DFL)  # SIGHUP may be ignored where the tests run
    cleaned = []

    def bake(flags):
        try:
            signal.raise_signal(number)
        finally:
            cleaned.append(True)

    assert Command(BakeFlags, bake, TEXT)(["t2t-bake"]) == status
    assert capsys.readouterr().err == "t2t-bake: error: interrupted\n"
    assert cleaned
    assert signal.signal(number, before) == signal.SIG_DFL


def test_interrupt(capsys):
    assert run(raises=KeyboardInterrupt()) == 130
    assert capsys.readouterr().err == "t2t-bake: error: interrupted\n"


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["--help", "pie"], ["--help", "--unknown"], ["--unknown", "--help"]]
)
def test_help(capsys, arguments):
    assert run(*arguments) == 0
    usage, described = capsys.readouterr().out.split("\nFlags:\n")
    assert usage.strip() == USAGE
    lines = described.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  --")] == [
        "--[no]bread",
        "--cake",
        "--[no]debug",
        "--[no]help",
        "--minutes",
        "--topping",
    ]
    assert lines[1] == "  --cake       What is baked."
    assert lines[2] == "  --[no]debug  Show the whole traceback of an error. (default: false)"
    assert max(map(len, lines)) <= 100
    assert "hot oven is on. (default: 40)" in " ".join(described.split())

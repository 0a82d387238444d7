"""Standard streams of commands that are closed, full, or read by nobody; outputs that are no files."""

import importlib
import os
import pkgutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from t2t_revival import cli
from t2t_revival.utils.files import atomic_write
from tests.support.commands import run

pytestmark = pytest.mark.slow

SCORES = "BLEU_uncased = 100.00"
WARNING = "contain tabs"  # of the files below
FULL = "t2t-bleu: error: cannot write the standard output: No space left on device\n"
CLOSED = (
    "t2t-bleu: error: the standard input is closed: name a file, or give < /dev/null for an empty input\n"
)
COMMANDS = [module.name for module in pkgutil.iter_modules(cli.__path__) if not module.ispkg]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "outputs").write_text("a\tb c d\n")
    (tmp_path / "references").write_text("a b c d\n")
    return tmp_path


def bleu(folder, redirections, translation="outputs"):
    """Returns exit status, stdout and stderr of t2t-bleu in a shell."""
    code = "import sys; from t2t_revival.cli.bleu import main; sys.argv[0] = 't2t-bleu'; sys.exit(main())"
    flags = f"--translation={translation} --reference=references"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" {flags} {redirections}; exit ${{PIPESTATUS[0]}}'],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&- 2>&-", "2> >(true)"])
def test_the_work_goes_on_without_a_log_which_is_not_in_the_output(files, redirection):
    status, out, err = bleu(files, redirection)
    assert (status, err) == (0, "")
    assert out.startswith(SCORES)
    assert WARNING not in out


@pytest.mark.parametrize(
    ("redirection", "status", "error"),
    [
        (">/dev/full", 1, FULL),
        (">/dev/full 2>/dev/full", 1, ""),
        ("| true", 1, ""),
        (">&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
    ],
)
def test_a_result_that_cannot_be_written(files, redirection, status, error):
    found, out, err = bleu(files, redirection)
    assert (found, out) == (status, "")
    assert "".join(line for line in err.splitlines(keepends=True) if WARNING not in line) == error


def test_a_closed_input_is_an_error(files):
    assert bleu(files, "<&-", translation="-") == (1, "", CLOSED)


def test_closed_descriptors_are_taken_by_no_other_file(tmp_path):
    code = (
        "import os, t2t_revival.cli.bleu as bleu; bleu.main(['t2t-bleu', '--nothing']); "
        "print(*(os.readlink(f'/proc/self/fd/{n}') for n in (0, 2)))"
    )
    done = subprocess.run(
        ["bash", "-c", f'exec "{sys.executable}" -c "{code}" <&- 2>&-'], capture_output=True, text=True
    )
    assert done.stdout == "/dev/null /dev/null\n"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_help_and_errors_of_every_command_on_a_full_disk(name, stream, capsys, monkeypatch):
    main = importlib.import_module(f"t2t_revival.cli.{name}").main
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, stream, full)
        status = main([name, "--help" if stream == "stdout" else "--no_such_flag"])
        monkeypatch.undo()
    assert status == (1 if stream == "stdout" else 2)
    said = f"{name}: error: cannot write the standard output: No space left on device\n"
    assert capsys.readouterr().err == (said if stream == "stdout" else "")


def decode(trained, folder, target):
    (folder / "in").write_text("the dog sees 3 houses\n\nthe dog\n", encoding="utf-8")
    flags = f"--decode_from_file={folder / 'in'}", f"--decode_to_file={target}"
    run("t2t-decoder", f"--output_dir={trained / 'out'}", *flags)


def test_a_decoder_writes_a_device(trained, tmp_path):
    decode(trained, tmp_path, "/dev/null")
    assert Path("/dev/null").is_char_device()


def test_a_decoder_writes_a_pipe(trained, tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    decode(trained, tmp_path, str(pipe))
    reader.join(30)
    decode(trained, tmp_path, str(tmp_path / "file"))
    assert found == [(tmp_path / "file").read_text(encoding="utf-8")]
    assert pipe.is_fifo()


def test_a_decoder_writes_an_open_file(trained, tmp_path):
    with (tmp_path / "opened").open("w+b") as file:
        file.write(b"first\n")
        file.flush()
        decode(trained, tmp_path, f"/dev/fd/{file.fileno()}")
    lines = (tmp_path / "opened").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "first"
    assert len(lines) == 4


def test_no_writer_replaces_a_device():
    with atomic_write(Path("/dev/null")) as file:
        file.write(b"lost")
    assert Path("/dev/null").is_char_device()

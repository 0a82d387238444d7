"""Files and lines that t2t-decoder and t2t-query-server read and write alike, and standard streams."""

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from t2t_revival.cli import bleu as bleu_command
from t2t_revival.utils.files import atomic_write
from tests.support.commands import run
from tests.support.model_server import HOST
from tests.support.processes import run_command

pytestmark = pytest.mark.slow

LINES = "the dog\n\nsees 3 Häuser\n".encode()
FORMS = {
    "in": b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n", 1).rstrip(),
    "in.gz": gzip.compress(LINES),
    "packed": gzip.compress(LINES),
}


@pytest.fixture(params=["decoder", "grpc", "rest"])
def client(request, trained, server):
    """Command, flags of a model or a server, and flags of typed lines."""
    if request.param == "decoder":
        model = f"--output_dir={trained / 'out'}", "--decode_hparams=beam_size=1,extra_length=1"
        return ["t2t-decoder", *model], ["--decode_interactive"]
    where = f"{HOST}:{server.grpc_port}" if request.param == "grpc" else f"http://{HOST}:{server.rest_port}"
    return ["t2t-query-server", f"--server={where}", "--servable_name=echo"], []


@pytest.fixture
def typed(monkeypatch):
    def write(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), "utf-8"))

    return write


def test_lines_may_come_in_any_form(client, typed, tmp_path, capsys):
    """UTF-8 with and without a mark, ends of lines, gzip under any name, a pipe, the standard streams."""
    command, _ = client
    (tmp_path / "lines").write_bytes(LINES)
    for name, content in FORMS.items():
        (tmp_path / name).write_bytes(content)
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_bytes, args=[LINES], daemon=True).start()
    outputs = []
    for name in ("lines", *FORMS, "pipe"):
        files = f"--decode_from_file={tmp_path / name}", f"--decode_to_file={tmp_path / f'{name}.out'}"
        assert run_command(*command, *files) == 0
        said = capsys.readouterr()
        assert said.out == ""
        assert "3 lines in 0:" in said.err or "3 sentences in 0:" in said.err
        outputs.append((tmp_path / f"{name}.out").read_text(encoding="utf-8"))
    assert [bool(line) for line in outputs[0].split("\n")] == [True, False, True, False]
    assert outputs[0] == LINES.decode().upper() or command[0] == "t2t-decoder"
    typed(LINES)
    assert run_command(*command, "--decode_from_file=-") == 0
    assert {*outputs, capsys.readouterr().out} == {outputs[0]}


def test_no_lines(client, typed, tmp_path, capsys):
    command, interactive = client
    (tmp_path / "in").touch()
    assert run_command(*command, f"--decode_from_file={tmp_path / 'in'}") == 0
    typed(b"")
    assert run_command(*command, *interactive) == 0
    assert capsys.readouterr().out == ""


def test_typed_lines(client, typed, capsys):
    """The last one need not end; one that is not UTF-8 ends the command."""
    command, interactive = client
    typed(b"one\n\ntwo")
    assert run_command(*command, *interactive) == 0
    found = capsys.readouterr().out
    assert [bool(line) for line in found.split("\n")] == [True, False, True, False]
    assert found == "ONE\n\nTWO\n" or command[0] == "t2t-decoder"
    typed(b"b\xe4d\n")
    assert run_command(*command, *interactive) == 1
    assert "error: standard input: not UTF-8" in capsys.readouterr().err


SCORES = "BLEU_uncased = 100.00"
WARNING = "contain tabs"  # of the files below
FULL = "t2t-bleu: error: cannot write the standard output: No space left on device\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "outputs").write_text("a\tb c d\n")
    (tmp_path / "references").write_text("a b c d\n")
    return tmp_path


def bleu(folder, redirections):
    """Returns exit status, stdout and stderr of t2t-bleu in a shell."""
    code = "import sys; from t2t_revival.cli.bleu import main; sys.argv[0] = 't2t-bleu'; sys.exit(main())"
    flags = "--translation=outputs --reference=references"
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{code}" {flags} {redirections}; exit ${{PIPESTATUS[0]}}'],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2> >(true)"])
def test_the_work_goes_on_without_a_log_which_is_not_in_the_output(files, redirection):
    status, out, err = bleu(files, redirection)
    assert (status, err) == (0, "")
    assert out.startswith(SCORES)
    assert WARNING not in out


@pytest.mark.parametrize(
    ("redirection", "status", "error"),
    [(">/dev/full", 1, FULL), (">/dev/full 2>/dev/full", 1, ""), ("| true", 1, ""), (">&-", 0, "")],
)
def test_a_result_that_cannot_be_written(files, redirection, status, error):
    found, out, err = bleu(files, redirection)
    assert (found, out) == (status, "")
    assert "".join(line for line in err.splitlines(keepends=True) if WARNING not in line) == error


@pytest.mark.parametrize(
    ("stream", "flag", "status"), [("stdout", "--help", 1), ("stderr", "--no_such_flag", 2)]
)
def test_help_and_errors_on_a_full_disk(stream, flag, status, capsys, monkeypatch):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, stream, full)
        assert bleu_command.main(["t2t-bleu", flag]) == status
        monkeypatch.undo()
    assert capsys.readouterr().err == (FULL if stream == "stdout" else "")


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

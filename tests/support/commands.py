"""Commands of the package, each in a process of its own."""

import subprocess
import tempfile

from tests.support.prepared import Prepared

TIMEOUT = 600  # seconds


def run(command: str, *flags: str, stdin: str | None = None, status: int = 0) -> subprocess.CompletedProcess:
    """Runs a command in a process of its own and checks its exit status."""
    module = command.removeprefix("t2t-").replace("-", "_")
    with tempfile.TemporaryFile() as typed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        typed.write((stdin or "").encode())
        typed.seek(0)
        process = Prepared(module, flags, typed.fileno(), out.fileno(), err.fileno())
        try:
            process.wait(TIMEOUT)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        stdout, stderr = (file.read().decode() for file in (out, err))
    assert process.returncode == status, stderr
    return subprocess.CompletedProcess([command, *flags], process.returncode, stdout, stderr)

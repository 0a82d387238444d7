"""Commands in processes of their own that are forked from one that has TensorFlow and Keras imported.

The import takes five seconds of CPU. A process that is forked after it is otherwise a new one: TensorFlow has
not started, and streams, folder, environment and signals are its own.

As a script: SOCKET is the server; SOCKET COMMAND FLAG... runs a command with the script's own streams.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

CLI = Path(__file__).parents[2] / "t2t_revival" / "cli"
NUMBER = struct.Struct("i")
PARENT_POLL_SECONDS = 1


class Prepared:
    """A process that runs a command of the package; has what tests use of `subprocess.Popen`.

    Args:
        module: of `t2t_revival.cli`.
        flags: the command line.
        stdin: file number; 0, 1 and 2 are those of this process.
        stdout: file number.
        stderr: file number.
        server: path of the server's socket.

    Attributes:
        pid: of the process.
        returncode: `None` while it runs; negative after a signal.
    """

    def __init__(
        self,
        module: str,
        flags: tuple[str, ...],
        stdin: int = 0,
        stdout: int = 1,
        stderr: int = 2,
        server: str | None = None,
    ) -> None:
        self.returncode: int | None = None
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(server or server_path())
        request = {"module": module, "flags": flags, "cwd": os.getcwd(), "env": dict(os.environ)}
        content = json.dumps(request).encode()
        socket.send_fds(self._socket, [NUMBER.pack(len(content))], [stdin, stdout, stderr])
        self._socket.sendall(content)
        self.pid = NUMBER.unpack(_receive(self._socket, NUMBER.size))[0]

    def poll(self) -> int | None:
        """Returns the exit status, or `None` while the process runs."""
        try:
            return self.wait(0)
        except TimeoutError:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end of the process and returns its exit status.

        Raises:
            TimeoutError: it has not ended within `timeout` seconds.
        """
        if self.returncode is None:
            self._socket.settimeout(timeout)
            try:
                self.returncode = NUMBER.unpack(_receive(self._socket, NUMBER.size))[0]
            except BlockingIOError:
                raise TimeoutError(f"process {self.pid} is still running") from None
            self._socket.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Sends SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)


_server: str | None = None


def server_path() -> str:
    """Returns the socket of this process's server, which the first call starts."""
    global _server
    if _server is None:
        import subprocess

        folder = tempfile.TemporaryDirectory()
        path = os.path.join(folder.name, "socket")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.prepared", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=os.path.dirname(os.path.dirname(os.path.dirname(__file__))),
            env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
            start_new_session=True,  # Ctrl-C in the terminal is for pytest
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        atexit.register(folder.cleanup)
        atexit.register(process.wait)
        atexit.register(process.terminate)  # the last one registered runs first
        _server = path
    return _server


def write_commands(folder: Path) -> None:
    """Writes the commands that are installed, as scripts that a shell finds by PATH, into a new folder."""
    folder.mkdir()
    for name in (path.stem for path in CLI.glob("[!_]*.py")):
        command = folder / ("t2t-" + name.replace("_", "-"))
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {__file__} {server_path()} {name} "$@"\n')
        command.chmod(0o755)


def _receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise EOFError("the server of prepared processes has gone")
        content += part
    return content


def serve(path: str) -> dict:
    """Imports what commands need, and forks a process for each connection, until the parent has ended.

    Returns:
        In a process that has been forked for a command: what was asked for.
    """
    import t2t_revival.decoding.translator
    import t2t_revival.experiment  # noqa: F401

    gc.freeze()  # memory that children share is not theirs to collect
    parent = os.getppid()

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_POLL_SECONDS)
        os._exit(1)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        signal.signal(signal.SIGCHLD, _reap)  # also lets `time` count them as this process's
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        print("ready", flush=True)
        threading.Thread(target=end_with_parent, daemon=True).start()
        while True:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    return _handle(connection)


def _reap(*_: object) -> None:
    """Waits for the children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _handle(connection: socket.socket) -> dict:
    """Sends the id of a child of this process and then its exit status; returns in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    size, streams, _, _ = socket.recv_fds(connection, NUMBER.size, 3)
    request = json.loads(_receive(connection, NUMBER.unpack(size)[0]))
    pid = os.fork()
    if pid == 0:
        return {**request, "streams": streams}
    for stream in streams:
        os.close(stream)
    try:
        connection.sendall(NUMBER.pack(pid))
        _, status = os.waitpid(pid, 0)
        connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
    finally:
        os._exit(0)


def _become(module: str, flags: list[str], streams: list[int], cwd: str, env: dict[str, str]) -> None:
    """Runs a command as `python -m` would, with its streams, folder and environment."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env, CUDA_VISIBLE_DEVICES="-1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has it ignored
    sys.argv = [module, *flags]
    runpy.run_module(f"t2t_revival.cli.{module}", run_name="__main__", alter_sys=True)


def main(path: str, *arguments: str) -> int:
    """Is the server, or runs a command with the streams of this process."""
    if not arguments:
        _become(**serve(path))
    return Prepared(arguments[0], arguments[1:], server=path).wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

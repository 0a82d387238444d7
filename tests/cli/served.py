"""t2t-server in a process of its own."""

import re
from pathlib import Path

import requests

from tests.support.processes import TIMEOUT, start_command


class Server:
    """A server whose models are loaded, or else one whose port is open.

    Args:
        folder: gets its output.
        flags: of the command.
        waits: whether for the models.
    """

    def __init__(self, folder: Path, *flags: str, waits: bool = True) -> None:
        port = [] if any(flag.startswith("--port=") for flag in flags) else ["--port=0"]
        self.process = start_command(folder, "t2t-server", *port, *flags)
        self.process.wait_for("^listening at http://localhost:")
        self.address = re.findall(r"^listening at (http://localhost:\d+);", self.process.err, re.MULTILINE)[0]
        if waits:
            self.process.wait_for(f"^serving at {self.address}; Ctrl-C ends it$")

    def post(self, path: str, **request: object) -> requests.Response:
        """Returns the answer to a request in JSON."""
        return requests.post(self.address + path, json=request, timeout=TIMEOUT)

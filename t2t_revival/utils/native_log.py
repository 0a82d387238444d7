"""Filters log messages that C++ libraries write to the file descriptor of stderr, past their log levels.

TensorFlow writes before its log level is read: which CPU it was built for, that there is no GPU. TensorFlow
Text's SentencePiece has a log level that cannot be set. Other lines are kept.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

LEVEL = "TF_CPP_MIN_LOG_LEVEL"  # 0: all, 1: no INFO, 2: no WARNING, 3: no ERROR
DEFAULT_LEVEL = "2"
CHATTER = re.compile(
    rb"WARNING: All log messages before absl::InitializeLog|To enable the following instructions:"
    rb"|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] |\S+\.cc\(\d+\) LOG\(INFO\) "
    rb"|E\d{4} .*(failed call to cuInit|Unable to register cu\w+ factory|oneDNN supports DT_INT64 only)"
)


@contextmanager
def quiet() -> Iterator[None]:
    """Drops lines of `CHATTER` written to stderr in the block, unless the log level is 0 or 1.

    Other lines are written when the block ends; after an exception all lines are.
    """
    if os.environ.get(LEVEL, DEFAULT_LEVEL) in ("0", "1"):
        yield
        return
    try:
        sys.stderr.flush()
        stderr = os.dup(2)
    except (OSError, AttributeError):  # no stderr
        yield
        return
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        has_failed = True
        try:
            yield
            has_failed = False
        finally:
            with suppress(OSError):
                sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            lines = [line for line in written if has_failed or not CHATTER.match(line)]
            with suppress(OSError), open(2, "wb", buffering=0, closefd=False) as file:  # such as a full disk
                file.write(b"".join(lines))

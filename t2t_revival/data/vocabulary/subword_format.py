r"""The format of T2T's `vocab.*.subwords`: lines of the file, runs of characters, and escapes.

A text is split into runs of letters and numbers and runs of anything else; a single space between two words
is dropped. A run is escaped, ended by "_", and split greedily into the longest subtokens. The escapes are
"\u" for "_", "\\" for "\", and "\NNN;" for a line feed or the code point of a character that no subtoken
contains.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from t2t_revival.errors import T2TError

END = "_"  # ends each run
ESCAPE_CHARACTERS = "\\_u;0123456789"
RESERVED = ("<pad>", "<EOS>")  # ids 0 and 1
REPLACEMENT = "\u3013"  # replaces an escape whose number is no code point
QUOTES = "'\""
_ESCAPE = re.compile(r"\\u|\\\\|\\([0-9]+);")


def read_subtokens(content: bytes, path: str | Path) -> list[str]:
    """Parses a file's content: one subtoken per line, in quotes or without; raises T2TError if not UTF-8."""
    try:
        lines = content.decode().split("\n")
    except UnicodeDecodeError as error:
        raise T2TError(f"{path}: not a T2T vocabulary: not UTF-8 text") from error
    if not lines[-1]:
        lines.pop()
    return list(map(_subtoken, lines))


def subtoken_lines(subtokens: Sequence[str], path: str | Path, quote: str) -> bytes:
    """Returns the content of a file with one subtoken per line between two `quote`s.

    Raises:
        T2TError: without quotes, a subtoken such as a space would be read back differently; names `path`.
    """
    lines = [f"{quote}{subtoken}{quote}" for subtoken in subtokens]
    for subtoken, line in zip(subtokens, lines, strict=True):
        if _subtoken(line) != subtoken:
            raise T2TError(f"{path}: the subtoken {subtoken!r} needs quotes: add_single_quotes=True")
    return "".join(f"{line}\n" for line in lines).encode()


def _subtoken(line: str) -> str:
    line = line.rstrip()
    quoted = line[:1] in QUOTES and line[:1] == line[-1:]
    return line[1:-1] if quoted else line


def split_runs(text: str) -> list[str]:
    """Splits a text into runs; drops single spaces, except at its beginning and end."""
    runs = ["".join(characters) for _, characters in groupby(text, is_alphanumeric)]
    return runs[:1] + [run for run in runs[1:-1] if run != " "] + runs[1:][-1:]


def escape(run: str, alphabet: Collection[str]) -> str:
    """Escapes a run into characters of `alphabet` and appends the end mark."""
    text = run.replace("\\", "\\\\").replace(END, "\\u")
    return "".join(c if c in alphabet and c != "\n" else f"\\{ord(c)};" for c in text) + END


def unescape(run: str) -> str:
    """Reverses `escape` for a run without its end mark."""
    return _ESCAPE.sub(_unescaped, run)


def _unescaped(match: re.Match[str]) -> str:
    if match[1] is None:
        return "_" if match[0] == "\\u" else "\\"
    digits = match[1].lstrip("0")
    code = int(digits or "0") if len(digits) <= len(str(sys.maxunicode)) else sys.maxunicode + 1
    return REPLACEMENT if code > sys.maxunicode or 0xD800 <= code < 0xE000 else chr(code)


def longest_match(text: str, subtokens: Collection[str], max_length: int) -> Iterator[str]:
    """Splits an escaped run, whose characters must all be subtokens, greedily into the longest subtokens."""
    start = 0
    while start < len(text):
        ends = range(min(len(text), start + max_length), start, -1)
        end = next(end for end in ends if text[start:end] in subtokens)
        yield text[start:end]
        start = end


@lru_cache(2**16)
def is_alphanumeric(character: str) -> bool:
    """Returns whether a character is of Unicode's categories L or N."""
    return unicodedata.category(character)[0] in "LN"


@lru_cache(1)
def alphanumeric_bounds() -> list[int]:
    """Returns the code points at which `is_alphanumeric` changes, ascending; the first change is to true."""
    kinds = groupby(range(sys.maxunicode + 1), lambda code: unicodedata.category(chr(code))[0] in "LN")
    return [next(codes) for _, codes in kinds][1:]

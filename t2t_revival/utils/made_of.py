"""`MadeOf`: what a thing was made of, kept in its file and compared with what it would be made of now."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_revival.errors import T2TError

MOST_NAMED = 8  # changes in a message


@dataclass(frozen=True)
class MadeOf:
    """Settings and fingerprints of what a thing was made of.

    Attributes:
        values: JSON values by names for people; a tuple equals a list.

    Example:
        known = MadeOf(checked_json.load(path, "remove it"))
        known.check(MadeOf({"beam_size": 4}), f"{folder} holds outputs with", "give another folder")
    """

    values: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", json.loads(json.dumps(dict(self.values))))

    def changed(self, now: MadeOf) -> list[str]:
        """The names whose values are others now.

        Names that only this one has are left out: its file may hold counts as well, or be of another version.
        """
        return [name for name, value in now.values.items() if self.values.get(name) != value]

    def difference(self, now: MadeOf) -> str:
        """Describes what has changed, as in "beam_size=4, not 8; alpha=0.6, not 1"; "" if nothing has.

        Of very many values the first ones are named.
        """
        changed = [
            f"{name}={_shown(self.values.get(name))}, not {_shown(now.values[name])}"
            for name in self.changed(now)
        ]
        more = [f"{len(changed) - MOST_NAMED} more"] if len(changed) > MOST_NAMED else []
        return "; ".join(changed[:MOST_NAMED] + more)

    def check(self, now: MadeOf, holds: str, remedy: str) -> None:
        """Refuses a thing that was made of something else.

        Args:
            now: what it would be made of now.
            holds: how the error begins, as in "FOLDER holds outputs with".
            remedy: how it ends.

        Raises:
            T2TError: a value has changed.
        """
        if difference := self.difference(now):
            raise T2TError(f"{holds} {difference}: {remedy}")


def _shown(value: Any) -> str:
    return str(value) or repr(value)


def fingerprint(content: Any) -> str:
    """Identifies content, in hexadecimal digits.

    Args:
        content: a file, or bytes, whose SHA-256 are 64 digits; or JSON values, whose CRC-32 are 8. In these,
            the order of names does not count, and other objects are what `str` makes of them.
    """
    if isinstance(content, Path):
        content = content.read_bytes()
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, default=str).encode()):08x}"

"""Comparison of generated data with what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t2t_revival.data.base_source import Source
from t2t_revival.data.metadata import Metadata
from t2t_revival.errors import T2TError

REMEDY = "make it again by t2t-datagen with the same flags and --overwrite, or give another --data_dir"


def check_origins(data_dir: Path, metadata: Metadata, make_source: Callable[[], Source]) -> str:
    """Checks that what data was made of has not changed.

    Args:
        data_dir: folder of the data.
        metadata: of data from one source.
        make_source: returns that source; called only where it has something to compare.

    Returns:
        A line on what cannot be checked, because it is not here; "" if all was checked.

    Raises:
        T2TError: a file of the source, its version, or a vocabulary that was given has changed.
    """
    made, known, name = f"{metadata.name} in {data_dir}", metadata.origins, metadata.source
    if change := metadata.given_vocabularies.change():
        raise T2TError(f"a vocabulary has changed since {made} was made with it: {change}; {REMEDY}")
    if not (known.files or known.version):
        return ""
    absent = f"{name} is not here: whether it has changed since {made} was made cannot be checked"
    if known.are_gone:
        return absent
    source = make_source()
    version = source.version() if known.version else ""
    if known.version and not version:
        return absent
    if change := known.change(source.files(), version):
        raise T2TError(f"{name} has changed since {made} was made of it: {change}; {REMEDY}")
    return ""

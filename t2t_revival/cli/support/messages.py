"""Messages on stderr, where they cannot get into translations."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from t2t_revival.training.checkpoints.directory import ignored_checkpoint
from t2t_revival.training.checkpoints.file import CorruptCheckpointError


def say(message: str) -> None:
    """Prints a line on stderr."""
    print(message, file=sys.stderr, flush=True)


def warn_of_corruption(error: CorruptCheckpointError) -> None:
    """Warns that a corrupt checkpoint is left out and an older one used."""
    say(f"warning: {ignored_checkpoint(error)}")


def warn_of_skipped(error: CorruptCheckpointError) -> None:
    """Warns that a corrupt checkpoint is left out, where each checkpoint is used by itself."""
    say(f"warning: {error.fault}, left out")


def warn_of_tabs(translations: Sequence[str], references: Sequence[str], name: object) -> None:
    """Warns of translations with tabs that their references lack, as lines of several outputs have."""
    pairs = zip(translations, references, strict=True)
    if count := sum("\t" in translation and "\t" not in reference for translation, reference in pairs):
        say(
            f"warning: {name}: {count:,} of {len(translations):,} lines contain tabs, as written with "
            "return_beams or write_beam_scores, and are scored with everything on them; to keep only the "
            "best outputs, use cut -f1"
        )

"""t2t-back-translate with blocks of few lines, so that workers share a small text."""

from functools import partial
from unittest import mock

from t2t_revival.addons.back_translation.corpus import BackTranslation
from t2t_revival.cli import back_translate

BLOCK_LINES = 10


def run_in_small_blocks(*flags: str) -> int:
    """Runs the command; returns its exit status."""
    smaller = partial(BackTranslation, block_lines=BLOCK_LINES)
    with mock.patch.object(back_translate, "BackTranslation", smaller):
        return back_translate.main(["t2t-back-translate", *flags])

"""Blank text: white space and characters that leave nothing visible."""

from __future__ import annotations

import re

# Controls, spaces, separators, Unicode's default ignorable characters, annotation marks, and blank Braille.
INVISIBLE = (
    (0x0000, 0x0020),
    (0x007F, 0x00A0),
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x1680, 0x1680),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x2000, 0x200F),
    (0x2028, 0x202F),
    (0x205F, 0x206F),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
BLANK = re.compile("[{}]*".format("".join(rf"\U{first:08x}-\U{last:08x}" for first, last in INVISIBLE)))


def is_blank(text: str) -> bool:
    """Checks whether a text has nothing visible; such a line has an empty output."""
    return BLANK.fullmatch(text) is not None

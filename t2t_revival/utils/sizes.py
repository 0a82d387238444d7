"""Sizes in bytes, for people."""

UNITS = ("bytes", "kB", "MB", "GB")


def readable_size(size: float) -> str:
    """Formats a number of bytes, in powers of 1000: 23,456,789 -> "23 MB", 1,234,567 -> "1.2 MB"."""
    for unit in UNITS:
        if size < 999.5:
            return f"{size:.1f} {unit}" if unit != UNITS[0] and size < 9.95 else f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"

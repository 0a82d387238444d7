"""A cache of the Hugging Face Hub with models that a test makes."""

from pathlib import Path

REVISION = "0123456789abcdef0123456789abcdef01234567"


def in_cache(cache: Path, name: str) -> Path:
    """Returns the folder of a model in a cache, into which the test writes its files."""
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    return repository / "snapshots" / REVISION

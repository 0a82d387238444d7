"""Blocks the import of TensorFlow in this process, as if it were not installed."""

import sys
from typing import Any

BLOCKED = ("tensorflow", "tensorflow_text", "tensorflow_datasets", "keras_nlp", "keras_hub")


class _Blocker:
    """A finder that refuses the packages."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"{name} is not to be imported", name=name)


def block_tensorflow() -> None:
    """Blocks the packages; none of them may be imported yet."""
    assert not set(BLOCKED) & set(sys.modules)
    sys.meta_path.insert(0, _Blocker())
    sys.modules["tensorflow"] = None  # type: ignore[assignment]

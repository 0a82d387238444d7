"""Registration of sets that change a few fields of another set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from t2t_revival import registry
from t2t_revival.hparams.hparams import HParams


def register_variation(
    base: Callable[[], HParams], name: str, summary: str, changes: Mapping[str, Any]
) -> None:
    """Registers the set of `base` with some fields changed.

    Args:
        base: returns the set to change.
        name: the name of the new set.
        summary: its description in `--registry_help`.
        changes: the values of the changed fields.
    """

    def variation() -> HParams:
        return base().replace(**changes)

    variation.__name__ = name
    variation.__doc__ = summary
    registry.register_hparams(variation)

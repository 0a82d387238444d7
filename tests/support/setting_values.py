"""Values of the settings of decoding, from their types, bounds and choices."""

from typing import Any

from t2t_revival.decoding.combinations import NEEDS
from t2t_revival.decoding.options import SETTINGS, DecodeHParams

TEXTS = {"tag": "<2de>"}  # values of settings whose texts are in no list
NEED = {  # what a setting needs to have an effect
    name: needed if "=" in needed else f"{needed}={SETTINGS[needed].choices[0]}"
    for name, needed in NEEDS.items()
} | {"early_stopping": "alpha=3", "sampling_keep_top_k": "sampling_method=random,sampling_temp=9"}


def values_of(name: str) -> list[Any]:
    """Returns values of a setting other than its default: all choices, or the bounds and one between."""
    about, default = SETTINGS[name], getattr(DecodeHParams, name)
    if isinstance(default, bool):
        return [not default]
    if isinstance(default, str):
        assert about.choices or name in TEXTS, f"{name}: add a text that it may be to TEXTS"
        return [value for value in about.choices or [TEXTS[name]] if value != default]
    least = 1 if name == "batch_size" else about.least  # 0 measures, for seconds
    most = default + 2 if about.most is None else about.most
    numbers = {least, min(max(default + 1, least), most), most}
    return [value for value in sorted(map(type(default), numbers)) if value != default]

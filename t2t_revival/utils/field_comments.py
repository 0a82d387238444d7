"""Meanings of the hyperparameters, read from the comments of `HParams` in hparams.py."""

from __future__ import annotations

import dataclasses
import inspect
import io
import tokenize

from t2t_revival.hparams.hparams import HParams


def meanings() -> dict[str, dict[str, str]]:
    """The comment behind each field of `HParams`, by group and name, in their order.

    A group's title is the comment that stands on a line of its own above it, such as "Model (section 3)".
    """
    names = {field.name for field in dataclasses.fields(HParams)}
    groups: dict[str, dict[str, str]] = {}
    title = ""
    for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(HParams)).readline):
        if token.type != tokenize.COMMENT:
            continue
        text = token.string.lstrip("# ")
        name = token.line.partition(":")[0].strip()
        if name in names:
            groups.setdefault(title, {})[name] = text
        elif token.line.strip() == token.string:
            title = text
    return groups

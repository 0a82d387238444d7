"""A trained model as a SavedModel folder that TF Serving takes as it is."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.tf_serving import write_configuration, write_warmup

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

SIGNATURES = ("serving_default", "translate_with_options")


def export(translator: Translator, export_dir: Path, name: str) -> Path:
    """Writes `export_dir/VERSION`, whole or not at all; VERSION is the time, as T2T's.

    TF Serving watches `export_dir` and serves the highest version; what starts it is written there too.

    Args:
        translator: its model, vocabulary and options.
        export_dir: made where it is missing.
        name: of the served model.

    Returns:
        The version's folder.

    Raises:
        T2TError: the folder cannot be written.
    """
    module = ServingModule(translator.model, translator.vocabulary, translator.options, translator.max_length)
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        target = export_dir / str(_new_version(export_dir))
        temporary = export_dir / f".{target.name}.tmp"
        try:
            tf.saved_model.save(
                module,
                str(temporary),
                signatures=dict(
                    zip(SIGNATURES, (module.translate, module.translate_with_options), strict=True)
                ),
            )
            write_warmup(temporary, name, translator.vocabulary, translator.options)
            temporary.rename(target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        write_configuration(export_dir, name)
    except (OSError, tf.errors.OpError) as error:
        raise T2TError(f"{export_dir}: cannot be written: {error}") from error
    return target


def _new_version(export_dir: Path) -> int:
    """Seconds since 1970, and above what is there."""
    there = [int(path.name) for path in export_dir.iterdir() if path.name.isdecimal()]
    return max(int(time.time()), *(version + 1 for version in there), 0)

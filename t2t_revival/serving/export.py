"""A trained model as a SavedModel folder that TF Serving takes as it is."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.tf_serving import write_configuration, write_warmup

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

UNFINISHED = ".unfinished-"  # begins the name of a folder that a killed export may leave behind
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
        write_configuration(export_dir, name)
        with tempfile.TemporaryDirectory(dir=export_dir, prefix=UNFINISHED) as folder:
            written = Path(folder) / "version"
            signatures = zip(SIGNATURES, (module.translate, module.translate_with_options), strict=True)
            tf.saved_model.save(module, str(written), signatures=dict(signatures))
            write_warmup(written, name, translator.vocabulary, translator.options)
            return written.rename(export_dir / str(_new_version(export_dir)))
    except tf.errors.ResourceExhaustedError as error:
        raise T2TError(f"{export_dir}: the disk is full: make room or give another folder") from error
    except (OSError, tf.errors.OpError) as error:
        raise T2TError(f"{export_dir}: cannot be written: {error}") from error


def _new_version(export_dir: Path) -> int:
    """Seconds since 1970, and above what is there."""
    there = [int(path.name) for path in export_dir.iterdir() if path.name.isdecimal()]
    return max(int(time.time()), *(version + 1 for version in there), 0)

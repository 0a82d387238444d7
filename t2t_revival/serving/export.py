"""A trained model as a SavedModel folder that TF Serving takes as it is, or as a CTranslate2 model."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import tensorflow as tf

from t2t_revival.errors import T2TError
from t2t_revival.serving.ctranslate2_format import write_ctranslate2
from t2t_revival.serving.module import ServingModule
from t2t_revival.serving.tf_serving import write_configuration, write_warmup

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

UNFINISHED = ".unfinished-"  # begins the name of a folder that a killed export may leave behind
SERVABLE = re.compile(r"\w[\w.-]*")
SIGNATURES = ("serving_default", "translate_with_options")


def export(translator: Translator, export_dir: Path, name: str, quantize: str = "none") -> Path:
    """Writes `export_dir/VERSION`, whole or not at all; VERSION is the time, as T2T's.

    TF Serving watches `export_dir` and serves the highest version; what starts it is written there too.

    Args:
        translator: its model, vocabulary and options. The model's precision is `PRECISIONS[quantize]`.
        export_dir: made where it is missing.
        name: of the served model.
        quantize: how weights are stored: "none" (float32), "bfloat16" or "int8".

    Returns:
        The version's folder.

    Raises:
        T2TError: the folder cannot be written, or `name` cannot stand in configuration files.
    """
    if not SERVABLE.fullmatch(name):
        raise T2TError(f"{name!r} cannot be the name of a served model: give letters, digits, _, . and -")
    module = ServingModule(translator, quantize)

    def write(folder: Path) -> None:
        write_configuration(export_dir, name)
        signatures = zip(SIGNATURES, (module.translate, module.translate_with_options), strict=True)
        tf.saved_model.save(module, str(folder), signatures=dict(signatures))
        write_warmup(folder, name, translator.vocabulary, translator.options)

    return _new_folder(export_dir, write)


def export_ctranslate2(translator: Translator, export_dir: Path, quantize: str = "none") -> Path:
    """Writes `export_dir/VERSION` for CTranslate2, whole or not at all; see `write_ctranslate2`."""
    return _new_folder(export_dir, lambda folder: write_ctranslate2(translator, folder, quantize))


def _new_folder(export_dir: Path, write: Callable[[Path], None]) -> Path:
    """A new version in `export_dir`, which `write` makes."""
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=export_dir, prefix=UNFINISHED) as folder:
            written = Path(folder) / "version"
            write(written)
            return written.rename(export_dir / str(_new_version(export_dir)))
    except tf.errors.ResourceExhaustedError as error:
        raise T2TError(f"{export_dir}: the disk is full: make room or give another folder") from error
    except (OSError, tf.errors.OpError) as error:
        raise T2TError(f"{export_dir}: cannot be written: {error}") from error


def _new_version(export_dir: Path) -> int:
    """Seconds since 1970, and above what is there."""
    there = [int(path.name) for path in export_dir.iterdir() if path.name.isdecimal()]
    return max(int(time.time()), *(version + 1 for version in there), 0)

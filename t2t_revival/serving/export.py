"""Export of a trained model for TensorFlow Serving (a SavedModel) or CTranslate2."""

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

UNFINISHED = ".unfinished-"  # prefix of a folder that a killed export may leave
SERVABLE = re.compile(r"\w[\w.-]*")
SIGNATURES = ("serving_default", "translate_with_options")


def export(translator: Translator, export_dir: Path, name: str, quantize: str = "none") -> Path:
    """Writes `export_dir/VERSION`, complete or not at all; VERSION is the time, as in T2T.

    TensorFlow Serving watches `export_dir` and serves the highest version. Its configuration is written
    there too.

    Args:
        translator: model, vocabulary and options; the model's precision is `PRECISIONS[quantize]`.
        export_dir: created if missing.
        name: name of the served model.
        quantize: type of the stored weights: "none" (float32), "bfloat16" or "int8".

    Returns:
        Folder of the version.

    Raises:
        T2TError: the folder cannot be written, or `name` is invalid.
    """
    if not SERVABLE.fullmatch(name):
        raise T2TError(f"{name!r} is not a valid name of a served model: give letters, digits, _, . and -")
    module = ServingModule(translator, quantize)

    def write(folder: Path) -> None:
        write_configuration(export_dir, name)
        signatures = zip(SIGNATURES, (module.translate, module.translate_with_options), strict=True)
        tf.saved_model.save(module, str(folder), signatures=dict(signatures))
        write_warmup(folder, name, translator.vocabulary, translator.options)

    return _new_folder(export_dir, write)


def export_ctranslate2(translator: Translator, export_dir: Path, quantize: str = "none") -> Path:
    """Writes `export_dir/VERSION` for CTranslate2, complete or not at all; see `write_ctranslate2`."""
    return _new_folder(export_dir, lambda folder: write_ctranslate2(translator, folder, quantize))


def _new_folder(export_dir: Path, write: Callable[[Path], None]) -> Path:
    """Creates a new version in `export_dir` with `write`; returns its folder."""
    try:
        export_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=export_dir, prefix=UNFINISHED) as folder:
            version = Path(folder) / "version"
            write(version)
            return version.rename(export_dir / str(_new_version(export_dir)))
    except tf.errors.ResourceExhaustedError as error:
        raise T2TError(
            f"cannot write {export_dir}: the disk is full; free some space or give another folder"
        ) from error
    except (OSError, tf.errors.OpError) as error:
        raise T2TError(f"cannot write {export_dir}: {error}") from error


def _new_version(export_dir: Path) -> int:
    """Returns the seconds since 1970, or more if a version there is as high."""
    versions = [int(path.name) for path in export_dir.iterdir() if path.name.isdecimal()]
    return max(int(time.time()), *(version + 1 for version in versions), 0)

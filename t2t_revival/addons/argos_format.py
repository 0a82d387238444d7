"""Trained models as packages of Argos Translate and LibreTranslate."""

from __future__ import annotations

import json
import shlex
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.addons.ctranslate2.format import write_ctranslate2
from t2t_revival.data.vocabulary.marian import WRITTEN, MarianVocabulary, check_plain
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.serving.export import Export


def export_argos(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the command that installs it. See `write_argos`."""
    version = what.write_version(
        lambda folder: write_argos(what.translator, folder, what.quantize, what.about)
    )
    return version, f"next: argospm install {shlex.quote(str(next(version.glob('*.argosmodel'))))}"


def write_argos(translator: Translator, folder: Path, quantize: str, about: str) -> None:
    """Writes a folder with `translate-XX_YY-1_0.argosmodel`: CTranslate2's model, pieces and languages.

    Argos Translate searches with its own length penalty, 0.2. It splits texts into sentences by models of its
    own, which it downloads.

    Args:
        translator: model, vocabulary and options; the model's precision is float32.
        folder: must not exist.
        quantize: see `write_ctranslate2`.
        about: what the README says of the training.

    Raises:
        T2TError: as `write_ctranslate2`; the vocabulary is T2T's or of M2M100, there are two, or the
            problem has no languages.
    """
    vocabularies, problem = translator.vocabularies, translator.problem
    pieces = vocabularies.inputs
    if vocabularies.separate or not isinstance(pieces, (Vocabulary, MarianVocabulary)):
        raise T2TError(
            "Argos Translate's format has one SentencePiece vocabulary; this model has another kind"
        )
    check_plain(pieces, "Argos Translate's format")
    if problem is None:
        raise T2TError(
            "Argos Translate's format has the model's languages: give --t2t_usr_dir of its problem"
        )
    source, target = (side.partition("_")[0] for side in (problem.source_lang, problem.target_lang))
    metadata = {
        "package_version": "1.0",
        "argos_version": "1.9",
        "from_code": source,
        "from_name": source,
        "to_code": target,
        "to_name": target,
    }
    files = {
        "metadata.json": json.dumps(metadata, indent=2).encode(),
        "README.md": f"# {source} to {target}\n\n{about}\n".encode(),
        "sentencepiece.model": pieces.model if isinstance(pieces, MarianVocabulary) else pieces.content,
    }
    positions = translator.max_length + translator.options.extra_length
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        model = Path(scratch, "model")
        write_ctranslate2(translator.model, vocabularies, positions, model, quantize)
        files |= {f"model/{path.name}": path.read_bytes() for path in sorted(model.iterdir())}
    folder.mkdir()
    name = f"translate-{source}_{target}-1_0"
    with zipfile.ZipFile(folder / f"{name}.argosmodel", "w", zipfile.ZIP_DEFLATED) as package:
        for file, content in files.items():
            package.writestr(zipfile.ZipInfo(f"{name}/{file}", WRITTEN), content, zipfile.ZIP_DEFLATED)

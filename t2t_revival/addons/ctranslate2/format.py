"""Trained models in the format of CTranslate2; checkpoints are converted once, and kept beside them.

ctranslate2-cache/
  model/                the converted checkpoint, the newest one only
    origin.json         origin of the folder and checksums of its files
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_revival.data.vocabulary.sentencepiece import EOS, PAD
from t2t_revival.data.vocabulary.text_encoder import MARIAN, SUBWORDS
from t2t_revival.decoding.capabilities import CTRANSLATE2, check_held
from t2t_revival.decoding.engine import load_transformer
from t2t_revival.errors import T2TError
from t2t_revival.utils import checked_json, keras_config, native_log
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import check_utf8, exclusive_lock, writing
from t2t_revival.utils.made_of import MadeOf
from t2t_revival.utils.origins import checksum

if TYPE_CHECKING:
    from t2t_revival.data.vocabulary import Vocabularies
    from t2t_revival.decoding.addons import Shortlist
    from t2t_revival.decoding.alignment_heads import AlignmentHeads
    from t2t_revival.hparams import HParams
    from t2t_revival.model import Transformer
    from t2t_revival.serving.export import Export

MEMORY_AS_NEEDED = "TF_FORCE_GPU_ALLOW_GROWTH"  # TensorFlow, which converts, else takes the whole GPU
MIN_POSITIONS = 1024  # CTranslate2 has no positions beyond its table
VOCABULARY = "vocabulary"  # file name without the suffix, which depends on the kind of vocabulary
SOURCE_VOCABULARY, TARGET_VOCABULARY = "vocabulary.source", "vocabulary.target"  # where there are two
FOLDER, MODEL, ORIGIN = "ctranslate2-cache", "model", "origin.json"
UNFINISHED = ".unfinished-"  # prefix of a folder that a killed process may leave
FORMAT = 1  # of origin.json
Model = TypeVar("Model")
SENTENCEPIECE_OF = "sentencepiece.SentencePieceProcessor(model_file={file!r})"
SENTENCEPIECE_STEPS = """\
found = translator.translate_batch([{source}.encode("...", out_type=str)], \
beam_size={beam_size}, length_penalty={alpha}{more})
print({target}.decode(found[0].hypotheses[0]))"""
SUBWORDS_OF = "t2t_revival.data.vocabulary.subwords.SubwordVocabulary({file!r})"
MARIAN_OF = "t2t_revival.data.vocabulary.marian.MarianVocabulary({file!r}, is_target={is_target})"
SUBWORD_STEPS = """\
found = translator.translate_batch([[{source}.pieces[token] for token in {source}.encode("...")]], \
beam_size={beam_size}, length_penalty={alpha}{more})
print({target}.decode(map({target}.pieces.index, found[0].hypotheses[0])))"""
VOCABULARY_MAP = "vmap.txt"  # read if `translate_batch` is called with use_vmap=True


def write_ctranslate2(
    model: Transformer,
    vocabularies: Vocabularies,
    positions: int,
    folder: Path,
    quantize: str = "none",
    vocabulary_map: str = "",
    heads: AlignmentHeads | None = None,
) -> None:
    """Writes a folder for `ctranslate2.Translator`, with the vocabularies.

    CTranslate2 translates from pieces to pieces of the vocabulary, and adds EOS to its inputs. Its length
    penalty differs: log-probability / length^alpha.

    Args:
        model: the model.
        vocabularies: of source and target.
        positions: maximum length of an input or output; at least `MIN_POSITIONS` are written.
        folder: must not exist.
        quantize: "none" (float32), "bfloat16" or "int8", in CTranslate2's own scheme.
        vocabulary_map: see `format_vocabulary_map`; "" writes none.
        heads: whose mean attention CTranslate2 returns, as its `return_attention`; `None` leaves it to
            CTranslate2: the first head of the last layer. In their layer they come first then.

    Raises:
        T2TError: the package `ctranslate2` is missing, or does not support the model or the vocabularies.
    """
    require("ctranslate2", "CTranslate2's format")
    from t2t_revival.addons.ctranslate2.spec import make_spec, put_first

    check_convertible(model.hparams)
    spec = make_spec(model, max(positions, MIN_POSITIONS))
    if heads:
        put_first(spec.decoder, heads, model.hparams)
    targets = vocabularies.targets
    if vocabularies.inputs.pieces[EOS] != targets.pieces[EOS]:
        raise T2TError("CTranslate2 needs two vocabularies of one kind, SentencePiece's or T2T's")
    spec.register_source_vocabulary(vocabularies.inputs.pieces)
    spec.register_target_vocabulary(targets.pieces)
    config = spec.config
    config.decoder_start_token = config.bos_token = targets.pieces[model.hparams.start_token]
    config.eos_token, config.unk_token = targets.pieces[EOS], targets.pieces[targets.unknown]
    config.add_source_eos = True
    config.layer_norm_epsilon = model.hparams.norm_epsilon
    spec.validate()
    try:
        spec.optimize(quantization=None if quantize == "none" else quantize)
    except RuntimeError as error:  # CTranslate2 converts to bfloat16 by PyTorch
        raise T2TError(f"CTranslate2: --quantize={quantize}: {error}") from error
    folder.mkdir()
    spec.save(str(folder))
    write_vocabularies(vocabularies, folder)
    if vocabulary_map:
        (folder / VOCABULARY_MAP).write_text(vocabulary_map, encoding="utf-8")


def export_ctranslate2(what: Export) -> tuple[Path, str]:
    """Writes a version; also returns the Python that translates with it. See `write_ctranslate2`."""
    translator, vocabularies = what.translator, what.translator.vocabularies
    options = translator.options
    positions = translator.max_length + options.extra_length
    mapped = format_vocabulary_map(what.shortlist, vocabularies) if what.shortlist else ""

    def write(folder: Path) -> None:
        write_ctranslate2(
            translator.model, vocabularies, positions, folder, what.quantize, mapped, what.heads
        )

    version = what.write_version(write)
    opening, sides = opened_vocabularies(vocabularies, version)
    steps = SUBWORD_STEPS if vocabularies.inputs.path.suffix in (SUBWORDS, MARIAN) else SENTENCEPIECE_STEPS
    free = "it searches without the constraint to trees\n" if options.constrained else ""
    targets = vocabularies.targets
    more = ", disable_unk=True" if targets.banned else ""
    more += f", target_prefix={[[targets.pieces[targets.first]]]}" if targets.first != PAD else ""
    alpha = options.normalize or options.alpha
    steps = steps.format(beam_size=options.beam_size, alpha=alpha, more=more, **sides)
    opened = f"translator = ctranslate2.Translator({str(version)!r})\n{opening}"
    return version, f"{free}next, in Python:\n{opened}{steps}"


def convert_checkpoint(
    checkpoint: Path,
    folder: Path,
    hparams: HParams,
    vocabularies: Vocabularies,
    positions: int,
    vocabulary_map: str,
    heads: AlignmentHeads | None,
) -> None:
    """Writes a checkpoint as `write_ctranslate2` does; in a process of its own, since it imports TensorFlow.

    Raises:
        T2TError: as `write_ctranslate2`, or the checkpoint is corrupt.
    """
    os.environ.setdefault(MEMORY_AS_NEEDED, "true")
    with native_log.quiet():
        keras_config.import_keras()
        model = load_transformer(checkpoint, hparams, vocabularies)
    write_ctranslate2(model, vocabularies, positions, folder, vocabulary_map=vocabulary_map, heads=heads)


def open_converted(
    checkpoint: Path,
    origin: Mapping[str, Any],
    convert: Callable[[Path], None],
    load: Callable[[Path], Model],
    on_note: Callable[[str], None],
) -> Model:
    """Loads a converted checkpoint; converts it if that was not done, or of other weights, or is corrupt.

    Processes that open it at the same time wait for each other. Where nothing can be written beside the
    checkpoint, a temporary folder is used.

    Args:
        checkpoint: its file.
        origin: everything that the converted model depends on, as JSON values; `None` accepts any value.
        convert: writes the folder that it is called with, which does not exist yet.
        load: called with the folder; returns the model.
        on_note: called with a line for people on each conversion.

    Raises:
        T2TError: a temporary folder cannot be written either, or CTranslate2 cannot take the path.
    """
    folder = checkpoint.parent / FOLDER
    check_utf8(folder, "CTranslate2", "rename it, or use --engine=tensorflow")
    try:
        folder.mkdir(exist_ok=True)
        with exclusive_lock(folder, None):
            kept = folder / MODEL
            if not _is_valid(kept, origin):
                on_note(f"converting {checkpoint.name} for CTranslate2, once; it is kept in {folder}")
                _replace(kept, origin, convert)
            return load(kept)
    except OSError as error:
        on_note(
            f"warning: cannot write {folder} ({error.strerror or error}): {checkpoint.name} is converted for "
            "this run only"
        )
    with (
        writing("a temporary folder", "free some space, or set TMPDIR"),
        tempfile.TemporaryDirectory() as scratch,
    ):
        convert(Path(scratch, MODEL))
        return load(Path(scratch, MODEL))


def _is_valid(folder: Path, origin: Mapping[str, Any]) -> bool:
    """Returns whether a folder is a complete conversion of this origin, with the files that were written."""
    try:
        expected = _description(folder, {name: value for name, value in origin.items() if value is not None})
        return not MadeOf(checked_json.load(folder / ORIGIN, "")).changed(MadeOf(expected))
    except (T2TError, OSError):
        return False


def _replace(kept: Path, origin: Mapping[str, Any], convert: Callable[[Path], None]) -> None:
    """Converts into a new folder, and puts it in place of the one before."""
    for left in kept.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=UNFINISHED) as scratch:
        made = Path(scratch, MODEL)
        convert(made)
        checked_json.save(made / ORIGIN, _description(made, origin))
        if kept.exists():
            shutil.rmtree(kept)
        made.rename(kept)


def _description(folder: Path, origin: Mapping[str, Any]) -> dict[str, Any]:
    files = {path.name: checksum(path) for path in sorted(folder.iterdir()) if path.name != ORIGIN}
    return {"format": FORMAT, **origin, "files": files}


def write_vocabularies(vocabularies: Vocabularies, folder: Path) -> None:
    """Writes a copy of the vocabulary, or of both, beside an exported model; see `vocabulary_names`."""
    for vocabulary, name in zip(vocabularies.all, vocabulary_names(vocabularies), strict=False):
        (folder / name).write_bytes(vocabulary.content)


def vocabulary_names(vocabularies: Vocabularies) -> tuple[str, str]:
    """Returns the file names of the vocabularies of source and target beside an exported model."""
    names = (SOURCE_VOCABULARY, TARGET_VOCABULARY) if vocabularies.separate else (VOCABULARY, VOCABULARY)
    source, target = (
        f"{name}{vocabulary.path.suffix}" for name, vocabulary in zip(names, vocabularies, strict=True)
    )
    return source, target


def opened_vocabularies(vocabularies: Vocabularies, folder: Path) -> tuple[str, dict[str, str]]:
    """Returns lines of Python that open the vocabularies, and the variables of "source" and "target"."""
    names = ("source", "target") if vocabularies.separate else ("pieces", "pieces")
    opened = {}
    for name, file in zip(names, vocabulary_names(vocabularies), strict=True):
        kind = {SUBWORDS: SUBWORDS_OF, MARIAN: MARIAN_OF}.get(Path(file).suffix, SENTENCEPIECE_OF)
        opened[name] = f"{name} = {kind.format(file=str(folder / file), is_target=name == 'target')}\n"
    return "".join(opened.values()), dict(zip(("source", "target"), names, strict=True))


def format_vocabulary_map(translations: Shortlist, vocabularies: Vocabularies) -> str:
    """Formats translations: a source piece, a tab, and target pieces, separated by spaces, on each line.

    The line of the empty piece has the pieces that are always allowed.

    Raises:
        T2TError: pieces have spaces.
    """
    sources, targets = (vocabulary.pieces for vocabulary in vocabularies)
    if any(character in piece for piece in (*sources, *targets) for character in " \t\n"):
        raise T2TError(
            "CTranslate2 cannot have a shortlist of pieces with spaces, as those of T2T are: leave it out"
        )
    rows = {"": [*translations.frequent]}
    for source, best in enumerate(translations.best):
        itself = [] if vocabularies.separate else [source]
        rows[sources[source]] = [*itself, *best[best != PAD]]
    return "".join(f"{piece}\t{' '.join(targets[i] for i in ids)}\n" for piece, ids in rows.items())


def check_convertible(hparams: HParams) -> None:
    """Checks that CTranslate2 supports a model.

    Raises:
        T2TError: it does not.
    """
    if hparams.key_channels != hparams.value_channels:
        sizes = f"{hparams.key_channels} and {hparams.value_channels}"
        raise T2TError(f"CTranslate2 needs equal sizes of keys and values; this model has {sizes} channels")
    check_held(hparams, CTRANSLATE2)

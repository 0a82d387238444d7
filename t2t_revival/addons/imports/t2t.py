"""Import of a T2T checkpoint into a new output_dir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry
from t2t_revival.addons.imports.model import ImportedModel, ImportResult, VocabularyFile, check_unused, save
from t2t_revival.addons.imports.t2t_folder import T2TS, T2TSettings, vocab_files
from t2t_revival.addons.imports.t2t_variables import (
    T2TCheckpoint,
    has_own_softmax,
    variable_names,
    vocab_sizes,
    weights,
)
from t2t_revival.data.vocabulary import copy_name
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import SUBWORDS
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.t2t_names import registered_name

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem

T2T_SETS = "transformer_"  # prefix of the names of T2T's sets
RECIPES = ("transformer_base", "transformer_base_v2", "transformer_base_v1", "transformer_relative")
EXTRA_LENGTH = 100  # T2T's default; the paper's is 50
EMPTY_SUBTOKEN = b"''\n"


@dataclass(frozen=True)
class ImportSource:
    """A T2T checkpoint, and the options of its import.

    Attributes:
        checkpoint: prefix or folder.
        vocab_files: T2T's vocabulary, or those of inputs and targets, in the order of the data. None uses
            the only ones beside the checkpoint or in the training's data_dir.
        problem: name of a problem. `None` uses the registered problem whose name begins T2T's.
        hparams_set: name of an hparams set. `None` uses T2T's own if registered, else the nearest T2T set.
        target_space: T2T's `target_space_id` of the problem; 0 for all of T2T's translation problems.
        ignored_hparams: names in hparams.json to ignore.
    """

    checkpoint: Path
    vocab_files: Sequence[Path] = ()
    problem: str | None = None
    hparams_set: str | None = None
    target_space: int = 0
    ignored_hparams: tuple[str, ...] = ()


def import_checkpoint(source: ImportSource, output_dir: Path) -> ImportResult:
    """Writes an output_dir as this project's trainer does; weights, hparams and vocabulary are T2T's.

    Raises:
        T2TError: a file is missing or corrupt, the model is not T2T's `transformer`, or output_dir holds a
            run. Nothing is written then.
    """
    check_unused(output_dir)
    checkpoint = T2TCheckpoint(source.checkpoint)
    settings = T2TSettings.load(checkpoint.prefix.parent)
    sizes = vocab_sizes(checkpoint)
    hparams, notes = settings.hparams(source.ignored_hparams)
    files = source.vocab_files or vocab_files(checkpoint.prefix.parent, settings.flags)
    if len({copy_name(path) for path in files}) < len(files) or len(files) > 2:
        raise T2TError(f"--vocab_file={','.join(map(str, files))}: give one file, or two with two names")
    problem = _problem(source, settings, files[0])
    vocabularies = [SubwordVocabulary(path) for path in (reversed(files) if problem.was_reversed else files)]
    if len(vocabularies) > 1:  # T2T shares no softmax where they differ in size, whatever hparams.json says
        hparams = hparams.replace(shared_embedding_and_softmax_weights=not has_own_softmax(checkpoint))
    scopes = [_scope(vocabulary, sizes, settings.vocab_divisor) for vocabulary in vocabularies]
    if len(sizes) > len(vocabularies):
        raise T2TError(
            f"{checkpoint.prefix}: inputs and targets have separate vocabularies ({', '.join(sizes)}): "
            "give --vocab_file=SOURCE,TARGET"
        )
    names = variable_names(checkpoint, hparams, scopes)
    rows = [sizes[scope] for scope in scopes]
    copies = [_padded(*pair, settings.vocab_divisor) for pair in zip(vocabularies, rows, strict=True)]
    hparams_set = source.hparams_set or nearest_set(hparams, settings.flags.get("hparams_set", ""))
    registry.hparams(hparams_set)
    imported = ImportedModel(
        problem=problem.name,
        hparams_set=hparams_set,
        hparams=hparams,
        vocabularies=copies,
        decode_hparams={**problem.decode_hparams(), "extra_length": EXTRA_LENGTH},
        weights=lambda shapes: weights(checkpoint, names, shapes, source.target_space),
        step=checkpoint.step,
        notes=notes,
    )
    return save(imported, output_dir)


def _scope(vocabulary: SubwordVocabulary, sizes: Mapping[str, int], divisor: int) -> str:
    """Returns the scope of a vocabulary's embeddings: the only one, or that with its rows."""
    padded = vocabulary.size + -vocabulary.size % max(divisor, 1)
    fitting = [scope for scope, rows in sizes.items() if rows == padded or len(sizes) == 1]
    if not fitting:
        raise _other_model(vocabulary, " and ".join(map(str, sizes.values())))
    return fitting[0]


def _padded(vocabulary: SubwordVocabulary, rows: int, divisor: int) -> VocabularyFile:
    """Returns a vocabulary, with empty subtokens up to the rows of the embeddings."""
    missing = rows - vocabulary.size
    if missing != -vocabulary.size % max(divisor, 1):
        raise _other_model(vocabulary, str(rows))
    newline = b"" if not missing or vocabulary.content.endswith(b"\n") else b"\n"
    name = f"{copy_name(vocabulary.path).removesuffix(SUBWORDS)}{SUBWORDS}"
    return VocabularyFile(name, vocabulary.content + newline + EMPTY_SUBTOKEN * missing)


def _other_model(vocabulary: SubwordVocabulary, rows: str) -> T2TError:
    return T2TError(
        f"{vocabulary.path}: {vocabulary.size} subtokens, but the checkpoint's embeddings have {rows} rows: "
        "this is the vocabulary of another model"
    )


def _problem(source: ImportSource, settings: T2TSettings, vocab_file: Path) -> Problem:
    """Returns the registered problem of T2T's: `translate_ende` for `translate_ende_wmt32k`, also `_rev`."""
    if source.problem:
        return registry.problem(registered_name(source.problem, registry.list_problems()))
    t2t_name = settings.flags.get("problem") or vocab_file.name.removeprefix("vocab.").partition(".")[0]
    forward = t2t_name.removesuffix(registry.REVERSED)
    known = [name for name in registry.list_problems() if f"{forward}_".startswith(f"{name}_")]
    try:
        return registry.problem(max(known, key=len, default=forward) + t2t_name[len(forward) :])
    except T2TError as error:
        raise T2TError(f"T2T's problem {t2t_name} is not registered here: give --problem") from error


def nearest_set(hparams: HParams, t2t_name: str) -> str:
    """Returns the training's hparams set or, if it is not registered, the nearest of T2T's sets.

    T2T's name of the set, which may be "", is ignored if its norms differ from the model's, since T2T's
    versions changed the meaning of names.
    """
    sets = {name: registry.hparams(name) for name in registry.list_hparams()}
    if t2t_name in sets and sets[t2t_name].pre_norm == hparams.pre_norm:
        return t2t_name

    def likeness(name: str) -> tuple[int, int]:
        return sum(getattr(sets[name], field) == getattr(hparams, field) for field in T2TS), -len(name)

    model = hparams.architecture()
    same = [name for name in sets if name.startswith(T2T_SETS) and sets[name].architecture() == model]
    recipes = [name for name in RECIPES if sets[name].pre_norm == hparams.pre_norm]
    return max(same or recipes, key=likeness)

"""Loading of a `Translator` from the folder of a training."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.file import CheckpointNotFoundError, trained_on
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.decoding import engines
from t2t_revival.decoding.alignment_heads import AlignmentHeads, all_heads
from t2t_revival.decoding.head_choice import HeadChoice
from t2t_revival.decoding.notes import OnNote
from t2t_revival.decoding.options import TENSORFLOW, DecodeHParams, check_engine
from t2t_revival.decoding.preprocessor import find_problem
from t2t_revival.decoding.translations import Translations, data_warning
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.forks import start_computing

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


class LoadedModel(NamedTuple):
    """A trained model, of which a `Translator` is made.

    Attributes:
        model: with the checkpoint's weights.
        vocabularies: of source and target.
        options: how to decode.
        problem: of the training; `None` if it is unknown.
        translations: of a shortlist; `None` for none.
        heads: that align words; `None` for none.
        choice: of heads, which is still to be made; `None` for none.
        checkpoint: of the weights.
    """

    model: engines.Model
    vocabularies: Vocabularies
    options: DecodeHParams
    problem: Problem | None
    translations: Translations | None
    heads: AlignmentHeads | None
    choice: HeadChoice | None
    checkpoint: Checkpoint


def load(
    folder: ModelFolder,
    checkpoint: str | None,
    decode_hparams: str | DecodeHParams,
    num_parallel_batches: int,
    precision: str,
    on_damaged: OnDamaged | None,
    engine: str,
    on_note: OnNote,
    data_dir: str | Path | None,
) -> LoadedModel:
    """Loads a trained model; see `Translator.load`."""
    check_engine(engine, precision, num_parallel_batches)
    options = decode_hparams
    if not isinstance(options, DecodeHParams):
        options = DecodeHParams.parse(options, folder.run.decode_hparams)
        if warning := options.batch_size_warning:
            warnings.warn(warning, stacklevel=3)
    engines.check_options(engine, options, precision)
    hparams, vocabularies = folder.hparams, folder.vocabularies
    translations = Translations.load(folder.path, vocabularies.fingerprint) if options.has_shortlist else None
    problem = find_problem(folder.run.problem, options)
    heads, choice = None, None
    if options.aligns and engine == TENSORFLOW:
        all_heads(hparams).check(hparams)
        heads = AlignmentHeads.find(folder.path, hparams)
        choice = None if heads else HeadChoice.plan(folder, problem, data_dir)
    settings = options, precision, num_parallel_batches, on_note, translations
    if engine == TENSORFLOW:
        start_computing()

    def read() -> tuple[engines.Model, Checkpoint]:
        selected = select_checkpoint(folder.path, checkpoint, on_damaged)
        model = engines.new_model(engine, hparams, vocabularies, *settings)
        engines.load_weights(model, selected)
        return model, selected

    model, selected = taking_next(read, checkpoint, on_damaged)
    if translations:
        with suppress(CheckpointNotFoundError):  # replaced after it was loaded
            if note := data_warning(translations, folder.path, trained_on(selected.path)):
                on_note(note)
    return LoadedModel(model, vocabularies, options, problem, translations, heads, choice, selected)

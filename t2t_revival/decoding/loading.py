"""Loading of a `Translator` from the folder of a training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.file import CheckpointNotFoundError, trained_on
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.decoding import engines
from t2t_revival.decoding.addons import HeadChoice, Shortlist, addon
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.notes import OnNote
from t2t_revival.decoding.options import CTRANSLATE2, PHARAOH, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.preprocessor import find_problem
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import keras_config, native_log
from t2t_revival.utils.processes import start_computing

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


class LoadedModel(NamedTuple):
    """A trained model, of which a `Translator` is made.

    Attributes:
        model: with the checkpoint's weights.
        options: how to decode.
        problem: of the training; `None` if it is unknown.
        translations: of a shortlist; `None` for none.
        heads: that align words; `None` for none.
        checkpoint: of the weights.
    """

    model: engines.Model
    options: DecodeHParams
    problem: Problem | None
    translations: Shortlist | None
    heads: AlignmentHeads | None
    checkpoint: Checkpoint


def load(
    folder: ModelFolder,
    checkpoint: str | None,
    decode_hparams: str | DecodeHParams,
    config: EngineConfig,
    on_damaged: OnDamaged | None,
    on_note: OnNote,
    data_dir: str | Path | None,
    heads: AlignmentHeads | None,
    choose: Callable[[engines.Model, DecodeHParams, Problem | None, HeadChoice], AlignmentHeads],
) -> LoadedModel:
    """Loads a trained model; see `Translator.load`. `choose` makes a choice of alignment heads."""
    options = decode_hparams
    if not isinstance(options, DecodeHParams):
        options = DecodeHParams.parse(options, folder.run.decode_hparams)
        if warning := options.batch_size_warning:
            warnings.warn(warning, stacklevel=3)
    hparams, vocabularies = folder.hparams, folder.vocabularies
    problem = find_problem(folder.run.problem, options)
    engines.check_options(options, hparams, config, problem)
    translations = None
    if options.has_shortlist:
        translations = addon("shortlist").load(folder.path, vocabularies.fingerprint)
    choice = None
    if options.aligns:
        heads = heads or AlignmentHeads.find(folder.path, hparams)
        choice = None if heads else addon("align_heads").plan(folder, problem, data_dir)
    if choice and config.name == CTRANSLATE2:
        with native_log.quiet():
            keras_config.import_keras()
        aligning = replace(options, alignments=PHARAOH, markup="", split_sentences=False)
        on_keras = load(
            folder, checkpoint, aligning, EngineConfig(), on_damaged, on_note, data_dir, heads, choose
        )
        heads, choice = on_keras.heads, None
    if config.name == TENSORFLOW:
        start_computing()

    def read() -> tuple[engines.Model, Checkpoint]:
        selected = select_checkpoint(folder.path, checkpoint, on_damaged)
        model = engines.open_model(
            selected, hparams, vocabularies, options, config, on_note, translations, heads
        )
        return model, selected

    model, selected = taking_next(read, checkpoint, on_damaged)
    if translations:
        with suppress(CheckpointNotFoundError):  # replaced after it was loaded
            if note := translations.data_warning(folder.path, trained_on(selected.path)):
                on_note(note)
    if choice:
        heads = choose(model, options, problem, choice)
    return LoadedModel(model, options, problem, translations, heads, selected)

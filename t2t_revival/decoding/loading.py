"""Loading of a `Translator` from the folder of a training."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.file import CheckpointNotFoundError, trained_on
from t2t_revival.checkpoints.selection import NAMES, select_checkpoint, taking_next
from t2t_revival.decoding import engines
from t2t_revival.decoding.alignment_heads import AlignmentHeads, all_heads
from t2t_revival.decoding.engine import EngineConfig
from t2t_revival.decoding.head_choice import HeadChoice
from t2t_revival.decoding.options import CTRANSLATE2, PHARAOH, TENSORFLOW, DecodeHParams
from t2t_revival.decoding.preprocessor import find_problem
from t2t_revival.decoding.resumable import OnNote
from t2t_revival.decoding.translations import Translations, data_warning
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import keras_config, native_log
from t2t_revival.utils.forks import start_computing

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator


def load(
    translator_class: type[Translator],
    folder: ModelFolder,
    checkpoint: str | None,
    decode_hparams: str | DecodeHParams,
    config: EngineConfig,
    on_damaged: OnDamaged | None,
    on_note: OnNote,
    data_dir: str | Path | None,
) -> Translator:
    """Loads a trained model; see `Translator.load`."""
    options = decode_hparams
    if not isinstance(options, DecodeHParams):
        options = DecodeHParams.parse(options, folder.run.decode_hparams)
        if warning := options.batch_size_warning:
            warnings.warn(warning, stacklevel=3)
    engines.check_options(options, config)
    hparams, vocabularies = folder.hparams, folder.vocabularies
    translations = Translations.load(folder.path, vocabularies.fingerprint) if options.has_shortlist else None
    problem = find_problem(folder.run.problem, options)
    heads, choice = None, None
    if options.aligns:
        all_heads(hparams).check(hparams)
        heads = AlignmentHeads.find(folder.path, hparams)
        choice = None if heads else HeadChoice.plan(folder, problem, data_dir)
    if choice and config.name == CTRANSLATE2:
        with native_log.quiet():
            keras_config.import_keras()
        on_tensorflow = load(
            translator_class,
            folder,
            checkpoint,
            replace(options, alignments=PHARAOH, markup=""),
            EngineConfig(),
            on_damaged,
            on_note,
            data_dir,
        )
        heads, choice = on_tensorflow.detailer.heads, None
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
            if note := data_warning(translations, folder.path, trained_on(selected.path)):
                on_note(note)
    if choice:
        plain = replace(options, alignments="", markup="")
        is_given = checkpoint not in (None, *NAMES)
        loaded = translator_class(
            model, vocabularies.inputs, plain, problem=problem, target_vocabulary=vocabularies.targets
        )
        heads = choice.make(loaded, is_given, on_note)
    translator = translator_class(
        model,
        vocabularies.inputs,
        options,
        config=config,
        problem=problem,
        target_vocabulary=vocabularies.targets,
        alignment_heads=heads,
    )
    translator.checkpoint, translator.translations = selected, translations
    translator.find_heads = partial(AlignmentHeads.find, folder.path, hparams)
    return translator

"""Loading of a `Translator` from the folder of a training."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.checkpoints.directory import Checkpoint, OnDamaged
from t2t_revival.checkpoints.file import CheckpointNotFoundError, trained_on
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.decoding import engines
from t2t_revival.decoding.addons import ConvertedModel, HeadChoice, Shortlist, addon
from t2t_revival.decoding.alignment_heads import AlignmentHeads
from t2t_revival.decoding.engine import EngineConfig, load_transformer
from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.lines.preprocessor import find_problem
from t2t_revival.decoding.options import CTRANSLATE2, TENSORFLOW, DecodeHParams
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import keras_config, native_log
from t2t_revival.utils.processes import start_computing

if TYPE_CHECKING:
    from t2t_revival.problems.problem import Problem


@dataclass(frozen=True)
class ModelPlan:
    """A trained model that is checked, of which a `Translator` is to be made.

    Attributes:
        folder: of the training.
        checkpoint: see `select_checkpoint`.
        options: how to decode.
        config: of the engine.
        problem: of the training; `None` if it is unknown.
        translations: of a shortlist; `None` for none.
        heads: that align words; `None` for none.
        choice: of heads, which the options need, and which is still to be made by the model.
        on_damaged: see `select_checkpoint`.
        on_note: called with each line for people.
    """

    folder: ModelFolder
    checkpoint: str | None
    options: DecodeHParams
    config: EngineConfig
    problem: Problem | None
    translations: Shortlist | None
    heads: AlignmentHeads | None
    choice: HeadChoice | None
    on_damaged: OnDamaged | None
    on_note: OnNote

    def load(self) -> tuple[engines.Model, Checkpoint]:
        """Loads the model, and returns its checkpoint too; see `Translator.load`."""
        if self.config.name == TENSORFLOW:
            start_computing()

        def read() -> tuple[engines.Model, Checkpoint]:
            selected = select_checkpoint(self.folder.path, self.checkpoint, self.on_damaged)
            return self._open(selected), selected

        model, selected = taking_next(read, self.checkpoint, self.on_damaged)
        if self.translations:
            with suppress(CheckpointNotFoundError):  # replaced after it was loaded
                if note := self.translations.data_warning(self.folder.path, trained_on(selected.path)):
                    self.on_note(note)
        return model, selected

    def _open(self, checkpoint: Checkpoint) -> engines.Model:
        hparams, vocabularies, config = self.folder.hparams, self.folder.vocabularies, self.config
        if config.name != CTRANSLATE2:
            return load_transformer(checkpoint.path, hparams, vocabularies, config.precision)
        load: Callable[..., ConvertedModel] = addon("ctranslate2_model")
        converted = load(
            hparams, vocabularies, self.options, config, self.on_note, self.translations, self.heads
        )
        converted.load_checkpoint(checkpoint)
        return converted

    def with_batch_size(self, size: int) -> ModelPlan:
        """Returns the plan with a number of tokens in place of `batch_size=auto`."""
        return replace(self, options=replace(self.options, batch_size=size))

    def with_heads(self, heads: AlignmentHeads) -> ModelPlan:
        """Returns the plan after the choice."""
        return replace(self, heads=heads, choice=None)

    def of_choice(self) -> ModelPlan:
        """Returns the plan of the model by which heads are chosen: on Keras, without what needs them."""
        with native_log.quiet():
            keras_config.import_keras()
        plain = replace(self.options, alignments="", markup="", split_sentences=False)
        return replace(self, options=plain, config=EngineConfig())


def plan_model(
    folder: ModelFolder,
    checkpoint: str | None,
    decode_hparams: str | DecodeHParams,
    config: EngineConfig,
    on_damaged: OnDamaged | None,
    on_note: OnNote,
    data_dir: str | Path | None,
    heads: AlignmentHeads | None,
) -> ModelPlan:
    """Checks a trained model and how it is to be decoded, before it is loaded; see `Translator.load`."""
    options = decode_hparams
    if not isinstance(options, DecodeHParams):
        options = DecodeHParams.parse(options, folder.run.decode_hparams)
        if warning := options.batch_size_warning:
            warnings.warn(warning, stacklevel=3)
    problem = find_problem(folder.run.problem, options)
    engines.check_options(options, folder.hparams, config, problem)
    translations, choice = None, None
    if options.has_shortlist:
        translations = addon("shortlist").load(folder.path, folder.vocabularies.fingerprint)
    if options.aligns:
        heads = heads or AlignmentHeads.find(folder.path, folder.hparams)
        choice = None if heads else addon("align_heads").plan(folder, problem, data_dir)
    return ModelPlan(
        folder, checkpoint, options, config, problem, translations, heads, choice, on_damaged, on_note
    )

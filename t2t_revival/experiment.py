"""A training of a problem, as `t2t-trainer` runs it: data, model, dev scores, output_dir."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from t2t_revival import curve_files
from t2t_revival.checkpoints.directory import file_name
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.evaluation.decoded import tokenizer_setting
from t2t_revival.evaluation.split_scores import SplitScores
from t2t_revival.hparams import HParams
from t2t_revival.hparams.auto import AUTO
from t2t_revival.hparams.hparams import OF_LENGTH
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.parsing.symbols import token_flags
from t2t_revival.problems.problem import DEV, TRAIN, Data
from t2t_revival.training.engines import make_engine
from t2t_revival.training.engines.engine import accumulation
from t2t_revival.training.events import NoteEvent, OnEvent, ignore_event
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.start import Start
from t2t_revival.training.state import Fingerprints, TrainingState
from t2t_revival.training.trainer import Result, Trainer, TrainingData, new_model
from t2t_revival.utils.made_of import MadeOf, fingerprint
from t2t_revival.utils.processes import start_computing


@dataclass(frozen=True)
class Experiment:
    """A training of a problem's model in an output_dir.

    Attributes:
        data: of the problem that is learned.
        hparams: of model and optimizer.
        hparams_set: the name of the set that `hparams` started from.
        config: of the run; its output_dir gets everything that is written.
        decoded_sentences: dev sentences that an evaluation decodes. With 0 none are decoded.
        auto_batch_size: whether a new run takes the largest `batch_size` that fits the devices' memory.
        refit: returns the hparams that fit the speed, where `hparams` rest on a guess of it. A new run calls
            it with the channels that it has, and the tokens that it reads with these in `train_minutes`.

    Example:
        problem = registry.problem("translate_ende", data_source="sample")
        problem.generate_data("data")
        Experiment(problem.open("data"), registry.hparams("tiny"), "tiny", RunConfig(Path("out"))).run()
        print(Translator.load("out").translate(["The old dog sleeps."]))
    """

    data: Data
    hparams: HParams
    hparams_set: str
    config: RunConfig
    decoded_sentences: int = 200
    auto_batch_size: bool = False
    refit: Callable[[int, int], HParams] | None = None

    def run(self, on_event: OnEvent = ignore_event, start: Start | None = None) -> Result:
        """Trains; resumes an earlier run in the same output_dir.

        Args:
            on_event: called with each event; of several workers, by the chief alone.
            start: where it is prepared already.

        Raises:
            T2TError: another trainer works in output_dir; and as `Start.prepare`, `start_computing` and
                `Trainer.run`.
        """
        start = start or Start.prepare(
            self.data, self.hparams, self.hparams_set, self.config, ModelFolder(self.config.output_dir)
        )
        start_computing()
        config = dataclasses.replace(self.config, warm_start=start.config.warm_start)
        engine = make_engine(config)
        on_event = on_event if engine.chief else ignore_event
        vocabularies, hparams = self.data.vocabularies, start.hparams
        folder, run = start.folder, start.run

        def on_start(state: TrainingState) -> None:
            for note in self._notes(folder, state, run, hparams, data.fingerprints):
                on_event(NoteEvent(note))
            folder.save(run, hparams, *(vocabulary.path for vocabulary in vocabularies.all))

        with folder.lock() if engine.chief else nullcontext():
            data = TrainingData(
                start.shards,
                vocabularies.inputs.size,
                token_flags(vocabularies.inputs.pieces) if hparams.deterministic_attention else None,
                self._fingerprints(run),
                vocabularies.splits() if hparams.subword_dropout else None,
                vocabularies.target_size,
            )
            if self.auto_batch_size and not folder.has_run:
                replicas = engine.replicas
                hparams = engine.largest_batch(
                    hparams, lambda tried, accumulate: new_model(data, tried, config, accumulate, replicas)
                )
                size, of_update = hparams.batch_size, hparams.effective_batch_size
                note = f"batch_size=auto: {size:,} tokens on each device, {of_update:,} an update"
                on_event(NoteEvent(note))
            trainer = Trainer(data, hparams, config, engine, None, on_event, on_start)
            if config.train_minutes and folder.has_run:
                kept = f"its {hparams.train_steps:,} updates and its schedule"
                on_event(NoteEvent(f"train_minutes: the training keeps {kept}"))
            elif config.train_minutes:
                on_event(NoteEvent("measuring the speed of the first updates"))
                trainer = self._timed(trainer, config.train_minutes)
                hparams = trainer.hparams
                length = f"{hparams.train_steps:,} updates, warm-up {hparams.learning_rate_warmup_steps:,}"
                on_event(NoteEvent(f"train_minutes={config.train_minutes:g}: {length}"))
            evaluate = self._dev_scores(run, hparams, vocabularies) if engine.chief else None
            return dataclasses.replace(trainer, evaluate=evaluate).run()

    def _timed(self, trainer: Trainer, minutes: float) -> Trainer:
        """Returns the training of so many minutes, with the hparams that fit the speed it has."""
        began, hparams = time.monotonic(), trainer.hparams
        timed = trainer.lasting(minutes, hparams.train_steps if self.hparams_set == AUTO else None)
        if not self.refit or self.auto_batch_size:
            return timed
        replicas, updates = trainer.engine.replicas, timed.hparams.train_steps
        tokens = updates * accumulation(hparams, replicas) * hparams.batch_size * replicas
        fitting = self.data.problem.hparams(self.refit(hparams.hidden_size, tokens))
        changes = _changes(hparams, fitting.replace(**{name: getattr(hparams, name) for name in OF_LENGTH}))
        if not changes:
            return timed
        trainer.on_event(NoteEvent(f"at this speed it reads {tokens:,} tokens, so {', '.join(changes)}"))
        left = minutes - (time.monotonic() - began) / 60
        return dataclasses.replace(trainer, hparams=fitting).lasting(left, fitting.train_steps)

    def _dev_scores(self, run: Run, hparams: HParams, vocabularies: Vocabularies) -> SplitScores:
        return SplitScores(
            self.data,
            DEV,
            hparams,
            vocabularies,
            DecodeHParams.parse("", run.decode_hparams),
            self.decoded_sentences,
            self.config.num_parallel_batches,
        )

    def _fingerprints(self, run: Run) -> Fingerprints:
        settings = {"decode_hparams": run.decode_hparams, "decoded_sentences": self.decoded_sentences}
        decoding = fingerprint(settings | tokenizer_setting(self.data)) if self.decoded_sentences else ""
        return Fingerprints(self.data.fingerprint(TRAIN), self.data.fingerprint(DEV), decoding)

    def _notes(
        self,
        folder: ModelFolder,
        start: TrainingState,
        run: Run,
        hparams: HParams,
        fingerprints: Fingerprints,
    ) -> list[str]:
        """Notes for the user on resumption, on differences from the last start, and on dropped pairs."""
        notes = [f"resuming from {file_name(start.step)} (step {start.step})"] if start.step else []
        if folder.has_run:
            notes += _changes(folder.hparams, hparams)
            notes += _data_change(start, folder.run.data_dir, run.data_dir, fingerprints.train)
            evaluations = curve_files.read_segments(folder.path, curve_files.DEV, "loss")
            if evaluations and evaluations[-1].measured_on != fingerprints.dev:
                notes.append(
                    "dev data has changed: earlier scores in dev.csv are not compared with later ones"
                )
        counts = self.data.metadata.splits[TRAIN]
        if too_long := sum(n for length, n in counts.lengths.items() if length > hparams.max_length):
            notes.append(
                f"{too_long:,} of {counts.examples:,} training pairs are longer than "
                f"max_length={hparams.max_length} tokens and dropped"
            )
        return notes


def _changes(before: HParams, now: HParams) -> list[str]:
    """Describes each hparam that is another now."""
    old, new = MadeOf(dataclasses.asdict(before)), MadeOf(dataclasses.asdict(now))
    return [f"{name}: {_plain(old.values[name])} -> {_plain(new.values[name])}" for name in old.changed(new)]


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data_change(start: TrainingState, before: str, now: str, fingerprint: str) -> list[str]:
    """A note if the training data, or only its folder, differs from that of the last start."""
    if not start.step or not before:  # nothing is learned yet, or the model is imported
        return []
    if start.was_trained_on_other_data(fingerprint):
        moved = f"{before} -> {now}"
        changed = f"the content of {now} has changed, {start.data} -> {fingerprint}"
        return [
            f"warning: the training data is another: {moved if before != now else changed}; "
            "training begins at its first batch"
        ]
    if before != now:
        return [f"data: {before} -> {now}" + (", the same training data" * (start.data == fingerprint))]
    return []

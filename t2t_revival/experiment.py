"""A training of a problem, as `t2t-trainer` runs it: data, model, dev scores, output_dir."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from t2t_revival import curve_files
from t2t_revival.checkpoints.directory import file_name
from t2t_revival.data.metadata import dropped
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.checkpoint_scores import settings_fingerprint
from t2t_revival.evaluation.decoded import tokenizer_setting
from t2t_revival.evaluation.split_scores import SplitScores
from t2t_revival.hparams import HParams
from t2t_revival.parsing.token_flags import token_flags
from t2t_revival.problems.problem import DEV, TRAIN
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.training.engines.engine import make_engine
from t2t_revival.training.events import NoteEvent, OnEvent, ignore_event
from t2t_revival.training.lock import output_dir_lock
from t2t_revival.training.loop import Result, Training, TrainingData, new_model
from t2t_revival.training.run import FILE_NAME, Run, check_place, check_same, plan_run, save_run
from t2t_revival.training.run_config import RunConfig
from t2t_revival.training.state import Fingerprints
from t2t_revival.utils.files import path_of
from t2t_revival.utils.forks import start_computing


@dataclass(frozen=True)
class Experiment:
    """A training of a problem's model in an output_dir.

    Attributes:
        problem: the problem that is learned.
        hparams: of model and optimizer.
        hparams_set: the name of the set that `hparams` started from.
        data_dir: folder of the problem's data.
        config: of the run; its output_dir gets everything that is written.
        decoded_sentences: dev sentences that an evaluation decodes. With 0 none are decoded.
        auto_batch_size: whether a new run takes the largest `batch_size` that fits the devices' memory.

    Example:
        problem = registry.problem("translate_ende", data_source="sample")
        problem.generate_data("data")
        Experiment(problem, registry.hparams("tiny"), "tiny", Path("data"), RunConfig(Path("out"))).run()
        print(Translator.load("out").translate(["The old dog sleeps."]))
    """

    problem: Text2TextProblem
    hparams: HParams
    hparams_set: str
    data_dir: Path
    config: RunConfig
    decoded_sentences: int = 200
    auto_batch_size: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_dir", path_of(self.data_dir, "data_dir"))

    def run(self, on_event: OnEvent = ignore_event) -> Result:
        """Trains; resumes an earlier run in the same output_dir.

        Args:
            on_event: called with each event of `Training`; of several workers, by the chief alone.

        Raises:
            T2TError: there is no data; output_dir holds another run, or another trainer works there; and as
                `start_computing` and `Training`.
        """
        start_computing()
        engine = make_engine(self.config)
        chief = engine.chief
        hparams = self.problem.hparams(self.hparams)
        vocabularies = self.problem.vocabularies(self.data_dir)
        shards = self.problem.shards(TRAIN, self.data_dir)
        output_dir = self.config.output_dir
        if chief:  # the other workers would find the folder locked by it
            check_place(output_dir, self.problem.name, self.hparams_set)
        run = plan_run(self.problem, self.hparams_set, self.data_dir, output_dir)
        if vocabularies.separate and hparams.deterministic_attention:
            raise T2TError("hparams: deterministic_attention=True needs one vocabulary for source and target")
        flags = token_flags(vocabularies.inputs.pieces) if hparams.deterministic_attention else None
        splits = vocabularies.splits() if hparams.subword_dropout else None
        data = TrainingData(
            shards,
            vocabularies.inputs.size,
            flags,
            self._fingerprints(run),
            splits,
            vocabularies.target_size,
        )
        if self.auto_batch_size and not HParams.load(output_dir):
            replicas = engine.replicas
            hparams = engine.largest_batch(
                hparams, lambda tried, accumulate: new_model(data, tried, self.config, accumulate, replicas)
            )
            sizes = (
                f"{hparams.batch_size:,} tokens on each device, {hparams.effective_batch_size:,} an update"
            )
            if chief:
                on_event(NoteEvent(f"batch_size=auto: {sizes}"))
        with output_dir_lock(output_dir) if chief else nullcontext():
            check_same(output_dir, run, hparams)
            config = self._config_for(run, vocabularies)
            if not chief:
                return Training(data, hparams, config, engine=engine).run()
            dev_scores = self._dev_scores(run, hparams, vocabularies)
            training = Training(data, hparams, config, dev_scores, on_event, engine)
            for note in self._notes(training, run, hparams, data.fingerprints):
                on_event(NoteEvent(note))
            save_run(output_dir, run, hparams, *(vocabulary.path for vocabulary in vocabularies.all))
            return training.run()

    def _dev_scores(self, run: Run, hparams: HParams, vocabularies: Vocabularies) -> SplitScores:
        return SplitScores(
            self.problem,
            DEV,
            self.data_dir,
            hparams,
            vocabularies,
            DecodeHParams.parse("", run.decode_hparams),
            self.decoded_sentences,
            self.config.num_parallel_batches,
        )

    def _config_for(self, run: Run, vocabularies: Vocabularies) -> RunConfig:
        start = self.config.warm_start
        if start:
            start.check(run.problem, self.problem.hparams(self.hparams))
        return dataclasses.replace(self.config, warm_start=start and start.prepared_for(run, vocabularies))

    def _fingerprints(self, run: Run) -> Fingerprints:
        decoding = settings_fingerprint(
            decode_hparams=run.decode_hparams,
            decoded_sentences=self.decoded_sentences,
            **tokenizer_setting(self.problem),
        )
        return Fingerprints(
            self.problem.data_fingerprint(TRAIN, self.data_dir),
            self.problem.data_fingerprint(DEV, self.data_dir),
            decoding if self.decoded_sentences else "",
        )

    def _notes(self, training: Training, run: Run, hparams: HParams, fingerprints: Fingerprints) -> list[str]:
        """Notes for the user on resumption, changes and dropped pairs."""
        notes = []
        if training.start.step:
            notes.append(f"resuming from {file_name(training.start.step)} (step {training.start.step})")
        if (self.config.output_dir / FILE_NAME).exists():
            notes += self._changes(training, run, hparams, fingerprints)
        counts = self.problem.metadata(self.data_dir).splits[TRAIN]
        if too_long := dropped(counts, hparams.max_length):
            notes.append(
                f"{too_long:,} of {counts.examples:,} training pairs are longer than "
                f"max_length={hparams.max_length} tokens and dropped"
            )
        return [*notes, training.note] if training.note else notes

    def _changes(
        self, training: Training, run: Run, hparams: HParams, fingerprints: Fingerprints
    ) -> list[str]:
        """Notes on differences from the last start of the run in output_dir."""
        output_dir = self.config.output_dir
        stored_dir = Run.load(output_dir).data_dir
        notes = changed_hparams(HParams.load(output_dir), hparams)
        notes += _data_change(training, stored_dir, run.data_dir, fingerprints)
        evaluations = curve_files.read_segments(output_dir, curve_files.DEV, "loss")
        if evaluations and evaluations[-1].measured_on != fingerprints.dev:
            notes.append("dev data has changed: earlier scores in dev.csv are not compared with later ones")
        return notes


def changed_hparams(before: HParams | None, now: HParams) -> list[str]:
    """A note "NAME: OLD -> NEW" for each hyperparameter that differs from the stored one."""
    if before is None:
        return []
    pairs = ((name, getattr(before, name), value) for name, value in dataclasses.asdict(now).items())
    return [f"{name}: {_plain(old)} -> {_plain(value)}" for name, old, value in pairs if old != value]


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _data_change(training: Training, before: str, now: str, fingerprints: Fingerprints) -> list[str]:
    """A note if the training data, or only its folder, differs from that of the last start."""
    old, new = training.start.data, fingerprints.train
    if not training.start.step or not before:  # nothing is learned yet, or the model is imported
        return []
    if training.has_other_data:
        what = f"{before} -> {now}" if before != now else f"the content of {now} has changed, {old} -> {new}"
        return [f"warning: the training data is another: {what}; training begins at its first batch"]
    if before != now:
        return [f"data: {before} -> {now}" + (", the same training data" if old == new else "")]
    return []

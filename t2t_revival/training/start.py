"""The start of a training: its refusals, made before TensorFlow is loaded, and what they have opened."""

from __future__ import annotations

from dataclasses import dataclass, replace

from t2t_revival.data.records import SplitData
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.problems.problem import TRAIN, Data, Problem
from t2t_revival.training.run_config import RunConfig, packs


@dataclass(frozen=True)
class Start:
    """A training that may begin, or resume.

    Attributes:
        data: of the problem that is learned.
        shards: of its train split.
        hparams: of model and optimizer, as the problem changes them.
        config: of the run; its warm start knows the data's vocabulary.
        folder: output_dir.
        run: its run.json.
    """

    data: Data
    shards: SplitData
    hparams: HParams
    config: RunConfig
    folder: ModelFolder
    run: Run

    @classmethod
    def prepare(
        cls, data: Data, hparams: HParams, hparams_set: str, config: RunConfig, folder: ModelFolder
    ) -> Start:
        """Makes all checks that need no model; nothing is written.

        Raises:
            T2TError: as `check_run`; a shard is missing or truncated, there is nothing left to train, or the
                data has another vocabulary than the run in the folder or the model of the warm start.
        """
        check_run(folder, data.problem, hparams, hparams_set, config)
        hparams, vocabularies, shards = data.problem.hparams(hparams), data.vocabularies, data.split(TRAIN)
        if vocabularies.separate and hparams.deterministic_attention:
            raise T2TError("hparams: deterministic_attention=True needs one vocabulary for source and target")
        run = folder.plan_run(data, hparams_set)
        if config.strategy != "multi_worker":  # of several workers, only the chief knows the evaluations
            folder.check_unfinished(hparams.train_steps, config.eval_frequency)
        if config.warm_start:
            config = replace(config, warm_start=config.warm_start.prepared_for(run, vocabularies))
        return cls(data, shards, hparams, config, folder, run)


def check_run(
    folder: ModelFolder, problem: Problem, hparams: HParams, hparams_set: str, config: RunConfig
) -> None:
    """Checks, also before there is data, that a training may begin in a folder, or resume.

    Raises:
        T2TError: as `ModelFolder.prepare` and `WarmStart.check`.
    """
    folder.prepare(problem.name, hparams_set, problem.hparams(hparams))
    packs(config, problem.hparams(hparams), compiles_shapes=False)
    if config.warm_start:
        config.warm_start.check(problem.name, problem.hparams(hparams))

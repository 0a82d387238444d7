"""The flags of a training run that several commands share: its folder, settings, model, an ensemble.

All methods raise `T2TError` for flags that are missing or wrong, and for a folder without a trained model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_revival import registry, t2t_names
from t2t_revival.checkpoints.directory import list_averaged, list_checkpoints
from t2t_revival.checkpoints.selection import list_best, taking_next
from t2t_revival.cli.support.flags import Flags, Names, flag, group
from t2t_revival.cli.support.messages import say, warn_of_corruption
from t2t_revival.cli.support.problem_flags import ProblemFlags
from t2t_revival.decoding import trained_models
from t2t_revival.decoding.files.shards import MAX_SHARDS, Shard
from t2t_revival.decoding.options import MEANS, PROBABILITIES, DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.hparams import auto
from t2t_revival.hparams.hparams import FILE_NAME as HPARAMS_FILE
from t2t_revival.hparams.hparams import OF_LENGTH, HParams
from t2t_revival.metrics.metric import metric_of
from t2t_revival.model_folder import RUN_FILE, ModelFolder, Run
from t2t_revival.problems.problem import Problem
from t2t_revival.training.run_config import AUTO, RunConfig
from t2t_revival.utils.files import is_file_name

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator


TRAIN_DIR = "~/t2t_train"
DECODE_HPARAMS = "Changes to the decoding, such as beam_size=4,alpha=0.6,extra_length=50."
SPLIT_DIR = "Folder of the split's shards; by default the one that the model was trained from."
T2T_SETS = "transformer_"  # how the names of its sets begin
SAME_NAMES = (
    "strategy",
    "shard_optimizer",
    "packed",
    "precision",
    "xla",
    "train_minutes",
    "max_nonfinite_steps",
    "keep_best",
)
RUN_CONFIG_FLAGS = {name: name for name in SAME_NAMES} | {  # T2T's names of the fields of RunConfig
    "random_seed": "seed",
    "local_eval_frequency": "eval_frequency",
    "save_checkpoints_secs": "save_seconds",
    "keep_checkpoint_max": "keep_checkpoints",
    "best_metric": "best_score",
    "log_step_count_steps": "log_steps",
    "eval_early_stopping_steps": "patience",
    "eval_early_stopping_metric": "patience_score",
    "eval_early_stopping_metric_delta": "min_delta",
}
BOUNDS = {"random_seed": (0, 2**32 - 1), "max_nonfinite_steps": (1, None)}
AUTO_BATCH_SIZE = "batch_size=auto"
NAMES = (*RUN_CONFIG_FLAGS, "hparams", "train_steps", "eval_bleu_sentences")


@dataclass(frozen=True)
class RunFlags(ProblemFlags):
    """The flags of a training run.

    Attributes:
        checkpoint: a flag of most of these commands.
    """

    hparams_set: str | None = flag(None, "Named set of hyperparameters, such as base or big.")
    output_dir: str | None = flag(
        None, f"Folder of the run and its checkpoints; by default {TRAIN_DIR}/PROBLEM/HPARAMS_SET."
    )
    checkpoint: str | None = None

    @property
    def ensemble_dirs(self) -> list[Path]:
        """The folders of an ensemble; `EnsembleFlags` may have some."""
        return []

    @property
    def named(self) -> dict[str, str | None]:
        """The flags that name the run in a proposed command: those that this command was called with."""
        place = (
            {"output_dir": self.output_dir}
            if self.output_dir
            else {"problem": self.problem, "hparams_set": self.hparams_set}
        )
        return {**place, "t2t_usr_dir": self.t2t_usr_dir}

    def named_set(self) -> str:
        """The value of `--hparams_set`, which must be given."""
        if not self.hparams_set:
            raise T2TError("--hparams_set is missing, such as base or big; --registry_help lists all")
        return self.hparams_set

    def run_dir(self) -> Path:
        """Resolves `--output_dir`, or the default folder of problem and hparams set."""
        if self.output_dir:
            return self.refuse_t2t(Path(self.output_dir).expanduser())
        if not self.problem:
            raise T2TError("--problem is missing; give it with --hparams_set, or give --output_dir")
        names = (self.problem, self.named_set())
        if invalid := [name for name in names if not is_file_name(name)]:
            raise T2TError(
                f"{invalid[0]!r} is not a valid name of a problem or hparams set: --registry_help lists all"
            )
        folder = Path(TRAIN_DIR).expanduser().joinpath(*names)
        here = t2t_names.problem_here(self.problem)
        if here and not folder.exists():
            folder = folder.parents[1] / here / folder.name
        return self.refuse_t2t(folder)

    def open_model(self) -> ModelFolder:
        """Returns the output_dir, or the first of an ensemble.

        The flags of problem and hparams set must agree with it. tensor2tensor's name of the problem agrees,
        and so does its hparams set of the same model.
        """
        folder = next(iter(self.ensemble_dirs), None) or self.run_dir()
        if self.checkpoint:
            self.refuse_t2t(Path(self.checkpoint).expanduser())
        return self.model_in(folder)

    def model_in(self, path: Path) -> ModelFolder:
        """Opens a folder; see `open_model`."""
        self.import_usr_dir()
        folder = ModelFolder(path)
        if not folder.has_run:  # else it may be a user's problem
            self._check_names(path)
        self.refuse_t2t(path)
        run, problem, named = folder.run, self.problem or "", self.hparams_set or ""
        is_t2t_problem = t2t_names.is_problem(problem, run.problem) and not registry.has_problem(problem)
        is_t2t_set = named.startswith(T2T_SETS) and named in registry.list_hparams()
        if is_t2t_set:
            is_t2t_set = registry.hparams(named).architecture() == folder.hparams.architecture()
        for name, given, own, agrees in (
            ("problem", self.problem, run.problem, is_t2t_problem),
            ("hparams_set", self.hparams_set, run.hparams_set, is_t2t_set),
        ):
            if given not in (None, own) and not agrees:
                raise T2TError(
                    f"--{name}={given}: {path} holds a model of {own}; omit the flag, or give another folder"
                )
        return folder

    def model_files(self, folder: ModelFolder) -> dict[str, Path]:
        """The files from which a trained model is loaded, by their names for errors."""
        chosen = Path(self.checkpoint or folder.path).expanduser()
        folders = self.ensemble_dirs or [folder.path]
        lists = list_checkpoints, list_averaged, list_best
        checkpoints = [one for find in lists for each in folders for one in find(each)]
        checkpoints += list_checkpoints(chosen)
        paths = [
            chosen,
            chosen.with_name(f"{chosen.name}.npz"),
            *(each / name for name in (HPARAMS_FILE, RUN_FILE, *folder.run.vocabularies) for each in folders),
        ]
        return {f"the model's {path}": path for path in [*paths, *(one.path for one in checkpoints)]}

    def load_translator(
        self, folder: ModelFolder, options: DecodeHParams, **settings: Any
    ) -> tuple[Translator, str, str]:
        """Loads the model of `--checkpoint`; also returns its file, and its step, in words."""
        from t2t_revival.decoding.translator import Translator

        translator = Translator.load(
            folder,
            self.checkpoint,
            options,
            on_damaged=warn_of_corruption,
            data_dir=self.data_dir,
            **settings,
        )
        checkpoint = translator.checkpoint
        assert checkpoint is not None
        step = f"step {checkpoint.step:,}{', an average' if checkpoint.averaged else ''}"
        return translator, str(checkpoint.path), step

    def _check_names(self, path: Path) -> None:
        """Checks that problem and hparams set exist: where one is misspelt, so is the default output_dir."""
        try:
            if self.problem and not registry.has_problem(
                t2t_names.problem_here(self.problem) or self.problem
            ):
                registry.problem(self.problem)
            if self.hparams_set:
                registry.hparams(self.hparams_set)
        except T2TError as error:
            raise T2TError(f"no trained model in {path}: {error}") from error


def checkpoint_flag(default: str) -> str | None:
    """Returns the field of `--checkpoint`, which has T2T's name too; the help ends with the default."""
    text = f"newest, best or average, or a checkpoint's file, or a folder of checkpoints; {default}"
    return flag(None, text, also="checkpoint_path")


@dataclass(frozen=True)
class ModelFlags(RunFlags):
    """The flags of a command that loads a trained model."""

    checkpoint: str | None = checkpoint_flag(
        "by default output_dir's newest, or its average; its best where early stopping ended the training."
    )


@dataclass(frozen=True)
class EnsembleFlags(ModelFlags):
    """The flags of a command that loads a trained model, or several that decode as one."""

    exclusive: ClassVar[Names] = (("output_dir", "ensemble"),)
    needs: ClassVar[Names] = (("ensemble_mean", "ensemble"),)
    ensemble: tuple[str, ...] = flag(
        (),
        "Instead of output_dir: folders of several models of one vocabulary, which are decoded as one, by "
        "the mean of their probabilities of each token.",
    )
    ensemble_mean: str = flag(
        PROBABILITIES, "Whether the mean is of the probabilities or of their logarithms.", choices=MEANS
    )

    @property
    def ensemble_dirs(self) -> list[Path]:
        """The folders of `--ensemble`, of which there must be none, or several."""
        if len(self.ensemble) == 1:
            raise T2TError(
                f"--ensemble={self.ensemble[0]}: an ensemble has two folders or more, separated by commas"
            )
        return [self.refuse_t2t(Path(name).expanduser(), "ensemble") for name in self.ensemble]

    def load_translator(
        self, folder: ModelFolder, options: DecodeHParams, **settings: Any
    ) -> tuple[Translator, str, str]:
        """Loads the ensemble, or else the model of `--checkpoint`; see `RunFlags`."""
        folders = self.ensemble_dirs
        if not folders:
            return super().load_translator(folder, options, **settings)

        def load() -> tuple[Translator, list[trained_models.TrainedModel]]:
            models = trained_models.open_models(folders, "ensemble", self.checkpoint, warn_of_corruption)
            mean = self.ensemble_mean
            return trained_models.load_translator(models, options, mean=mean, **settings), models

        translator, models = taking_next(load, self.checkpoint, warn_of_corruption)
        files = " and ".join(str(one.checkpoint.path) for one in models)
        return translator, files, f"an ensemble of {len(models)}"


def shards_flag(text: str) -> int:
    """Returns the field of `--decode_shards`; `text` ends its help."""
    sharing = "Decoders that share the input, each started with its own --worker_id."
    return flag(1, f"{sharing} {text}", least=1, most=MAX_SHARDS)


@dataclass(frozen=True)
class ShardFlags(Flags):
    worker_id: int = flag(0, "Number of this decoder among --decode_shards, counted from 0.")
    decode_shards: int = 1

    def shard(self) -> Shard:
        """The share of this worker."""
        return Shard(self.worker_id, self.decode_shards)


def decode_options(text: str | None, run: Run, normalize: str = "") -> DecodeHParams:
    """Parses `--decode_hparams` on top of the run's own; warns of a batch_size that counts sentences.

    `normalize` is the flag of this name.
    """
    own = {**run.decode_hparams, **({"unicode_form": normalize} if normalize else {})}
    options = DecodeHParams.parse(text or "", own)
    if warning := options.batch_size_warning:
        say(f"warning: {warning}")
    return options


@dataclass(frozen=True)
class TrainingFlags(RunFlags):
    """The flags of a training; the output_dir of `config` is not the run's."""

    exclusive: ClassVar[Names] = (("train_minutes", "train_steps"),)
    config: RunConfig = group(RunConfig(Path()), RUN_CONFIG_FLAGS, BOUNDS)
    hparams: str = flag(
        "",
        'Changes to the hparams set, such as "batch_size=2048,num_heads=4". "batch_size=auto" is the largest '
        "that fits a device's memory (KERAS_BACKEND=jax).",
    )
    train_steps: int = flag(0, "Number of updates; 0 takes that of the hparams set.")
    eval_bleu_sentences: int = flag(
        200, "Dev sentences, of each corpus of a mixture, that are decoded for BLEU or F1; 0 decodes none."
    )

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics that flags name, by the flags; each may be that of one corpus, as bleu/news."""
        return {
            "eval_early_stopping_metric": self.config.patience_score,
            "best_metric": self.config.best_score,
        }

    @property
    def is_batch_size_auto(self) -> bool:
        """Returns whether --hparams asks for the largest `batch_size` that fits."""
        return any(part.strip() == AUTO_BATCH_SIZE for part in self.hparams.split(","))

    def check_metrics(self, problem: Problem) -> None:
        """Checks the flags that name a metric."""
        for name, value in self.metrics.items():
            metric, names = metric_of(value), problem.eval_metrics()
            if metric.name == AUTO:
                continue
            if metric.name not in names:
                known = ", ".join(names)
                raise T2TError(f"--{name}={value}: not a metric of {problem.name}; give one of {known}")
            if not metric.of_each_corpus and metric.name != value:
                raise T2TError(f"--{name}={value}: {metric.name} is measured of all corpora together")
            if metric.outputs and not self.eval_bleu_sentences:
                raise T2TError(f"--{name}={value} needs --eval_bleu_sentences above 0")

    def run_hparams(
        self, folder: ModelFolder, like: HParams | None = None, usual: HParams | None = None
    ) -> HParams:
        """Returns the hparams of a run that is resumed, or else the named set, as the flags change them.

        `like` are those of another model, which the set takes on; `usual` those of the data, for the set.

        Raises:
            T2TError: there is no such set, or a value is invalid.
        """
        named = usual or registry.hparams(self.named_set())
        timed = self.config.train_minutes
        if timed and "train_steps=" in self.hparams:
            raise T2TError(
                "--train_minutes and --hparams=train_steps=... cannot be combined: give one of them"
            )
        if folder.has_run:
            own = folder.hparams
            if not timed:
                return self._overridden(own)
            first, length = ({name: getattr(one, name) for name in OF_LENGTH} for one in (named, own))
            return self._overridden(own.replace(**first)).replace(**length)
        if self.train_steps and self.named_set() == auto.AUTO:
            named = named.of_length(self.train_steps, falls=True)
        return self._overridden(named.with_model_of(like) if like else named)

    def changed(self, hparams: HParams) -> HParams:
        """Returns the hparams that a training with these flags has."""
        return super().changed(self._overridden(hparams))

    def _overridden(self, hparams: HParams) -> HParams:
        overrides = [part for part in self.hparams.split(",") if part.strip() != AUTO_BATCH_SIZE]
        hparams = hparams.override(",".join(overrides))
        return hparams.replace(train_steps=self.train_steps) if self.train_steps else hparams

"""Configuration of a training run; and the weights of another one, with which it starts.

The latter is T2T's `--warm_start_from`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from t2t_revival import registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import StoredWeights, is_adapter
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.hparams.variants import PACKED
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.utils.files import path_of
from t2t_revival.utils.made_of import MadeOf

if TYPE_CHECKING:
    import numpy as np


AUTO: Final = "auto"
LISTED = 8  # weights that a note names


@dataclass(frozen=True)
class WarmStart:
    """Another training's checkpoint.

    Attributes:
        folder: of the other training.
        checkpoint: with whose weights, or their moving averages, the new training starts.
        partial: whether only the weights that fit are taken.
        new_pieces: for the vocabulary, or the inputs' and the targets', the ids of the other training's that
            each piece is cut into that it lacks.
        asked: a folder of checkpoints or a file in place of the training's own choice.
    """

    folder: ModelFolder
    checkpoint: checkpoints.Checkpoint
    partial: bool = False
    new_pieces: tuple[list[list[int]], ...] = ()
    asked: str | None = None

    @classmethod
    def open(
        cls, path: Path, partial: bool = False, on_damaged: checkpoints.OnDamaged | None = None
    ) -> WarmStart:
        """Selects the checkpoint of an output_dir, of its folders best and averaged, or a file.

        `on_damaged` is called with the error of each corrupt one that is skipped; `None` warns.

        Raises:
            T2TError: there is no trained model, or no checkpoint.
        """
        path = path.expanduser().absolute()
        folder = next((place for place in map(ModelFolder, (path, *path.parents[:2])) if place.has_run), None)
        if folder is None:
            raise T2TError(f"--warm_start_from={path}: not the output_dir of a training, nor a file in one")
        asked = None if path == folder.path else str(path)
        return cls(folder, select_checkpoint(folder.path, asked, on_damaged), partial, asked=asked)

    def check(self, problem: str, hparams: HParams) -> None:
        """Checks, before data is made, that the other model can become one of a problem with these hparams.

        Raises:
            T2TError: its outputs are of another kind, or its architecture is another one.
        """
        other, where = self.folder.run.problem, f"--warm_start_from={self.folder.path}"
        if other != problem and registry.has_problem(other):
            kinds = {registry.problem(name).targets_are_text for name in (other, problem)}
            if len(kinds) > 1:
                raise T2TError(f"{where}: a model of {other} cannot become one of {problem}")
        if not self.partial:
            remedy = "change --hparams, or give --warm_start_partial to take the weights that fit"
            now = MadeOf(hparams.architecture())
            MadeOf(self.folder.hparams.architecture()).check(now, f"{where}: that model has", remedy)

    def prepared_for(self, run: Run, vocabularies: Vocabularies) -> WarmStart:
        """Returns the start of a new run with the other training's vocabularies, or those with more pieces.

        Raises:
            T2TError: a vocabulary is another one.
        """
        if self.folder.run.fingerprints == run.fingerprints:
            return self
        older = self.folder.vocabularies
        pairs = list(zip(vocabularies.all, older.all, strict=False))
        if vocabularies.separate != older.separate or not all(extends(*pair) for pair in pairs):
            raise T2TError(
                f"--warm_start_from={self.folder.path}: that model has another vocabulary than the data in "
                f"{run.data_dir}: give another --data_dir; t2t-trainer makes data with that vocabulary"
            )
        return replace(
            self,
            new_pieces=tuple([old.parts(piece) for piece in new.pieces[old.size :]] for new, old in pairs),
        )

    def assign_to(self, model: Any) -> list[str]:
        """Assigns the weights to a model; returns notes for people, on the checkpoint among them.

        Where the other training has removed the checkpoint meanwhile, the next one is taken.

        Raises:
            T2TError: a weight does not fit, or none where some may not; or a weight is not finite.
        """
        import numpy as np

        notes: list[str] = []
        again = iter(partial(select_checkpoint, self.folder.path, self.asked), None)
        choices = chain([self.checkpoint], again)

        def read() -> tuple[Path, dict[str, np.ndarray], dict]:
            path = next(choices).path
            stored = StoredWeights(path)
            weights = {name: array for name, array in stored.items() if array.dtype.kind == "f"}
            return path, weights, stored.meta  # without random states

        path, arrays, meta = taking_next(
            read, self.asked, lambda error: notes.append(checkpoints.ignored_checkpoint(error))
        )
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                weight = name.removeprefix(checkpoints.MODEL)
                raise T2TError(f"{path}: {weight} is not finite: take an earlier checkpoint")
        notes.append(f"starting with the weights of {path} (step {meta['step']})")
        if self.new_pieces:
            arrays = {name: self._with_new_rows(name, array) for name, array in arrays.items()}
            notes[-1] += f", {sum(map(len, self.new_pieces)):,} new pieces"
        weights = [weight for weight in model.weights if not is_adapter(weight.path)]
        if not self.partial:
            checkpoints.check_architecture(model, meta, path)
            checkpoints.assign(checkpoints.by_path(weights), arrays, checkpoints.MODEL, path)
            return notes
        shapes = {name.removeprefix(checkpoints.MODEL): array.shape for name, array in arrays.items()}
        fitting = [weight for weight in weights if shapes.get(weight.path) == tuple(weight.shape)]
        if not fitting:
            raise T2TError(f"{path}: no weight fits this model")
        for weight in fitting:
            weight.assign(arrays[checkpoints.MODEL + weight.path])
        taken = {weight.path for weight in fitting}
        fresh = [weight.path for weight in weights if weight.path not in taken]
        unused = [name for name in shapes if name not in taken]
        notes.append(f"{len(fitting)} of {len(weights)} weights taken")
        for what, names in (("fresh", fresh), ("not used", unused)):
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            notes += [f"{what}: {', '.join(names[:LISTED])}{more}"] if names else []
        return notes

    def _with_new_rows(self, name: str, array: np.ndarray) -> np.ndarray:
        """Adds a row for each new piece to an embedding, or a softmax's bias: the mean of its parts' rows."""
        import numpy as np

        if "_embedding/" not in name:
            return array
        of_inputs = "source_embedding/" in name
        rows = [array[parts].mean(axis=0) for parts in self.new_pieces[0 if of_inputs else -1]]
        return np.concatenate([array, rows]) if rows else array


@dataclass(frozen=True)
class RunConfig:
    """Devices, checkpoints, evaluations and reports of a training; hparams configure model and optimizer.

    `t2t-trainer` generates its flags and their help from these fields.

    Attributes:
        output_dir: folder of checkpoints and curves.
        warm_start: weights to start with where output_dir has no checkpoint; `None` draws them.
        strategy: distribution over devices. "default" uses one device; "mirrored" all GPUs; "auto" is
            "mirrored" where there are several GPUs; "multi_worker" uses all GPUs of the machines in
            TF_CONFIG, see t2t-make-tf-configs.
        shard_optimizer: keep a part of Adam's moments on each device, for those with little memory; for JAX.
        packed: put several pairs into a row of max_length tokens, so that all batches have one shape, which
            XLA compiles once. By default where it compiles each shape: under JAX and with xla.
        precision: type in which the model computes; weights are always float32. "mixed_float16", for GPUs
            without bfloat16, scales the loss.
        xla: compile the step by XLA, once for each shape of batches; for GPUs. For TensorFlow: JAX always
            does.
        num_parallel_batches: parts of a batch that are computed side by side, where one device trains; pays
            off on a CPU whose operations have a thread each (`intra_op_parallelism_threads`).
        seed: seed of the weights, of dropout and of the order of the data.
        eval_frequency: updates between two evaluations, each with a checkpoint. With 0 only the last update
            is evaluated. With the set auto the default is 500.
        save_seconds: seconds between two checkpoints besides these. With 0 there are none besides.
        max_nonfinite_steps: updates skipped in a row, since loss or gradients are not finite, after which
            training stops; at least 1.
        keep_checkpoints: how many of the newest checkpoints are kept. With 0 all are kept.
        keep_best: how many of the best checkpoints are kept besides, in output_dir/best.
        best_score: dev score that decides which checkpoints are the best: "loss", "perplexity", for which
            lower is better, "accuracy", "bleu" or "f1", of a mixture's corpus "bleu/NAME". "auto" is BLEU or
            F1 where dev sentences are decoded, else the loss.
        log_steps: updates between two reports; where these take longer, there is one about every minute. With
            0 only the first and the last update are reported.
        patience: updates without a better score after which training stops. With 0 it never does.
        patience_score: score that early stopping watches; one of those but "auto".
        min_delta: least improvement of that score that counts as better.
        train_minutes: minutes that a new training may take, evaluations included. The speed of its first
            updates tells how many there are in this time: the hparam train_steps, and the schedule's length,
            which a training that resumes keeps. With 0 the hparams say how many.
    """

    output_dir: Path
    warm_start: WarmStart | None = None
    strategy: Literal["auto", "default", "mirrored", "multi_worker"] = "auto"
    shard_optimizer: bool = False
    packed: bool | None = None
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    xla: bool = False
    num_parallel_batches: int = 1
    seed: int = 1
    eval_frequency: int = 1000
    save_seconds: float = 600.0
    max_nonfinite_steps: int = 10
    keep_checkpoints: int = 20
    keep_best: int = 1
    best_score: str = AUTO
    log_steps: int = 100
    patience: int = 0
    patience_score: str = "loss"
    min_delta: float = 0.0
    train_minutes: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "output_dir", path_of(self.output_dir, "output_dir"))


def packs(config: RunConfig, hparams: HParams, compiles_shapes: bool) -> bool:
    """Returns whether batches are packed: as asked for, or else where each shape is compiled.

    Raises:
        T2TError: it is asked for, but the model does not support it.
    """
    lacking = hparams.not_held_by(PACKED)
    if config.packed and lacking:
        name, value = lacking.popitem()
        raise T2TError(
            f"a packed batch does not support {name}={value}, which this model has: leave out --packed"
        )
    return compiles_shapes and not lacking if config.packed is None else config.packed

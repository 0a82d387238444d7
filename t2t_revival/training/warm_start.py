"""Weights of another training, with which a new one starts (T2T's `--warm_start_from`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival import registry
from t2t_revival.checkpoints.directory import (
    MODEL,
    Checkpoint,
    OnDamaged,
    assign,
    check_architecture,
    ignored_checkpoint,
    load_weights,
)
from t2t_revival.checkpoints.file import is_adapter
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.errors import T2TError
from t2t_revival.hparams import HParams
from t2t_revival.model_folder import ModelFolder, Run

if TYPE_CHECKING:
    import numpy as np

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
    checkpoint: Checkpoint
    partial: bool = False
    new_pieces: tuple[list[list[int]], ...] = ()
    asked: str | None = None

    @classmethod
    def open(cls, path: Path, partial: bool = False, on_damaged: OnDamaged | None = None) -> WarmStart:
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
        if other != problem and other in registry.list_problems():
            kinds = {registry.problem(name).targets_are_text for name in (other, problem)}
            if len(kinds) > 1:
                raise T2TError(f"{where}: a model of {other} cannot become one of {problem}")
        before, now = self.folder.hparams.architecture(), hparams.architecture()
        differences = [
            f"{name}={before[name]}, not {now[name]}" for name in now if before.get(name) != now[name]
        ]
        if differences and not self.partial:
            raise T2TError(
                f"{where}: that model has {'; '.join(differences)}: change --hparams, or give "
                "--warm_start_partial to take the weights that fit"
            )

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
            return path, *load_weights(path)

        path, arrays, meta = taking_next(
            read, self.asked, lambda error: notes.append(ignored_checkpoint(error))
        )
        arrays = {
            name: array for name, array in arrays.items() if array.dtype.kind == "f"
        }  # no random states
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise T2TError(
                    f"{path}: {name.removeprefix(MODEL)} is not finite: take an earlier checkpoint"
                )
        notes.append(f"starting with the weights of {path} (step {meta['step']})")
        if self.new_pieces:
            arrays = {name: self._with_new_rows(name, array) for name, array in arrays.items()}
            notes[-1] += f", {sum(map(len, self.new_pieces)):,} new pieces"
        weights = [weight for weight in model.weights if not is_adapter(weight.path)]
        if not self.partial:
            check_architecture(model, meta, path)
            assign(weights, arrays, MODEL, path)
            return notes
        shapes = {name.removeprefix(MODEL): array.shape for name, array in arrays.items()}
        fitting = [weight for weight in weights if shapes.get(weight.path) == tuple(weight.shape)]
        if not fitting:
            raise T2TError(f"{path}: no weight fits this model")
        for weight in fitting:
            weight.assign(arrays[MODEL + weight.path])
        taken = {weight.path for weight in fitting}
        fresh = [weight.path for weight in weights if weight.path not in taken]
        unused = [name for name in shapes if name not in taken]
        return [
            *notes,
            f"{len(fitting)} of {len(weights)} weights taken",
            *(_list(what, names) for what, names in (("fresh", fresh), ("not used", unused)) if names),
        ]

    def _with_new_rows(self, name: str, array: np.ndarray) -> np.ndarray:
        """Adds a row for each new piece to an embedding: the mean of the rows of its parts."""
        import numpy as np

        if not name.endswith("_embedding/embeddings"):
            return array
        of_inputs = name.endswith("source_embedding/embeddings")
        rows = [array[parts].mean(axis=0) for parts in self.new_pieces[0 if of_inputs else -1]]
        return np.concatenate([array, rows]) if rows else array


def _list(what: str, names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"{what}: {', '.join(names[:LISTED])}{more}"

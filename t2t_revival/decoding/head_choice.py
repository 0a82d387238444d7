"""The choice of alignment heads where a model is loaded that needs some and has none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.decoding.alignment_heads import FILE_NAME, AlignmentHeads
from t2t_revival.decoding.head_search import MAX_CHOOSING, HeadSearch, Pair, choose_without_gold
from t2t_revival.decoding.notes import OnNote
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TRAIN
from t2t_revival.utils.files import check_writable

if TYPE_CHECKING:
    from t2t_revival.data.records import SplitData
    from t2t_revival.problems.problem import Problem


@dataclass(frozen=True)
class HeadChoice:
    """A choice as `t2t-align --choose_heads` makes it, which is still to be made.

    Attributes:
        folder: of the training, in which the heads are stored if it can be written.
        pairs: of dev.
        shards: of train, from which translations of pieces are learned.
    """

    folder: ModelFolder
    pairs: list[Pair]
    shards: SplitData

    @classmethod
    def plan(cls, folder: ModelFolder, problem: Problem | None, data_dir: str | Path | None) -> HeadChoice:
        """Finds the data; `data_dir` is as in `ModelFolder.own_data`.

        Raises:
            T2TError: there is none to choose heads by.
        """
        try:
            if problem is None:
                raise T2TError(f"the problem {folder.run.problem} is not registered: give --t2t_usr_dir")
            data = folder.own_data(data_dir)
            return cls(folder, list(islice(data.references(DEV), MAX_CHOOSING)), data.split(TRAIN))
        except T2TError as error:
            raise _impossible(folder.path, error) from error

    def make(self, search: HeadSearch, is_given: bool, on_note: OnNote) -> AlignmentHeads:
        """Chooses heads of a model, stores them, and says so in a line.

        Those of a checkpoint whose file `is_given` are not stored: it may be an early one.

        Raises:
            T2TError: the pairs do not show which heads align.
        """
        fault = "the checkpoint is a given one" if is_given else self._fault()
        place = f"this run only: {fault}" if fault else str(self.folder.path / FILE_NAME)
        on_note(f"choosing the heads that align words, by {len(self.pairs):,} pairs of dev, for {place}")
        try:
            choice = choose_without_gold(search, self.pairs, self.shards)
        except T2TError as error:
            raise _impossible(self.folder.path, error) from error
        if not fault:
            choice.save(self.folder.path, len(self.pairs), lexical=True)
        return choice.heads

    def _fault(self) -> str:
        """Returns why the folder cannot be written; "" where it can."""
        try:
            check_writable(self.folder.path)
        except T2TError as error:
            return str(error)
        return ""


def _impossible(output_dir: Path, error: T2TError) -> T2TError:
    files = {"source": "FILE", "target": "FILE", "gold": "FILE"}
    return T2TError(
        f"alignments: no {output_dir / FILE_NAME}, and heads cannot be chosen now: ",
        error,
        "; or choose them by pairs with alignments: run ",
        CommandLine("t2t-align", output_dir=output_dir, choose_heads=True, **files),
    )

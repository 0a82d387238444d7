"""Blocks of lines, each decoded once, by one process or by several that share a folder.

FOLDER/origin.json                 all that the outputs depend on, and the number of lines
FOLDER/decoded/00000.inputs        the lines of a block
FOLDER/decoded/00000.outputs       their outputs; a block with this file is complete
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from t2t_revival.addons.shortlist import Translations
from t2t_revival.decoding.files.part_file import part_file
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.lines.batching import DecodingProgress
from t2t_revival.decoding.lines.notes import OnNote, ignore_note
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import exclusive_lock, file_lines, writing
from t2t_revival.utils.made_of import MadeOf

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

BLOCK_LINES = 5000  # several windows of batches that are sorted by length
OnLines = Callable[[int, int], None]  # called with the lines that are done, and their total
Prepare = Callable[[SplitFiles, int], tuple[Sequence[str], Sequence[str] | None]]


@dataclass(frozen=True)
class DecodedBlocks(abc.ABC):
    """Outputs of lines in a folder, in blocks; they depend on nothing but `origin`.

    Attributes:
        folder: of the outputs; made if missing.
        block_lines: lines of a block.
        another: the remedy where the folder cannot be used, as in "give another --distilled_dir".
        preprocessed: see `Lines`.
    """

    folder: Path
    block_lines: int = field(default=BLOCK_LINES, kw_only=True)
    another: ClassVar[str]
    preprocessed: ClassVar[bool] = False

    @abc.abstractmethod
    def origin(self) -> dict[str, Any]:
        """Everything that the outputs depend on, as JSON values by names for people."""

    @abc.abstractmethod
    def _plan(self, translator: Translator, on_note: OnNote) -> tuple[dict[str, int], Prepare]:
        """Returns numbers for origin.json, of all "lines" among them, and a function that prepares a block.

        The function is called with a block's files and the number of its first line, from 0. It writes the
        block's inputs; returns them, with references to keep the outputs that are nearest to them, or `None`.
        """

    @abc.abstractmethod
    def _prepare_folder(self) -> None:
        """Checks or writes what the folder has beside the blocks, before the first decoding."""

    def files(self, name: str) -> SplitFiles:
        """The files of a block or of a split."""
        return SplitFiles.beside(self.folder / "decoded" / f"{name}.outputs")

    def stored(self) -> dict[str, Any] | None:
        """The content of origin.json, which must be of these outputs; `None` before the first decoding.

        Raises:
            T2TError: the folder holds other outputs, or the file is corrupt.
        """
        path = self.folder / "origin.json"
        if not path.exists():
            return None
        stored = checked_json.load(path, f"remove it, or {self.another}")
        remedy = f"{self.another}, or remove it"
        MadeOf(stored).check(MadeOf(self.origin()), f"{self.folder} holds outputs with", remedy)
        return stored

    def blocks(self) -> list[SplitFiles]:
        """The files of all blocks, in order; none before the first decoding.

        Raises:
            T2TError: as `stored`.
        """
        lines = (self.stored() or {"lines": 0})["lines"]
        return [self.files(f"{number:05}") for number in range(-(-lines // self.block_lines))]

    def are_complete(self) -> bool:
        """Returns whether all blocks are decoded.

        Raises:
            T2TError: as `stored`.
        """
        blocks = self.blocks()
        return bool(blocks) and all(block.outputs.exists() for block in blocks)

    def decode(
        self,
        translator: Translator,
        shard: Shard,
        on_lines: OnLines = lambda done, total: None,
        on_note: OnNote = ignore_note,
    ) -> None:
        """Decodes the blocks of one of several workers that are not complete.

        Lines that are blank or longer than the model's max_length are left out. After an interruption, even
        `kill -9`, the same call resumes, and the outputs are the same.

        Args:
            translator: of the model, or of the teachers.
            shard: the worker; all have the same text and model.
            on_lines: called after each batch.
            on_note: called with each line for people.

        Raises:
            T2TError: as `translate_lines`; the folder holds other outputs or another corpus or cannot be
                written, or another process is decoding one of the blocks.
        """
        counts, prepare = self._plan(translator, on_note)
        self._begin(counts)
        waiting = f"{self.folder}: another process is decoding there; waiting until it ends"
        alone = exclusive_lock(self.folder / "decoded", None, lambda: on_note(waiting))
        blocks, lines = self.blocks(), counts["lines"]
        first, end = shard.bounds(len(blocks))
        if shard.count > 1:
            on_note(f"worker {shard.number} of {shard.count}: {end - first} of {len(blocks)} blocks")
        first_line, end_line = first * self.block_lines, min(end * self.block_lines, lines)
        starts = range(first_line, end_line, self.block_lines)
        try:
            with alone if shard.count == 1 else nullcontext():
                for block, start in zip(blocks[first:end], starts, strict=True):
                    if block.outputs.exists():
                        continue
                    with part_file(block.outputs, on_note) as output:
                        inputs, references = prepare(block, start)
                        left_out = min(self.block_lines, lines - start) - len(inputs)
                        before = start - first_line + left_out
                        progress = partial(_report, on_lines, before, end_line - first_line)
                        translate_lines(
                            translator,
                            Lines(inputs, preprocessed=self.preprocessed, first=start + 1),
                            output,
                            Report("the sources", on_note, progress),
                            nearest_to=references,
                        )
        except KeyboardInterrupt as stop:
            complete = sum(block.outputs.exists() for block in blocks)
            if str(stop) or not complete:
                raise
            kept = f"{complete:,} of {len(blocks):,} blocks are complete and kept"
            raise type(stop)(f"interrupted; {kept}; the same command resumes") from stop

    def _begin(self, counts: Mapping[str, int]) -> None:
        """Writes origin.json, unless another worker has; checks what is there."""
        with writing(f"to {self.folder}", self.another):
            (self.folder / "decoded").mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self.folder, None):
            if self.stored():
                return
            self._prepare_folder()
            with writing(f"to {self.folder}", self.another):
                checked_json.save(self.folder / "origin.json", {**self.origin(), **counts})


def option_values(options: DecodeHParams, models: Sequence[TrainedModel], fingerprint: str) -> dict[str, Any]:
    """The options on which outputs depend, and the translations of a shortlist, by name.

    Args:
        options: how to decode.
        models: one, or those of an ensemble; the first has the shortlist.
        fingerprint: of their vocabulary.
    """
    values = options.of_texts
    if options.has_shortlist:
        values["translations"] = Translations.load(models[0].folder.path, fingerprint).digest
    return values


def read_block(outputs: Path, *others: Path) -> Iterator[tuple[str, ...]]:
    """Yields the lines of a block's outputs, each with those of its other files.

    Raises:
        T2TError: a file is missing or truncated.
    """
    sides = [file_lines(path) for path in (outputs, *others)]
    if len(set(map(len, sides))) > 1:
        raise T2TError(
            f"{outputs}: {len(sides[0])} lines for {len(sides[1])} inputs; remove it, and the block is "
            "decoded again"
        )
    return zip(*sides, strict=True)


def _report(on_lines: OnLines, before: int, total: int, progress: DecodingProgress) -> None:
    """Reports the progress of a block whose worker has decoded or left out lines `before`."""
    on_lines(before + progress.done, total)

"""A teacher's outputs for the training sources and for more text: blocks of lines, each decoded once.

FOLDER/origin.json                 all that the outputs depend on, and the number of lines
FOLDER/decoded/00000.inputs        the lines of a block
FOLDER/decoded/00000.targets       their references, blank for lines that have none
FOLDER/decoded/00000.outputs       the teacher's outputs; a block with this file is complete
FOLDER/decoded/dev.inputs, .targets, and test   the pairs of the other splits
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_revival.decoding.batching import DecodingProgress
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import part_file, to_bytes
from t2t_revival.decoding.resumable import OnNote, digest, ignore_note, translate_lines
from t2t_revival.decoding.shards import Shard
from t2t_revival.decoding.translations import Translations
from t2t_revival.distillation.teachers import TrainedModel
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles
from t2t_revival.problems.problem import TRAIN
from t2t_revival.problems.reversed import one_way
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import buffered_write, exclusive_lock, text_lines, writing

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

BLOCK_LINES = 5000  # several windows of batches that are sorted by length
ANOTHER = "give another --distilled_dir"
NOT_PLAIN = ("return_beams", "write_beam_scores")  # make a line of more than one output
OnLines = Callable[[int, int], None]  # called with the lines that are done, and their total


@dataclass(frozen=True)
class TeacherOutputs:
    """Outputs of a teacher or an ensemble, in a folder; they depend on nothing but the other attributes.

    Attributes:
        folder: of the outputs; made if missing.
        teachers: one, or the models of an ensemble.
        problem: the teachers' problem, whose text is the same for users and for the model.
        data_dir: folder of its data.
        options: how to decode.
        nearest: whether that of the `beam_size` outputs is kept which is nearest to the reference.
        monolingual: further lines to decode, which have no reference.
        engine: the engine that decodes and its precision; see `Translator.engine`.
        block_lines: lines of a block.

    Raises:
        T2TError: the problem changes text before or after the model, or the options ask for more than one
            output on a line.
    """

    folder: Path
    teachers: Sequence[TrainedModel]
    problem: Text2TextProblem
    data_dir: Path
    options: DecodeHParams
    nearest: bool = False
    monolingual: Sequence[str] = ()
    engine: str = "tensorflow, float32"
    block_lines: int = BLOCK_LINES

    def __post_init__(self) -> None:
        if methods := one_way(type(self.problem)):
            raise T2TError(
                f"problem {self.problem.name} cannot be distilled: it has {', '.join(methods)}, and only "
                "problems whose lines are the model's own text can"
            )
        for name in NOT_PLAIN:
            if getattr(self.options, name):
                raise T2TError(f"decode_hparams: {name} is for t2t-decoder; leave it out")

    def files(self, name: str) -> SplitFiles:
        """The files of a block or of a split."""
        return SplitFiles.beside(self.folder / "decoded" / f"{name}.outputs")

    def origin(self) -> dict[str, Any]:
        """Everything that the outputs depend on, by names for people."""
        options = dataclasses.asdict(self.options)
        for name in (*NOT_PLAIN, "batch_size"):
            del options[name]
        if self.options.has_shortlist:
            fingerprint = self.problem.vocabularies(self.data_dir).fingerprint
            options["translations"] = Translations.load(self.teachers[0].output_dir, fingerprint).digest
        return {
            "teacher": ", ".join(teacher.name for teacher in self.teachers),
            "problem": self.problem.name,
            "training_data": self.problem.data_fingerprint(TRAIN, self.data_dir),
            "monolingual": digest(list(self.monolingual)),
            "nearest": self.nearest,
            "engine": self.engine,
            "block_lines": self.block_lines,
            **options,
        }

    def stored(self) -> dict[str, Any] | None:
        """The content of origin.json, which must be of these outputs; `None` before the first decoding.

        Raises:
            T2TError: the folder holds other outputs, or the file is corrupt.
        """
        path = self.folder / "origin.json"
        if not path.exists():
            return None
        stored = checked_json.load(path, f"restore a copy, or {ANOTHER}")
        for name, value in self.origin().items():
            if stored.get(name) != value:
                raise T2TError(
                    f"{self.folder} holds outputs with {name}={stored.get(name)}, not {value}: {ANOTHER}"
                )
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

        Lines that are blank or longer than the teacher's max_length are left out. After an interruption, even
        `kill -9`, the same call resumes, and the outputs are the same.

        Args:
            translator: of the teachers.
            shard: the worker; all have the same text and teacher.
            on_lines: called after each batch.
            on_note: called with each line for people.

        Raises:
            T2TError: as `translate_lines`; the folder holds other outputs or cannot be written, or another
                process is decoding one of the blocks.
        """
        pairs, left_out = self._pairs(translator)
        note = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in left_out.items() if count)
        if note:
            on_note(f"{len(pairs):,} lines to decode; left out: {note}")
        if not pairs:
            raise T2TError(f"nothing to decode: {note}")
        self._begin({"lines": len(pairs), **left_out})
        blocks = self.blocks()
        first, end = shard.bounds(len(blocks))
        if shard.count > 1:
            on_note(f"worker {shard.number} of {shard.count}: {end - first} of {len(blocks)} blocks")
        worker_lines = min(end * self.block_lines, len(pairs)) - first * self.block_lines
        for number, block in enumerate(blocks[first:end], start=first):
            if block.outputs.exists():
                continue
            start = number * self.block_lines
            before = start - first * self.block_lines
            with part_file(block.outputs, on_note) as output:
                _write_pairs(block, pairs[start : start + self.block_lines])
                inputs, references = read_pairs(block)
                translate_lines(
                    translator,
                    inputs,
                    "the sources",
                    output,
                    preprocessed=True,
                    first_line=start + 1,
                    nearest_to=references if self.nearest else None,
                    on_progress=partial(_report, on_lines, before, worker_lines),
                    on_note=on_note,
                )

    def _begin(self, counts: dict[str, int]) -> None:
        """Writes origin.json and the other splits, unless another worker has; checks what is there."""
        with writing(f"to {self.folder}", ANOTHER):
            (self.folder / "decoded").mkdir(parents=True, exist_ok=True)
        with exclusive_lock(self.folder, None):
            if self.stored():
                return
            for split in self.problem.metadata(self.data_dir).splits:
                if split != TRAIN:
                    _write_pairs(self.files(split), list(self.problem.text(split, self.data_dir)))
            with writing(f"to {self.folder}", ANOTHER):
                checked_json.save(self.folder / "origin.json", {**self.origin(), **counts})

    def _pairs(self, translator: Translator) -> tuple[list[tuple[str, str]], dict[str, int]]:
        """The lines to decode, each with its reference or "", and how many others there are, by kind."""
        kept: list[tuple[str, str]] = []
        left_out = {"blank": 0, "longer_than_max_length": 0}
        everything = chain(
            self.problem.text(TRAIN, self.data_dir), ((line.strip(), "") for line in self.monolingual)
        )
        for source, reference in everything:
            ids = translator.vocabulary.encode(source)
            if not ids or not source.strip():
                left_out["blank"] += 1
            elif len(ids) >= translator.max_length:  # EOS is one more
                left_out["longer_than_max_length"] += 1
            else:
                kept.append((source, reference))
        return kept, left_out


def _report(on_lines: OnLines, before: int, total: int, progress: DecodingProgress) -> None:
    """Reports the progress of a block whose worker has decoded lines `before`."""
    on_lines(before + progress.done, total)


def read_pairs(files: SplitFiles) -> tuple[list[str], list[str]]:
    """Reads the inputs and references of a block or split."""
    inputs, references = (text_lines(path.read_bytes(), str(path)) for path in files[1:])
    return inputs, references


def _write_pairs(files: SplitFiles, pairs: Sequence[tuple[str, str]]) -> None:
    for side, path in enumerate((files.inputs, files.references)):
        with buffered_write(path) as file:
            file.write(to_bytes([pair[side] for pair in pairs]))

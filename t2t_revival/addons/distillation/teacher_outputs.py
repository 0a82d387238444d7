"""A teacher's outputs for the training sources and for more text: blocks of lines, each decoded once.

FOLDER/origin.json                 all that the outputs depend on, and the number of lines
FOLDER/decoded/00000.inputs        the lines of a block
FOLDER/decoded/00000.targets       their references, blank for lines that have none
FOLDER/decoded/00000.outputs       the teacher's outputs; a block with this file is complete
FOLDER/decoded/dev.inputs, .targets, and test   the pairs of the other splits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from t2t_revival.addons.distillation.blocks import DecodedBlocks, Prepare, option_values
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.files.resumable import digest
from t2t_revival.decoding.lines.notes import OnNote
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles
from t2t_revival.problems.problem import TRAIN, Data
from t2t_revival.utils.files import buffered_write, file_lines
from t2t_revival.utils.texts import is_blank

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

ANOTHER = "give another --distilled_dir"


@dataclass(frozen=True)
class TeacherOutputs(DecodedBlocks):
    """Outputs of a teacher or an ensemble, in a folder; they depend on nothing but the other attributes.

    Attributes:
        teachers: one, or the models of an ensemble.
        data: of the teachers' problem, whose text is the same for users and for the model.
        options: how to decode.
        nearest: whether that of the `beam_size` outputs is kept which is nearest to the reference.
        monolingual: further lines to decode, which have no reference.
        engine: the engine that decodes and its precision; see `Translator.engine`.

    Raises:
        T2TError: the problem changes text before or after the model, or the options ask for more than one
            output on a line.
    """

    teachers: Sequence[TrainedModel]
    data: Data
    options: DecodeHParams
    nearest: bool = False
    monolingual: Sequence[str] = ()
    engine: str = "tensorflow, float32"
    another = ANOTHER
    preprocessed = True

    def __post_init__(self) -> None:
        problem = self.data.problem
        if methods := problem.one_way():
            raise T2TError(
                f"problem {problem.name} cannot be distilled: it has {', '.join(methods)}, and only "
                "problems whose lines are the model's own text can"
            )
        capabilities.check(self.options.asked(), capabilities.TRANSLATIONS)

    def origin(self) -> dict[str, Any]:
        fingerprint = self.data.vocabularies.fingerprint
        return {
            "teacher": ", ".join(teacher.name for teacher in self.teachers),
            "problem": self.data.problem.name,
            "training_data": self.data.fingerprint(TRAIN),
            "monolingual": digest(list(self.monolingual)),
            "nearest": self.nearest,
            "engine": self.engine,
            "block_lines": self.block_lines,
            **option_values(self.options, self.teachers, fingerprint),
        }

    def _plan(self, translator: Translator, on_note: OnNote) -> tuple[dict[str, int], Prepare]:
        pairs, left_out = self._pairs(translator)
        note = ", ".join(f"{count:,} {kind.replace('_', ' ')}" for kind, count in left_out.items() if count)
        if note:
            on_note(f"{len(pairs):,} lines to decode; left out: {note}")
        if not pairs:
            raise T2TError(f"nothing to decode: {note}")

        def prepare(block: SplitFiles, start: int) -> tuple[list[str], list[str] | None]:
            _write_pairs(block, pairs[start : start + self.block_lines])
            inputs, references = read_pairs(block)
            return inputs, references if self.nearest else None

        return {"lines": len(pairs), **left_out}, prepare

    def _prepare_folder(self) -> None:
        """Writes the other splits."""
        for split in self.data.metadata.splits:
            if split != TRAIN:
                _write_pairs(self.files(split), list(self.data.text(split)))

    def _pairs(self, translator: Translator) -> tuple[list[tuple[str, str]], dict[str, int]]:
        """The lines to decode, each with its reference or "", and how many others there are, by kind."""
        kept: list[tuple[str, str]] = []
        left_out = {"blank": 0, "longer_than_max_length": 0}
        everything = chain(self.data.text(TRAIN), ((line.strip(), "") for line in self.monolingual))
        for source, reference in everything:
            ids = translator.vocabulary.encode(source)
            if not ids or is_blank(source):
                left_out["blank"] += 1
            elif len(ids) >= translator.max_length:  # EOS is one more
                left_out["longer_than_max_length"] += 1
            else:
                kept.append((source, reference))
        return kept, left_out


def read_pairs(files: SplitFiles) -> tuple[list[str], list[str]]:
    """Reads the inputs and references of a block or split."""
    inputs, references = map(file_lines, files[1:])
    return inputs, references


def _write_pairs(files: SplitFiles, pairs: Sequence[tuple[str, str]]) -> None:
    for side, path in enumerate((files.inputs, files.references)):
        with buffered_write(path) as file:
            file.write(to_bytes([pair[side] for pair in pairs]))

"""A decoded split: outputs, inputs and references side by side, with BLEU or F1."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.decoding.outputs import part_file, to_bytes
from t2t_revival.decoding.resumable import OnNote, OnProgress, ignore_note, translate_lines
from t2t_revival.decoding.shards import Shard
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import MetricResult, metric_for
from t2t_revival.utils.files import buffered_write

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.problems.text_problems import Text2TextProblem


@dataclass(frozen=True)
class SplitFiles:
    """The files of a decoded split.

    Attributes:
        outputs: translations or trees, one a line.
        inputs: the split's inputs.
        references: the split's targets.
    """

    outputs: Path
    inputs: Path
    references: Path

    @classmethod
    def beside(cls, outputs: Path) -> SplitFiles:
        """Names inputs and references after the file of outputs."""
        stem = outputs.name.removesuffix(".outputs")
        return cls(outputs, outputs.with_name(f"{stem}.inputs"), outputs.with_name(f"{stem}.targets"))

    @classmethod
    def of_model(cls, output_dir: Path, split: str, translator: Translator) -> SplitFiles:
        """Names the files after split and step, in the folder output_dir/decoded, which is made.

        Raises:
            T2TError: the folder cannot be made.
        """
        assert translator.checkpoint is not None
        folder = output_dir / "decoded"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise T2TError(f"cannot write {folder}: {error.strerror}; give --decode_to_file") from error
        return cls.beside(folder / f"{split}-{translator.checkpoint.step}.outputs")

    def of_shard(self, shard: Shard) -> SplitFiles:
        """The files of one decoder's part."""
        return SplitFiles(*map(shard.path, self.paths))

    @property
    def paths(self) -> tuple[Path, Path, Path]:
        """All files."""
        return self.outputs, self.inputs, self.references


@dataclass(frozen=True)
class DecodedSplit:
    """A decoded split, or one decoder's part of it.

    Attributes:
        files: where it was written.
        inputs: sentences of the split.
        outputs: the best output of each.
        references: the target of each.
        result: BLEU or F1; `None` where the problem has no such metric, or there are no sentences.
    """

    files: SplitFiles
    inputs: list[str]
    outputs: list[str]
    references: list[str]
    result: MetricResult | None


def decode_split(
    translator: Translator,
    problem: Text2TextProblem,
    split: str,
    pairs: list[tuple[str, str]],
    files: SplitFiles,
    first_line: int = 1,
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
) -> DecodedSplit:
    """Decodes pairs of a split, and writes outputs, inputs and references.

    Args:
        translator: loaded from a checkpoint.
        problem: of the split.
        split: its name, for warnings.
        pairs: input and target of each sentence.
        files: where they are written; outputs that an interrupted run left there are resumed.
        first_line: the number of the first pair in the split.
        on_progress: called at the start and after each batch.
        on_note: called with each line for people.

    Raises:
        T2TError: as `translate_lines`, or a file cannot be written.
    """
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    with part_file(files.outputs, on_note) as output:
        translations = translate_lines(
            translator,
            inputs,
            f"the {split} split",
            output,
            preprocessed=True,
            first_line=first_line,
            on_progress=on_progress,
            on_note=on_note,
        )
        for path, lines in ((files.inputs, inputs), (files.references, references)):
            with buffered_write(path) as file:
                file.write(to_bytes(lines))
    outputs = [found[0].text for found in translations]
    metric = metric_for(problem)
    result = metric.score(outputs, references) if metric and pairs else None
    return DecodedSplit(files, inputs, outputs, references, result)

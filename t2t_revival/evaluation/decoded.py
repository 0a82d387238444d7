"""Decoded outputs of a problem, and their scores: BLEU of translations, F1 of trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.decoding.batching import OnProgress
from t2t_revival.decoding.notes import OnNote, ignore_note
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.part_file import part_file
from t2t_revival.decoding.resumable import translate_lines
from t2t_revival.decoding.shards import Shard
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.metrics.bleu import DEFAULT, MOSES_LANGUAGES, CorpusScore, name_of_code, primary_code
from t2t_revival.metrics.metric import METRICS, Metric, title_of
from t2t_revival.utils.files import buffered_write

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.problems.problem import Problem

Results = dict[str, CorpusScore]  # by the names of metrics, the main one first


def main_metric(problem: Problem) -> Metric | None:
    """The metric of decoded outputs that decides; `None` where a problem has none."""
    return next(iter(_output_metrics(problem)), None)


def score_outputs(problem: Problem, outputs: list[str], references: list[str]) -> Results:
    """Scores decoded outputs by each of a problem's metrics of them."""
    return {
        metric.name: metric.score(outputs, references, problem.target_lang)
        for metric in _output_metrics(problem)
        if metric.score
    }


def report(results: Results, where: str) -> str:
    """The main score in a line, and in another how it was computed, the other scores, and remarks."""
    (name, main), *others = results.items()
    scores = (f"{title_of(other)} {result.score:.2f}" for other, result in others)
    details = "; ".join(filter(None, [main.signature, *scores, main.note]))
    return f"{title_of(name)} {main.score:.2f} on {where}\n{details}"


def scoring_command(problem: Problem, outputs: Path, references: str = "REFERENCE") -> str:
    """The command that scores a file of outputs against one of references; empty where there is none."""
    main, language = main_metric(problem), problem.target_lang
    if not (main and main.program):
        return ""
    files = dict(zip(main.flags, (outputs, references), strict=True))
    known = primary_code(language) in MOSES_LANGUAGES or name_of_code(language)
    return str(CommandLine(main.program, **files, target_lang=language if known else None))


def tokenizer_setting(problem: Problem) -> dict[str, str]:
    """Names BLEU's tokenizer, for fingerprints of scores; empty for 13a."""
    if not problem.targets_are_text:
        return {}
    name = name_of_code(problem.target_lang)
    if problem.lines_have_tags and not name:
        name = "by script"
    return {"tokenizer": name} if name not in ("", DEFAULT) else {}


def _output_metrics(problem: Problem) -> list[Metric]:
    names = problem.eval_metrics()
    return [metric for metric in METRICS if metric.outputs and metric.name in names]


class SplitFiles(NamedTuple):
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
        return SplitFiles(*map(shard.path, self))


def decode_split(
    translator: Translator,
    problem: Problem,
    split: str,
    pairs: list[tuple[str, str]],
    files: SplitFiles,
    first_line: int = 1,
    on_progress: OnProgress | None = None,
    on_note: OnNote = ignore_note,
) -> tuple[list[str], Results]:
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

    Returns:
        The best output of each input, and its scores such as BLEU or F1; none where there are no pairs.

    Raises:
        T2TError: as `translate_lines`, or a file cannot be written.
    """
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    with part_file(files.outputs, on_note) as output:
        translate_lines(
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
    outputs = files.outputs.read_bytes().decode().split("\n")[:-1]
    if translator.options.has_columns:
        outputs = [line.partition("\t")[0] for line in outputs]
    return outputs, score_outputs(problem, outputs, references) if pairs else {}

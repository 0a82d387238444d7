"""Decoded outputs of a problem, and their scores: BLEU of translations, F1 of trees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.decoding.files.part_file import part_file
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.errors import CommandLine
from t2t_revival.metrics.bleu import DEFAULT, MOSES_LANGUAGES, CorpusScore, primary_code, tokenizer_name
from t2t_revival.metrics.metric import METRICS, Metric, title_of
from t2t_revival.utils.files import buffered_write, writing

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.problems.problem import Data, Problem

Results = dict[str, CorpusScore]  # by the names of metrics, the main one first


def main_metric(problem: Problem) -> Metric | None:
    """The metric of decoded outputs that decides; `None` where a problem has none."""
    return next(iter(_output_metrics(problem)), None)


def language_of(data: Data) -> str:
    """The code of the language of the targets; empty where they are of several."""
    if not data.problem.lines_have_tags:
        return data.problem.target_lang
    language = data.metadata.target_lang
    return "" if "," in language else language


def score_outputs(
    problem: Problem, outputs: list[str], references: list[str], target_lang: str | None = None
) -> Results:
    """Scores decoded outputs by each of a problem's metrics of them.

    `target_lang` is the code of their language; `None` takes the problem's.
    """
    language = problem.target_lang if target_lang is None else target_lang
    return {
        metric.name: metric.score(outputs, references, language)
        for metric in _output_metrics(problem)
        if metric.score
    }


def report(results: Results, where: str) -> str:
    """The main score in a line, and in another how it was computed, the other scores, and remarks."""
    (name, main), *others = results.items()
    scores = (f"{title_of(other)} {result.score:.2f}" for other, result in others)
    details = "; ".join(filter(None, [main.signature, *scores, main.note]))
    return f"{title_of(name)} {main.score:.2f} on {where}\n{details}"


def scoring_command(
    problem: Problem, outputs: Path, references: str = "REFERENCE", target_lang: str | None = None
) -> str:
    """The command that scores a file of outputs against one of references; empty where there is none.

    `target_lang` is as in `score_outputs`.
    """
    main = main_metric(problem)
    if not (main and main.program):
        return ""
    language = problem.target_lang if target_lang is None else target_lang
    files = dict(zip(main.flags, (outputs, references), strict=True))
    return str(CommandLine(main.program, **files, target_lang=known_language(language)))


def known_language(language: str) -> str | None:
    """The value of t2t-bleu's `--target_lang`; `None` where it would change nothing."""
    known = primary_code(language) in MOSES_LANGUAGES or tokenizer_name(language) != DEFAULT
    return language if known else None


def tokenizer_setting(data: Data) -> dict[str, str]:
    """Names BLEU's tokenizers of all corpora, for fingerprints of scores; empty for 13a alone."""
    if not data.problem.targets_are_text:
        return {}
    corpora = data.parts.values() or [data]
    names = ",".join(sorted({tokenizer_name(language_of(corpus)) for corpus in corpora}))
    return {"tokenizer": names} if names != DEFAULT else {}


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
        with writing(folder, "give --decode_to_file"):
            folder.mkdir(exist_ok=True)
        return cls.beside(folder / f"{split}-{translator.checkpoint.step}.outputs")

    def of_shard(self, shard: Shard) -> SplitFiles:
        """The files of one decoder's part."""
        return SplitFiles(*map(shard.path, self))


def decode_split(
    translator: Translator,
    pairs: list[tuple[str, str]],
    files: SplitFiles,
    report: Report,
    first_line: int = 1,
) -> list[str]:
    """Decodes pairs of a split, and writes outputs, inputs and references.

    Args:
        translator: loaded from a checkpoint.
        pairs: input and target of each sentence.
        files: where they are written; outputs that an interrupted run left there are resumed.
        report: names the split, and tells of the outputs.
        first_line: the number of the first pair in the split.

    Returns:
        The best output of each input.

    Raises:
        T2TError: as `translate_lines`, or a file cannot be written.
    """
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    with part_file(files.outputs, report.on_note) as output:
        translate_lines(
            translator,
            Lines(inputs, preprocessed=True, first=first_line),
            output,
            report,
        )
        for path, lines in ((files.inputs, inputs), (files.references, references)):
            with buffered_write(path) as file:
                file.write(to_bytes(lines))
    outputs = files.outputs.read_bytes().decode().split("\n")[:-1]
    return [line.partition("\t")[0] for line in outputs] if translator.options.has_columns else outputs

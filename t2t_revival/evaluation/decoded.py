"""Decoded outputs of a problem, and their metric: BLEU of translations, F1 of trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2t_revival.decoding.outputs import part_file, to_bytes
from t2t_revival.decoding.resumable import OnNote, OnProgress, ignore_note, translate_lines
from t2t_revival.decoding.shards import Shard
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.bleu import chrf_score, paper_style_languages, sacrebleu_score
from t2t_revival.evaluation.significance import Compared, compare_bleu, compare_f1
from t2t_revival.hints import command_line
from t2t_revival.utils.bleu_tokenizers import DEFAULT, name_of_code
from t2t_revival.utils.files import buffered_write

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.problems.problem import Problem


@dataclass(frozen=True)
class MetricResult:
    """A corpus score of 0 to 100, and how it was computed.

    Attributes:
        score: that of the metric.
        details: signature, further scores and remarks, for people.
        chrf: chrF2 of translations.
    """

    score: float
    details: str
    chrf: float | None = None


@dataclass(frozen=True)
class Metric:
    """A metric of decoded outputs.

    Attributes:
        name: in `Problem.eval_metrics`.
        title: name in text for people.
        score: called with outputs and references; returns the score of the corpus.
        compare: called with outputs of several systems and references; returns the score of each system and
            the significance of its difference from the first.
        program: command that scores files.
        flags: its flags for outputs and for references.
        target_lang: language of the outputs; empty if they have none.
    """

    name: str
    title: str
    score: Callable[[Sequence[str], Sequence[str]], MetricResult]
    compare: Callable[[Mapping[str, Sequence[str]], Sequence[str]], dict[str, Compared]]
    program: str
    flags: tuple[str, str]
    target_lang: str = ""

    def command(self, outputs: str, references: str) -> str:
        """The command that scores a file of outputs against one of references."""
        files = dict(zip(self.flags, (outputs, references), strict=True))
        known = self.target_lang in paper_style_languages() or name_of_code(self.target_lang)
        return command_line(self.program, **files, target_lang=self.target_lang if known else None)


def metric_for(problem: Problem) -> Metric | None:
    """The metric of a problem's outputs; `None` if they have none."""
    names = problem.eval_metrics()
    if "bleu" in names:
        return _bleu_of(problem.target_lang)
    return F1 if "f1" in names else None


def score_names(problem: Problem) -> tuple[str, ...]:
    """The names of all scores on a split: a problem's metrics, and chrF beside BLEU."""
    names = problem.eval_metrics()
    return (*names, "chrf") if "bleu" in names else names


def tokenizer_setting(problem: Problem) -> dict[str, str]:
    """Names BLEU's tokenizer, for fingerprints of scores; empty for 13a."""
    if "bleu" not in problem.eval_metrics():
        return {}
    name = name_of_code(problem.target_lang)
    if problem.lines_have_tags and not name:
        name = "by script"
    return {"tokenizer": name} if name not in ("", DEFAULT) else {}


def _bleu_of(target_lang: str) -> Metric:
    def score(outputs: Sequence[str], references: Sequence[str]) -> MetricResult:
        bleu = sacrebleu_score(list(outputs), list(references), target_lang=target_lang)
        chrf = chrf_score(list(outputs), list(references)).score
        parts = [bleu.signature, f"chrF2 {chrf:.2f}", bleu.note]
        return MetricResult(bleu.score, "; ".join(filter(None, parts)), chrf)

    compare = partial(compare_bleu, target_lang=target_lang)
    return Metric("bleu", "BLEU", score, compare, "t2t-bleu", ("translation", "reference"), target_lang)


def _f1(outputs: Sequence[str], references: Sequence[str]) -> MetricResult:
    from t2t_revival.evaluation.parseval import score_corpus
    from t2t_revival.parsing.trees import parse, parse_output

    counts = score_corpus(map(parse, references), map(parse_output, outputs)).overall
    errors = f"; without a tree, not counted: {counts.errors}" if counts.errors else ""
    return MetricResult(
        counts.f1,
        f"precision {counts.precision:.2f}, recall {counts.recall:.2f}, "
        f"exact match {counts.exact_match:.2f}, by EVALB's rules and COLLINS.prm{errors}",
    )


F1 = Metric("f1", "F1", _f1, compare_f1, "t2t-parseval", ("predicted", "gold"))


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
) -> tuple[list[str], MetricResult | None]:
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
        The best output of each input, and BLEU or F1; `None` where the problem has no such metric, or there
        are no pairs.

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
    return outputs, result

"""Table 3 of the paper, variations of the base model, and the findings of section 6.2."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.metrics import metric
from t2t_revival.metrics.metric import Compared
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV
from t2t_revival.reproduction.runs import TRANSLATION, Runs, dev_perplexity
from t2t_revival.visualization.result_table import Cell, ResultTable, draw_dots

BASE, BIG = "base", "big"
LIKE_BASE = 65.0  # millions of parameters, where the paper leaves the cell empty
ABOUT_EQUAL = 0.5  # BLEU
HOLDS, UNDECIDED, FAILS = "holds", "not decided", "does not hold"


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's table; BLEU and perplexity, per subword, are of newstest2013."""

    group: str  # "A" to "E", or empty
    difference: str  # from the base model
    perplexity: float
    bleu: float
    parameters: float = LIKE_BASE  # in millions


ROWS = {
    BASE: PaperRow("", "", 4.92, 25.8),
    "table3_a_h1": PaperRow("A", "h = 1", 5.29, 24.9),
    "table3_a_h4": PaperRow("A", "h = 4", 5.00, 25.5),
    "table3_a_h16": PaperRow("A", "h = 16", 4.91, 25.8),
    "table3_a_h32": PaperRow("A", "h = 32", 5.01, 25.4),
    "table3_b_dk16": PaperRow("B", "d_k = 16", 5.16, 25.1, 58),
    "table3_b_dk32": PaperRow("B", "d_k = 32", 5.01, 25.4, 60),
    "table3_c_n2": PaperRow("C", "N = 2", 6.11, 23.7, 36),
    "table3_c_n4": PaperRow("C", "N = 4", 5.19, 25.3, 50),
    "table3_c_n8": PaperRow("C", "N = 8", 4.88, 25.5, 80),
    "table3_c_d256": PaperRow("C", "d_model = 256", 5.75, 24.5, 28),
    "table3_c_d1024": PaperRow("C", "d_model = 1024", 4.66, 26.0, 168),
    "table3_c_ff1024": PaperRow("C", "d_ff = 1024", 5.12, 25.4, 53),
    "table3_c_ff4096": PaperRow("C", "d_ff = 4096", 4.75, 26.2, 90),
    "table3_d_drop0": PaperRow("D", "P_drop = 0.0", 5.77, 24.6),
    "table3_d_drop2": PaperRow("D", "P_drop = 0.2", 4.95, 25.5),
    "table3_d_ls0": PaperRow("D", "e_ls = 0.0", 4.67, 25.3),
    "table3_d_ls2": PaperRow("D", "e_ls = 0.2", 5.47, 25.7),
    "table3_e_learned": PaperRow("E", "learned positions", 4.92, 25.7),
    BIG: PaperRow("", "big", 4.33, 26.4, 213),
}
COLUMNS = (
    *("row", "paper's model", "trained as", "parameters (M), paper", "parameters (M)"),
    *("PPL, paper", "PPL", "BLEU, paper", "BLEU", "95% interval", "to base, paper", "to base", "p"),
)

VERDICT = "here it"  # the column of BLEU's verdict
FINDING_COLUMNS = (
    *("finding", "BLEU to base, paper", "BLEU to base", "p", VERDICT),
    *("PPL to base, paper", "PPL to base"),
)


@dataclass(frozen=True)
class Finding:
    """A statement of the paper about one row, an hparams set, and the base model."""

    text: str
    row: str
    direction: int  # sign of the BLEU difference from the base model; 0 stands for about equal


FINDINGS = (
    Finding("one head is worse than eight", "table3_a_h1", -1),
    Finding("too many heads are worse as well", "table3_a_h32", -1),
    Finding("a small d_k hurts", "table3_b_dk16", -1),
    Finding("fewer layers are worse", "table3_c_n2", -1),
    Finding("fewer channels are worse", "table3_c_d256", -1),
    Finding("more channels are better", "table3_c_d1024", 1),
    Finding("a narrower feed-forward network is worse", "table3_c_ff1024", -1),
    Finding("a wider feed-forward network is better", "table3_c_ff4096", 1),
    Finding("no dropout is worse", "table3_d_drop0", -1),
    Finding("no label smoothing is worse", "table3_d_ls0", -1),
    Finding("learned positions are about equal", "table3_e_learned", 0),
    Finding("the big model is better", "big", 1),
)


@dataclass(frozen=True)
class RowResult:
    """Measurements of a row."""

    parameters: int
    perplexity: float
    compared: Compared


def make_tables(
    runs: Runs, names: Sequence[str], on_message: Callable[[str], None]
) -> tuple[ResultTable, ResultTable]:
    """Trains and decodes the rows that are missing, and returns table 3 and the findings of section 6.2.

    As in the paper: beam search with the problem's options, and no averaging of checkpoints. An empty list
    stands for all `ROWS`; the base model and finished rows are always in the table.

    Raises:
        T2TError: a name is unknown; or see `Runs`.
    """
    for name in names:
        if name not in ROWS:
            raise T2TError(did_you_mean(name, ROWS, "row"))
    rows = [
        name
        for name in ROWS
        if not names or name in (BASE, *names) or runs.is_finished(name, TRANSLATION, DEV, average=False)
    ]
    runs.make_translation_data()
    output_dirs: dict[str, Path] = {}
    perplexities: dict[str, float] = {}
    outputs: dict[str, list[str]] = {}
    references: list[str] = []
    for number, name in enumerate(rows, 1):
        on_message(f"table 3, row {number} of {len(rows)}: {name}")
        output_dirs[name] = runs.train_translator(name)
        perplexities[name] = dev_perplexity(output_dirs[name])
        outputs[name], references = runs.decode(output_dirs[name], DEV, average=False).lines()
    on_message(f"comparing {len(rows)} rows by {metric.SAMPLES:,} resamplings")
    compared = metric.compare_bleu(outputs, references)
    results = {
        name: RowResult(_count_parameters(output_dir), perplexities[name], compared[name])
        for name, output_dir in output_dirs.items()
    }
    return _table(runs, results, len(references)), _findings(results)


def _table(runs: Runs, results: dict[str, RowResult], sentences: int) -> ResultTable:
    rows = [_cells(runs, name, results) for name in results]
    remarks = (
        runs.scale.description,
        f"BLEU and perplexity per subword of {sentences:,} dev sentences, beam search, no averaging; "
        "sacreBLEU, cased, 13a (the paper's: tokenised, newstest2013). 95% intervals and p (against base) by "
        f"paired bootstrap over sentences, {metric.SAMPLES:,} samples. Each row is a single training: "
        "the variance between trainings is not included.",
    )
    return ResultTable(
        "table3", "Table 3: variations of the Transformer", COLUMNS, rows, "\n\n".join(remarks).split("\n")
    )


def _cells(runs: Runs, name: str, results: dict[str, RowResult]) -> list[Cell]:
    row, paper, base = results[name], ROWS[name], results[BASE].compared.score
    bleu = row.compared.score
    return [
        f"({paper.group}) {name}" if paper.group else name,
        paper.difference,
        _difference(runs, name),
        f"{paper.parameters:g}",
        f"{row.parameters / 1e6:.2f}",
        f"{paper.perplexity:.2f}",
        f"{row.perplexity:.2f}",
        f"{paper.bleu:.1f}",
        f"{bleu:.2f}",
        f"± {row.compared.interval:.2f}",
        "" if name == BASE else f"{paper.bleu - ROWS[BASE].bleu:+.1f}",
        "" if name == BASE else f"{bleu - base:+.2f}",
        "" if row.compared.p is None else f"{row.compared.p:.3f}",
    ]


def _difference(runs: Runs, name: str) -> str:
    """Returns the fields in which the trained set differs from the trained base model."""
    base, row = (vars(runs.scale.adapt(registry.hparams(each))) for each in (BASE, name))
    if name == BASE:
        fields = ["num_hidden_layers", "hidden_size", "filter_size", "num_heads", "train_steps"]
    else:
        fields = [field for field in row if row[field] != base[field] and field != "average_checkpoints"]
    return ", ".join(f"{field} {row[field]}" for field in fields)


def verdict(finding: Finding, base: Compared, row: Compared) -> str:
    """Returns `HOLDS`, `UNDECIDED` or `FAILS`.

    A direction needs a significant difference of its sign; "about equal" a small difference.
    """
    difference = row.score - base.score
    if finding.direction == 0:
        return HOLDS if abs(difference) <= ABOUT_EQUAL else FAILS if row.significant else UNDECIDED
    if not row.significant:
        return UNDECIDED
    return HOLDS if difference * finding.direction > 0 else FAILS


def finding_rows(results: Mapping[str, RowResult]) -> list[list[Cell]]:
    """Returns a table row for each finding whose hparams set was measured."""
    base, paper_base = results[BASE], ROWS[BASE]
    rows: list[list[Cell]] = []
    for finding in FINDINGS:
        if finding.row not in results:
            continue
        row, paper = results[finding.row], ROWS[finding.row]
        rows.append(
            [
                finding.text,
                f"{paper.bleu - paper_base.bleu:+.1f}",
                f"{row.compared.score - base.compared.score:+.2f}",
                "" if row.compared.p is None else f"{row.compared.p:.3f}",
                verdict(finding, base.compared, row.compared),
                f"{paper.perplexity - paper_base.perplexity:+.2f}",
                f"{row.perplexity - base.perplexity:+.2f}",
            ]
        )
    return rows


def _findings(results: dict[str, RowResult]) -> ResultTable:
    rows = finding_rows(results)
    verdicts = [row[FINDING_COLUMNS.index(VERDICT)] for row in rows]
    remark = (
        f"{verdicts.count(HOLDS)} of {len(rows)} findings hold here, {verdicts.count(UNDECIDED)} are not "
        f"decided (p of {metric.LEVEL} or more, without correction for multiple tests). About equal is "
        f"a difference of at most {ABOUT_EQUAL} BLEU."
    )
    title = "What the paper found, and what holds here"
    return ResultTable("table3_findings", title, FINDING_COLUMNS, rows, [remark])


def _count_parameters(output_dir: Path) -> int:
    from t2t_revival.model import Transformer

    folder = ModelFolder(output_dir)
    hparams, vocabularies = folder.hparams, folder.vocabularies
    target_size = vocabularies.target_size
    return Transformer(hparams, vocabularies.inputs.size, target_vocab_size=target_size).count_params()


def draw(table: ResultTable, path: Path) -> None:
    """Draws each row's BLEU minus the base model's, in the paper and here, as PNG."""
    columns = (table.texts("row"), table.numbers("to base, paper"), table.numbers("to base"))
    points = [row for row in zip(*columns, strict=True) if not math.isnan(row[2])]
    draw_dots(path, table.title, "BLEU on dev, difference from the base model", points, zero_line=True)

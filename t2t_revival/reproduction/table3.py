"""Table 3 of the paper: variations of the base model, by parameters, perplexity and BLEU on dev."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.evaluation import significance
from t2t_revival.evaluation.significance import Compared
from t2t_revival.files import writing
from t2t_revival.problems.problem import DEV
from t2t_revival.reproduction import findings
from t2t_revival.reproduction.findings import Scores
from t2t_revival.reproduction.report import Cell, Table
from t2t_revival.reproduction.runs import TRANSLATION, Runs

BASE, BIG = "base", "big"
LIKE_BASE = 65.0  # millions of parameters, where the paper leaves the cell empty


@dataclass(frozen=True)
class Row:
    """A row of the paper's table.

    Attributes:
        group: "A" to "E", or empty.
        differs: in what it differs from the base model.
        perplexity: per subword, on newstest2013.
        bleu: the same.
        parameters: in millions.
    """

    group: str
    differs: str
    perplexity: float
    bleu: float
    parameters: float = LIKE_BASE


ROWS = {
    BASE: Row("", "", 4.92, 25.8),
    "table3_a_h1": Row("A", "h = 1", 5.29, 24.9),
    "table3_a_h4": Row("A", "h = 4", 5.00, 25.5),
    "table3_a_h16": Row("A", "h = 16", 4.91, 25.8),
    "table3_a_h32": Row("A", "h = 32", 5.01, 25.4),
    "table3_b_dk16": Row("B", "d_k = 16", 5.16, 25.1, 58),
    "table3_b_dk32": Row("B", "d_k = 32", 5.01, 25.4, 60),
    "table3_c_n2": Row("C", "N = 2", 6.11, 23.7, 36),
    "table3_c_n4": Row("C", "N = 4", 5.19, 25.3, 50),
    "table3_c_n8": Row("C", "N = 8", 4.88, 25.5, 80),
    "table3_c_d256": Row("C", "d_model = 256", 5.75, 24.5, 28),
    "table3_c_d1024": Row("C", "d_model = 1024", 4.66, 26.0, 168),
    "table3_c_ff1024": Row("C", "d_ff = 1024", 5.12, 25.4, 53),
    "table3_c_ff4096": Row("C", "d_ff = 4096", 4.75, 26.2, 90),
    "table3_d_drop0": Row("D", "P_drop = 0.0", 5.77, 24.6),
    "table3_d_drop2": Row("D", "P_drop = 0.2", 4.95, 25.5),
    "table3_d_ls0": Row("D", "e_ls = 0.0", 4.67, 25.3),
    "table3_d_ls2": Row("D", "e_ls = 0.2", 5.47, 25.7),
    "table3_e_learned": Row("E", "learned positions", 4.92, 25.7),
    BIG: Row("", "big", 4.33, 26.4, 213),
}
COLUMNS = (
    *("row", "paper's model", "trained as", "parameters (M), paper", "parameters (M)"),
    *("PPL, paper", "PPL", "BLEU, paper", "BLEU", "95% interval", "to base, paper", "to base", "p"),
)

VERDICT = "here it"  # of BLEU
FINDING_COLUMNS = (
    *("finding", "BLEU to base, paper", "BLEU to base", "p", VERDICT),
    *("PPL to base, paper", "PPL to base"),
)


@dataclass(frozen=True)
class Measured:
    """What was measured of a row."""

    parameters: int
    perplexity: float
    compared: Compared


def tables(runs: Runs, names: Sequence[str], say: Callable[[str], None]) -> tuple[Table, Table]:
    """Trains and decodes what is missing; gives table 3 and the findings of section 6.2.

    As in the paper: beam search with the problem's options, and no averaging of checkpoints.

    Args:
        runs: where, and how.
        names: of `ROWS`; none: all. The base model is always among them, and what is finished already.
        say: is told what comes next.

    Raises:
        T2TError: a name is unknown; or as `Runs`.
    """
    for name in names:
        if name not in ROWS:
            raise T2TError(did_you_mean(name, ROWS, "row"))
    wanted = [
        name
        for name in ROWS
        if not names or name in (BASE, *names) or runs.is_finished(name, TRANSLATION, DEV, average=False)
    ]
    runs.make_translations()
    places: dict[str, Path] = {}
    perplexities: dict[str, float] = {}
    outputs: dict[str, list[str]] = {}
    references: list[str] = []
    for number, name in enumerate(wanted, 1):
        say(f"table 3, row {number} of {len(wanted)}: {name}")
        places[name] = runs.translator(name)
        perplexities[name] = runs.perplexity(places[name])
        outputs[name], references = runs.outputs(places[name], DEV, average=False).lines()
    say(f"comparing {len(wanted)} rows by {significance.SAMPLES:,} resamplings")
    compared = significance.compare_bleu(outputs, references)
    measured = {
        name: Measured(_parameters(place), perplexities[name], compared[name])
        for name, place in places.items()
    }
    return _table(runs, measured, len(references)), _findings(measured)


def _table(runs: Runs, measured: dict[str, Measured], sentences: int) -> Table:
    rows = [_cells(runs, name, measured) for name in measured]
    remarks = (
        runs.scale.about,
        f"BLEU and perplexity per subword of {sentences:,} dev sentences, beam search, no averaging; "
        "sacreBLEU, cased, 13a (the paper's: tokenised, newstest2013). 95% intervals and p (against base) by "
        f"paired bootstrap over sentences, {significance.SAMPLES:,} samples; each row is one training, so "
        "that chance between trainings is not in them.",
    )
    return Table("table3", "Table 3: variations of the Transformer", COLUMNS, rows, _paragraphs(remarks))


def _cells(runs: Runs, name: str, measured: dict[str, Measured]) -> list[Cell]:
    row, paper, base = measured[name], ROWS[name], measured[BASE].compared.score
    bleu = row.compared.score
    return [
        f"({paper.group}) {name}" if paper.group else name,
        paper.differs,
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
    """In what the trained set differs from the trained base model."""
    base, row = (vars(runs.scale.adapted(registry.hparams(each))) for each in (BASE, name))
    shown = row if name == BASE else {field: row[field] for field in row if row[field] != base[field]}
    fields = ("num_hidden_layers", "hidden_size", "filter_size", "num_heads", "train_steps")
    if name == BASE:
        shown = {field: row[field] for field in fields}
    return ", ".join(f"{field} {value}" for field, value in shown.items() if field != "average_checkpoints")


def _findings(measured: dict[str, Measured]) -> Table:
    rows = findings.rows(
        {name: row.compared for name, row in measured.items()},
        {name: row.perplexity for name, row in measured.items()},
        BASE,
        {name: Scores(row.bleu, row.perplexity) for name, row in ROWS.items()},
    )
    verdicts = [row[FINDING_COLUMNS.index(VERDICT)] for row in rows]
    counts = [verdicts.count(word) for word in (findings.HOLDS, findings.UNDECIDED)]
    remarks = (
        f"{counts[0]} of {len(rows)} findings hold here, {counts[1]} are not decided "
        f"(p of {significance.LEVEL} or more, each test by itself). About equal: a difference of at most "
        f"{findings.ABOUT_EQUAL} BLEU.",
    )
    title = "What the paper found, and what holds here"
    return Table("table3_findings", title, FINDING_COLUMNS, rows, remarks)


def _paragraphs(remarks: Sequence[str]) -> list[str]:
    return "\n\n".join(remarks).split("\n")


def _parameters(place: Path) -> int:
    """How many numbers the model of an output_dir learns."""
    from t2t_revival.model import Transformer
    from t2t_revival.training.run import load_hparams, load_vocabulary

    return Transformer(load_hparams(place), load_vocabulary(place).size).count_params()


def draw(measured: Table, path: Path) -> None:
    """Draws each row's BLEU beside the base model's, in the paper and here, as PNG.

    Args:
        measured: of `tables`.
        path: of the picture.
    """
    from matplotlib.figure import Figure

    columns = (measured.texts("row"), measured.numbers("to base, paper"), measured.numbers("to base"))
    rows = [row for row in zip(*columns, strict=True) if not math.isnan(row[2])]
    figure = Figure(figsize=(8, 1.2 + 0.3 * len(rows)), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    places = range(len(rows))
    names, paper, here = ([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
    axes.axvline(0, color="#5c6670", linewidth=1)
    for place, one, other in zip(places, paper, here, strict=True):
        axes.plot([one, other], [place, place], color="#c8d0d8", linewidth=1.5, zorder=1)
    axes.scatter(paper, places, color="#7a9cc6", label="paper", zorder=2)
    axes.scatter(here, places, color="#c0562f", marker="s", label="here", zorder=2)
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.set_xlabel("BLEU on dev, difference from the base model")
    axes.set_title(measured.title)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)
    with writing(path) as file:
        figure.savefig(file, format="png")

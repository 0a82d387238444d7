"""Table 4 of the paper: F1 of parsers, by what they are trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from t2t_revival import registry
from t2t_revival.evaluation.decoded import measure_of
from t2t_revival.files import writing
from t2t_revival.reproduction.report import Cell, Table
from t2t_revival.reproduction.runs import Runs, text_problem

ALONE, SEMI = "parse_wsj", "parse_wsj_semi"
PAPER: Sequence[tuple[str, str, float, str | None]] = (  # F1 on section 23; the problem that is the row here
    ("Vinyals & Kaiser et al. (2014)", "WSJ only, discriminative", 88.3, None),
    ("Petrov et al. (2006)", "WSJ only, discriminative", 90.4, None),
    ("Zhu et al. (2013)", "WSJ only, discriminative", 90.4, None),
    ("Dyer et al. (2016)", "WSJ only, discriminative", 91.7, None),
    ("Transformer (4 layers)", "WSJ only, discriminative", 91.3, ALONE),
    ("Zhu et al. (2013)", "semi-supervised", 91.3, None),
    ("Huang & Harper (2009)", "semi-supervised", 91.3, None),
    ("McClosky et al. (2006)", "semi-supervised", 92.1, None),
    ("Vinyals & Kaiser et al. (2014)", "semi-supervised", 92.1, None),
    ("Transformer (4 layers)", "semi-supervised", 92.7, SEMI),
    ("Luong et al. (2015)", "multi-task", 93.0, None),
    ("Dyer et al. (2016)", "generative", 93.3, None),
)


def table(runs: Runs, auto_trees: str | None, gold_share: float | None, say: Callable[[str], None]) -> Table:
    """Trains and decodes what is missing; gives table 4.

    The mean of the last checkpoints decodes the test split, or dev where there is none.

    Args:
        runs: where, and how; its data source is a treebank.
        auto_trees: files of parsed text, for the semi-supervised row; None: it stays empty.
        gold_share: of the treebank in that row's training examples; None: each tree comes once.
        say: is told what comes next.

    Raises:
        T2TError: as `Runs`.
    """
    measured = {ALONE: _measured(runs, ALONE, say)}
    if auto_trees or registry.problem(SEMI).has_data(runs.data_dir):
        made_from: dict[str, object] = {"auto_trees": auto_trees, "gold_share": gold_share}
        if not auto_trees:  # what is there knows what it was made from
            made_from["data_source"] = None
        measured[SEMI] = _measured(runs, SEMI, say, **made_from)
    rows: list[list[Cell]] = []
    for parser, training, f1, problem in PAPER:
        found, how = measured.get(problem or "", (None, None))
        rows.append([parser, training, f"{f1:.1f}", found, how])
    remarks = [
        "The paper's F1 is of WSJ section 23. Here: sentences of all lengths, EVALB's rules, COLLINS.prm, "
        f"beam {runs.scale.parsing_beam}, mean of the last checkpoints."
    ]
    if SEMI not in measured:
        remarks += ["", "No semi-supervised parser: it needs --auto_trees, sentences that a parser parsed."]
    columns = ("parser", "training", "F1, paper", "F1", "of")
    return Table("table4", "Table 4: English constituency parsing", columns, rows, remarks)


def _measured(runs: Runs, name: str, say: Callable[[str], None], **flags: object) -> tuple[str, str]:
    """F1 of a problem's parser, and what it is of."""
    say(f"table 4: {name}")
    runs.make_data(name, **flags)
    hparams_set = runs.scale.parsing[name == SEMI]
    overrides = runs.scale.parsing_hparams
    hparams = registry.hparams(hparams_set, overrides)
    place = runs.trained(name, hparams_set, hparams_set, hparams, {"hparams": overrides} if overrides else {})
    measure = measure_of(text_problem(name))
    assert measure
    found = runs.outputs(place, runs.split(name), average=True, beam_size=runs.scale.parsing_beam)
    outputs, references = found.lines()
    score = measure.score(outputs, references).score
    return f"{score:.1f}", f"{hparams_set}, {len(references):,} sentences of {found.split}"


def draw(measured: Table, path: Path) -> None:
    """Draws the F1 of all parsers as PNG.

    Args:
        measured: of `table`.
        path: of the picture.
    """
    from matplotlib.figure import Figure

    names = [
        f"{parser}, {training}"
        for parser, training in zip(measured.texts("parser"), measured.texts("training"), strict=True)
    ]
    here = measured.numbers("F1")
    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    places = range(len(names))
    axes.scatter(measured.numbers("F1, paper"), places, color="#7a9cc6", label="paper, WSJ section 23")
    axes.scatter(here, places, color="#c0562f", marker="s", label="here")
    axes.set_yticks(list(places), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("F1")
    axes.set_title(measured.title)
    axes.grid(alpha=0.3)
    figure.legend(frameon=False, loc="outside lower center", ncols=2)
    with writing(path) as file:
        figure.savefig(file, format="png")

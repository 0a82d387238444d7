"""Table 4 of the paper: F1 of parsers, by what they are trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from t2t_revival import registry
from t2t_revival.evaluation.decoded import score_outputs
from t2t_revival.reproduction.runs import Runs
from t2t_revival.visualization.result_table import Cell, ResultTable, draw_dots

ALONE, SEMI = "parse_wsj", "parse_wsj_semi"
PAPER: Sequence[tuple[str, str, float, str | None]] = (  # F1 on section 23, and the problem trained here
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


def make_table(
    runs: Runs, auto_trees: str | None, gold_share: float | None, on_message: Callable[[str], None]
) -> ResultTable:
    """Trains and decodes the parsers that are missing, and returns table 4.

    The average of the last checkpoints decodes the test split, or dev where there is none. Raises as `Runs`.

    Args:
        runs: the trainings; their data source is a treebank.
        auto_trees: automatically parsed text for the semi-supervised row. With `None` that row stays empty
            unless its data exists.
        gold_share: the treebank's share of that row's training examples. With `None` each tree is used once.
        on_message: called with each line of progress.
    """
    scores = {ALONE: _train_and_score(runs, ALONE, on_message)}
    if auto_trees or registry.problem(SEMI).has_data(runs.data_dir):
        sources: dict[str, object] = {"auto_trees": auto_trees, "gold_share": gold_share}
        if not auto_trees:  # existing data has a record of its source
            sources["data_source"] = None
        scores[SEMI] = _train_and_score(runs, SEMI, on_message, **sources)
    rows: list[list[Cell]] = [
        [parser, training, f"{f1:.1f}", *scores.get(problem or "", (None, None))]
        for parser, training, f1, problem in PAPER
    ]
    remarks = [
        "The paper's F1 is of WSJ section 23. Here: sentences of all lengths, EVALB's rules, COLLINS.prm, "
        f"beam {runs.scale.parsing_beam}, average of the last checkpoints."
    ]
    if SEMI not in scores:
        remarks += ["", "No semi-supervised parser: it needs automatically parsed text, --auto_trees."]
    columns = ("parser", "training", "F1, paper", "F1", "of")
    return ResultTable("table4", "Table 4: English constituency parsing", columns, rows, remarks)


def _train_and_score(
    runs: Runs, name: str, on_message: Callable[[str], None], **flags: object
) -> tuple[str, str]:
    """Returns the F1 of a problem's parser, and a description of model and test set."""
    on_message(f"table 4: {name}")
    runs.make_data(name, **flags)
    hparams_set = runs.scale.parsing[name == SEMI]
    overrides = runs.scale.parsing_hparams
    hparams = registry.hparams(hparams_set, overrides)
    trainer_flags = {"hparams": overrides} if overrides else {}
    output_dir = runs.train(name, hparams_set, hparams_set, hparams, trainer_flags)
    split = runs.test_split(name)
    decoded = runs.decode(output_dir, split, average=True, beam_size=runs.scale.parsing_beam)
    outputs, references = decoded.lines()
    problem = registry.problem(name)
    (score,) = score_outputs(problem, outputs, references, problem.target_lang).values()
    return f"{score.score:.1f}", f"{hparams_set}, {len(references):,} sentences of {split}"


def draw(table: ResultTable, path: Path) -> None:
    """Draws the F1 of all parsers as PNG."""
    names = map(", ".join, zip(table.texts("parser"), table.texts("training"), strict=True))
    points = list(zip(names, table.numbers("F1, paper"), table.numbers("F1"), strict=True))
    draw_dots(path, table.title, "F1", points, paper_label="paper, WSJ section 23")

"""Table 2 of the paper: what is trained for it; `training_costs` counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.reproduction.report import Table
from t2t_revival.reproduction.runs import Runs, text_problem

MODELS = ("base", "big")
PROBLEMS = ("translate_ende", "translate_enfr")
CHANGES = {("translate_enfr", "big"): "layer_prepostprocess_dropout=0.1"}  # section 6.1


def table(runs: Runs, problems: Sequence[str], models: Sequence[str], say: Callable[[str], None]) -> Table:
    """Trains, averages and decodes what is missing; gives table 2.

    As in the paper, the mean of the last checkpoints decodes the test split; dev, where there is none.

    Args:
        runs: where, and how.
        problems: of `PROBLEMS`; none: all.
        models: of `MODELS`; none: all. What is finished already is in the table besides.
        say: is told what comes next.

    Raises:
        T2TError: a name is unknown; or as `Runs`.
    """
    for kind, names, known in (("problem", problems, PROBLEMS), ("model", models, MODELS)):
        for name in names:
            if name not in known:
                raise T2TError(did_you_mean(name, known, kind))
    for name in problems or PROBLEMS:
        runs.make_translations(name)
    trained = []
    named = set(product(problems or PROBLEMS, models or MODELS))
    for name, model in product(PROBLEMS, MODELS):
        if (name, model) not in named and not _is_finished(runs, name, model):
            continue
        say(f"table 2: {name}, {model}")
        place = runs.translator(model, name, CHANGES.get((name, model), ""))
        trained.append((place, runs.outputs(place, runs.split(name), average=True)))
    from t2t_revival.reproduction import training_costs

    return training_costs.table(runs.folder, runs.scale.name, trained, say)


def _is_finished(runs: Runs, problem: str, model: str) -> bool:
    if not text_problem(problem).has_data(runs.data_dir):
        return False
    changes = CHANGES.get((problem, model), "")
    return runs.is_finished(model, problem, runs.split(problem), average=True, changes=changes)

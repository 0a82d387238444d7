"""`t2t-reproduce`: makes the paper's tables and figures again."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common
from t2t_revival.cli.commands import run_command
from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.reproduction.report import Table
    from t2t_revival.reproduction.runs import Runs

Maker = Callable[["Runs", flags.FlagValues], None]
PAIRS = "a folder with train.en train.de dev.en dev.de, or sample"
USAGE = """
t2t-reproduce --table=3 --scale=cpu --data_source=FOLDER [--output_dir=DIR]
t2t-reproduce --table=1|2|3|4 --figure=3|4|5 [--scale=paper|cpu]

Runs what a table or figure of the paper needs and is not there yet, by this project's other commands, which
are shown; then writes it beside the paper's own numbers: Markdown, CSV and PNG, in output_dir. Ctrl-C saves
and stops; the same command goes on, and what is finished is kept.

--scale=paper trains the paper's models on WMT14, which takes days on several GPUs; --scale=cpu trains
models of the same proportions, each in minutes on two CPU cores.
"""


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    flags.DEFINE_list("table", [], "Tables of the paper, such as 1,3.", flag_values=values)
    flags.DEFINE_list("figure", [], "Figures of the paper, such as 3,4,5.", flag_values=values)
    flags.DEFINE_enum("scale", "paper", ["paper", "cpu"], "How large the models are.", flag_values=values)
    for name, text in (
        (
            "data_source",
            "Where sentence pairs (table 4: trees) come from: wmt14, tfds:NAME/CONFIG, sample or a folder; "
            "by default wmt14 at --scale=paper.",
        ),
        ("output_dir", "Where all goes; by default ~/t2t_train/reproduce/SCALE."),
        ("auto_trees", "Table 4: sentences that a parser parsed, for the semi-supervised row."),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_float(
        "gold_share", None, "Table 4: as of t2t-trainer, beside --auto_trees.", flag_values=values
    )
    flags.DEFINE_list(
        "rows",
        [],
        "Table 3: only these rows and base, such as table3_a_h1,big. Table 2: only base, or big.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "problems", [], "Table 2: translate_ende, translate_enfr or, by default, both.", flag_values=values
    )
    flags.DEFINE_bool(
        "run", True, "Train what is missing; with --norun, missing runs are an error.", flag_values=values
    )
    flags.DEFINE_enum(
        "precision", None, ["float32", "mixed_bfloat16"], "Of the trainings, as of t2t-trainer.",
        flag_values=values,
    )  # fmt: skip
    flags.DEFINE_enum(
        "strategy", None, ["auto", "default", "mirrored"], "Of the trainings, as of t2t-trainer.",
        flag_values=values,
    )  # fmt: skip
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-reproduce`."""
    return common.run(command_flags(), USAGE, _reproduce, argv)


def _reproduce(values: flags.FlagValues) -> None:
    from t2t_revival.reproduction.runs import Runs
    from t2t_revival.reproduction.scales import SCALES

    wanted = [f"table {number}" for number in values.table]
    wanted += [f"figure {number}" for number in values.figure]
    if not wanted:
        raise T2TError("say what is to be made: --table=1, 2, 3 or 4, or --figure=3, 4 or 5")
    for what in wanted:
        if what not in MAKERS:
            raise T2TError(f"there is no {what} to be made: there are {', '.join(MAKERS)}")
    scale = SCALES[values.scale]
    folder = Path(values.output_dir or f"~/t2t_train/reproduce/{scale.name}").expanduser()
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise T2TError(f"cannot write to {folder}: {place} is no folder that you may write to")
    common.load_tensorflow(values)
    chosen = {flag: values[flag].value for flag in ("precision", "strategy") if values[flag].value}
    runs = Runs(
        folder, scale, run_command, values.data_source or scale.data_source, chosen, training=values.run
    )
    for what in wanted:
        say(f"{what}, scale {scale.name}, in {folder}")
        MAKERS[what](runs, values)


def _table1(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import layer_costs

    _show(runs.folder, layer_costs.table(runs.folder, runs.scale.name, say))
    for picture in layer_costs.draw(runs.folder, runs.scale.name):
        print(f"picture  {picture}")


def _table2(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table2

    for problem in values.problems or table2.PROBLEMS:
        _check_source(runs, problem, PAIRS)
    _show(runs.folder, table2.table(runs, values.problems, values.rows, say))


def _table3(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table3
    from t2t_revival.reproduction.runs import TRANSLATION

    _check_source(runs, TRANSLATION, PAIRS)
    table, found = table3.tables(runs, values.rows, say)
    picture = runs.folder / "table3.png"
    _show(runs.folder, table, found)
    table3.draw(table, picture)
    print(f"picture  {picture}")


def _table4(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table4

    runs = dataclasses.replace(runs, data_source=values.data_source)
    _check_source(runs, table4.ALONE, "a treebank's folder, or sample")
    _show(runs.folder, table4.table(runs, values.auto_trees, values.gold_share, say))


def _figure(number: int) -> Maker:
    def draw(runs: Runs, values: flags.FlagValues) -> None:
        from t2t_revival.reproduction import figures
        from t2t_revival.reproduction.runs import TRANSLATION

        _check_source(runs, TRANSLATION, PAIRS)
        makers = {3: figures.figure3, 4: figures.figure4, 5: figures.figure5}
        picture, page = makers[number](runs, say)
        print(f"picture  {picture}\npage     {page}")

    return draw


def _check_source(runs: Runs, problem: str, wanted: str) -> None:
    """A source must be named once: what is made knows it from then on."""
    if runs.data_source is None and not registry.problem(problem).has_data(runs.data_dir):
        raise T2TError(f"--data_source is missing: {wanted}")


def _show(folder: Path, *tables: Table) -> None:
    """Prints tables, and writes them."""
    for table in tables:
        print(table.markdown())
    for table in tables:
        text, data = table.write(folder)
        print(f"table    {text}\ndata     {data}")


MAKERS: dict[str, Maker] = {
    "table 1": _table1,
    "table 2": _table2,
    "table 3": _table3,
    "table 4": _table4,
    **{f"figure {number}": _figure(number) for number in (3, 4, 5)},
}


if __name__ == "__main__":
    sys.exit(main())

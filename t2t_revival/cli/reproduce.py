"""`t2t-reproduce`: makes the paper's tables and figures again."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import checked_json, registry
from t2t_revival.cli import common
from t2t_revival.cli.commands import run_command
from t2t_revival.cli.lines import say
from t2t_revival.errors import T2TError, did_you_mean

if TYPE_CHECKING:
    from t2t_revival.reproduction.report import Table
    from t2t_revival.reproduction.runs import Runs

Maker = Callable[["Runs", flags.FlagValues], None]
SETTINGS = "settings.json"  # of all trainings of a folder
USAGE = """
t2t-reproduce --table=3 --scale=cpu --data_source=FOLDER [--output_dir=DIR]
t2t-reproduce --table=1|2|3|4 --figure=3|4|5 [--scale=paper|cpu]

Runs what a table or figure of the paper needs and is not there yet, by this project's other commands, which
are shown; then writes it beside the paper's own numbers: Markdown, CSV and PNG, in output_dir. Ctrl-C saves
and stops; the same command goes on, and what is finished is kept.

--scale=paper trains the paper's models on WMT14, which takes days on several GPUs; --scale=cpu trains
models of the same proportions, each in minutes on two CPU cores.
"""
PAIRS = "a folder with train.en train.de dev.en dev.de (and .fr for French), or sample"
TREES = "a treebank's folder, or sample"
OWN_FLAGS = {  # of some tables only
    "problems": ("table 2",),
    "models": ("table 2",),
    "rows": ("table 3",),
    "treebank": ("table 4",),
    "auto_trees": ("table 4",),
    "gold_share": ("table 4",),
}


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    for name, text in (
        ("table", "Tables of the paper, such as 1,3."),
        ("figure", "Figures of the paper, such as 3,4,5."),
        ("problems", "Table 2: translate_ende, translate_enfr or, by default, both; what is finished stays."),
        ("models", "Table 2: base, big or, by default, both; what is finished stays."),
        ("rows", "Table 3: these rows, base and what is finished only; such as table3_a_h1,big."),
    ):
        flags.DEFINE_list(name, [], text, flag_values=values)
    for name, text in (
        (
            "data_source",
            "Where sentence pairs come from: wmt14, tfds:NAME/CONFIG, sample or a folder; by default wmt14, "
            "where --scale=paper.",
        ),
        ("treebank", "Table 4: where trees come from, as --data_source of t2t-trainer --problem=parse_wsj."),
        ("auto_trees", "Table 4: sentences that a parser parsed, for the semi-supervised row."),
        ("output_dir", "Where all goes; by default ~/t2t_train/reproduce/SCALE."),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_float(
        "gold_share", None, "Table 4: as of t2t-trainer, beside --auto_trees.", flag_values=values
    )
    flags.DEFINE_bool(
        "run", True, "Train what is missing; with --norun, missing runs are an error.", flag_values=values
    )
    for name, known, text in (
        ("scale", ["paper", "cpu"], "How large the models are."),
        ("precision", ["float32", "mixed_bfloat16", "mixed_float16"], "Of the trainings."),
        ("strategy", ["auto", "default", "mirrored"], "Of the trainings, as of t2t-trainer."),
    ):
        default = "paper" if name == "scale" else None
        flags.DEFINE_enum(name, default, known, text, flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Entry point of `t2t-reproduce`."""
    return common.run(command_flags(), USAGE, _reproduce, argv)


def _reproduce(values: flags.FlagValues) -> None:
    from t2t_revival.reproduction.runs import Runs
    from t2t_revival.reproduction.scales import SCALES

    wanted = [f"table {number}" for number in values.table]
    wanted += [f"figure {number}" for number in values.figure]
    _check_flags(values, wanted)
    scale = SCALES[values.scale]
    folder = Path(values.output_dir or f"~/t2t_train/reproduce/{scale.name}").expanduser()
    _check_folder(folder)
    common.load_tensorflow(values)
    _share_gpus()
    precision = _precision(values, folder)
    trainer_flags = {"precision": precision, "strategy": values.strategy}
    source = values.data_source or scale.data_source
    runs = Runs(folder, scale, run_command, source, trainer_flags, training=values.run)
    for what in wanted:
        _check_sources(runs, values, what)
    if values.run:
        folder.mkdir(parents=True, exist_ok=True)
        checked_json.save(folder / SETTINGS, {"precision": precision})
    for what in wanted:
        say(f"{what}, scale {scale.name}, in {folder}")
        MAKERS[what](runs, values)


def _check_flags(values: flags.FlagValues, wanted: list[str]) -> None:
    if not wanted:
        raise T2TError("say what is to be made: --table=1, 2, 3 or 4, or --figure=3, 4 or 5")
    for what in wanted:
        if what not in MAKERS:
            raise T2TError(f"there is no {what} to be made: there are {', '.join(MAKERS)}")
    for flag, tables in OWN_FLAGS.items():
        if values[flag].value and not set(tables) & set(wanted):
            raise T2TError(f"--{flag} is for {tables[0]} only, and that is not asked for")
    if values.gold_share and not values.auto_trees:
        raise T2TError("--gold_share is the treebank's share beside --auto_trees: give these too")
    from t2t_revival.reproduction import table2, table3

    for flag, known in (("problems", table2.PROBLEMS), ("models", table2.MODELS), ("rows", table3.ROWS)):
        for name in values[flag].value:
            if name not in known:
                raise T2TError(did_you_mean(name, known, flag.removesuffix("s")))


def _check_folder(folder: Path) -> None:
    place = next(parent for parent in (folder, *folder.absolute().parents) if parent.exists())
    if not place.is_dir() or not os.access(place, os.W_OK):
        raise T2TError(f"cannot write to {folder}: {place} is no folder that you may write to")


def _share_gpus() -> None:
    """Has this process take of the GPUs what it needs only: trainings run beside it."""
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


def _precision(values: flags.FlagValues, folder: Path) -> str | None:
    """That of all trainings of a folder, so that rows of one table have the same.

    Raises:
        T2TError: what is there was begun with another one.
    """
    path = folder / SETTINGS
    kept = checked_json.load(path, "put a copy back") if path.exists() else {}
    precision = values.precision or kept.get("precision")
    if kept and kept.get("precision") != precision:
        was = kept.get("precision") or "float32"
        raise T2TError(f"{folder} was begun with --precision={was}: give that, or another --output_dir")
    return precision


def _check_sources(runs: Runs, values: flags.FlagValues, what: str) -> None:
    """A source must be named once: what is made knows it from then on."""
    from t2t_revival.reproduction import table2, table4
    from t2t_revival.reproduction.runs import TRANSLATION

    if what == "table 1" or not runs.training:
        return
    if what == "table 4":
        needed = [(table4.ALONE, "treebank", values.treebank, TREES)]
    else:
        problems = values.problems or table2.PROBLEMS if what == "table 2" else [TRANSLATION]
        needed = [(problem, "data_source", runs.data_source, PAIRS) for problem in problems]
    for problem, flag, source, wanted in needed:
        if source is None and not registry.problem(problem).has_data(runs.data_dir):
            raise T2TError(f"--{flag} is missing: {wanted}")


def _table1(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import layer_costs

    _show(runs.folder, layer_costs.table(runs.folder, runs.scale.name, say, runs.training))
    for picture in layer_costs.draw(runs.folder, runs.scale.name):
        print(f"picture  {picture}")


def _table2(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table2, training_costs

    table = table2.table(runs, values.problems, values.models, say)
    _show(runs.folder, table)
    _draw(training_costs.draw, table, runs)


def _table3(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table3

    table, found = table3.tables(runs, values.rows, say)
    _show(runs.folder, table, *([found] if found.rows else []))
    _draw(table3.draw, table, runs)


def _table4(runs: Runs, values: flags.FlagValues) -> None:
    from t2t_revival.reproduction import table4

    of_trees = dataclasses.replace(runs, data_source=values.treebank)
    table = table4.table(of_trees, values.auto_trees, values.gold_share, say)
    _show(runs.folder, table)
    _draw(table4.draw, table, runs)


def _figure(number: int) -> Maker:
    def draw(runs: Runs, values: flags.FlagValues) -> None:
        from t2t_revival.reproduction import figures

        makers = {3: figures.figure3, 4: figures.figure4, 5: figures.figure5}
        picture, page = makers[number](runs, say)
        print(f"picture  {picture}\npage     {page}")

    return draw


def _show(folder: Path, *tables: Table) -> None:
    """Prints tables, and writes them."""
    for table in tables:
        print(table.markdown())
    for table in tables:
        text, data = table.write(folder)
        print(f"table    {text}\ndata     {data}")


def _draw(draw: Callable[[Table, Path], None], table: Table, runs: Runs) -> None:
    picture = runs.folder / f"{table.name}.png"
    draw(table, picture)
    print(f"picture  {picture}")


MAKERS: dict[str, Maker] = {
    "table 1": _table1,
    "table 2": _table2,
    "table 3": _table3,
    "table 4": _table4,
    **{f"figure {number}": _figure(number) for number in (3, 4, 5)},
}


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-reproduce`: reproduces the paper's tables and figures."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command, tensorflow_setup
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.subcommand import run_command
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.reproduction import figures, table2, table3, table4
from t2t_revival.reproduction.result_table import ResultTable
from t2t_revival.reproduction.runs import TRANSLATION, Runs
from t2t_revival.reproduction.scales import SCALES
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import check_writable

Maker = Callable[[Runs, flags.FlagValues], None]
SETTINGS = "settings.json"  # of all trainings of a folder
USAGE = """
t2t-reproduce --table=3 --scale=cpu --data_source=FOLDER [--output_dir=DIR]
t2t-reproduce --table=1|2|3|4 --figure=3|4|5 [--scale=paper|cpu]

Trains the missing models of a table or figure by this project's other commands, which are printed, and writes
the results beside the paper's own numbers: Markdown, CSV and PNG, in output_dir. Ctrl-C saves and stops; the
same command resumes, and finished models are kept.

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
    """Defines the flags of t2t-reproduce."""
    values = command.new_flags()
    command.define(
        values,
        [],
        table="Tables of the paper, such as 1,3.",
        figure="Figures of the paper, such as 3,4,5.",
        problems="Table 2: translate_ende, translate_enfr or, by default, both; finished rows stay.",
        models="Table 2: base, big or, by default, both; finished rows stay.",
        rows="Table 3: rows to train besides base, such as table3_a_h1,big; finished rows stay.",
    )
    command.define(
        values,
        None,
        data_source="Source of sentence pairs: wmt14, tfds:NAME/CONFIG, hf:OWNER/NAME/CONFIG, sample or a "
        "folder; by default wmt14 with --scale=paper.",
        treebank="Table 4: source of trees, as --data_source of t2t-trainer --problem=parse_wsj.",
        auto_trees="Table 4: automatically parsed sentences, for the semi-supervised row.",
        output_dir="Folder for models and results; by default ~/t2t_train/reproduce/SCALE.",
    )
    flags.DEFINE_float(
        "gold_share", None, "Table 4: --gold_share of t2t-trainer, beside --auto_trees.", flag_values=values
    )
    command.define(values, True, run="Train missing models; with --norun they are an error.")
    for name, known, text in (
        ("scale", ["paper", "cpu"], "Size of the models."),
        ("precision", ["float32", "mixed_bfloat16", "mixed_float16"], "Precision of the trainings."),
        ("strategy", ["auto", "default", "mirrored"], "Strategy of the trainings, as of t2t-trainer."),
    ):
        default = "paper" if name == "scale" else None
        flags.DEFINE_enum(name, default, known, text, flag_values=values)
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _reproduce, argv)


def _reproduce(values: flags.FlagValues) -> None:
    wanted = [f"table {number}" for number in values.table]
    wanted += [f"figure {number}" for number in values.figure]
    _check_flags(values, wanted)
    scale = SCALES[values.scale]
    folder = Path(values.output_dir or f"~/t2t_train/reproduce/{scale.name}").expanduser()
    check_writable(folder)
    tensorflow_setup.load_tensorflow_alone(values)
    _share_gpus()
    precision = _precision(values, folder)
    trainer_flags = {"precision": precision, "strategy": values.strategy}
    source = values.data_source or scale.data_source
    runs = Runs(folder, scale, run_command, source, trainer_flags, train_missing=values.run)
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
        raise T2TError("no table or figure is named: give --table=1, 2, 3 or 4, or --figure=3, 4 or 5")
    for what in wanted:
        if what not in MAKERS:
            raise T2TError(f"{what} cannot be reproduced: give one of {', '.join(MAKERS)}")
    for flag, tables in OWN_FLAGS.items():
        if values[flag].value and not set(tables) & set(wanted):
            raise T2TError(f"--{flag} is for {tables[0]} only: give --table={tables[0][-1]} too")
    if values.gold_share and not values.auto_trees:
        raise T2TError("--gold_share needs --auto_trees: it is the treebank's share of the training examples")
    for flag, known in (("problems", table2.PROBLEMS), ("models", table2.MODELS), ("rows", table3.ROWS)):
        for name in values[flag].value:
            if name not in known:
                raise T2TError(did_you_mean(name, known, flag.removesuffix("s")))


def _share_gpus() -> None:
    """Limits this process to the GPU memory that it needs: trainings run beside it."""
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)


def _precision(values: flags.FlagValues, folder: Path) -> str | None:
    """Returns the precision of all trainings of a folder, which rows of one table share.

    Raises:
        T2TError: the folder's trainings were started with another one.
    """
    path = folder / SETTINGS
    kept = checked_json.load(path, "put a copy back") if path.exists() else {}
    precision = values.precision or kept.get("precision")
    if kept and kept.get("precision") != precision:
        was = kept.get("precision") or "float32"
        raise T2TError(f"{folder} was started with --precision={was}: give that, or another --output_dir")
    return precision


def _check_sources(runs: Runs, values: flags.FlagValues, what: str) -> None:
    """Checks that the sources of missing data are named; existing data knows its own."""
    if what == "table 1" or not runs.train_missing:
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
    from t2t_revival.reproduction.table1 import table as table1

    _show(runs.folder, table1.make_table(runs.folder, runs.scale.name, say, runs.train_missing))
    print(f"picture  {table1.draw(runs.folder, runs.scale.name)}")


def _table2(runs: Runs, values: flags.FlagValues) -> None:
    table = table2.make_table(runs, values.problems, values.models, say)
    _show(runs.folder, table)
    _draw(table2.draw, table, runs)


def _table3(runs: Runs, values: flags.FlagValues) -> None:
    table, found = table3.make_tables(runs, values.rows, say)
    _show(runs.folder, table, *([found] if found.rows else []))
    _draw(table3.draw, table, runs)


def _table4(runs: Runs, values: flags.FlagValues) -> None:
    of_trees = dataclasses.replace(runs, data_source=values.treebank)
    table = table4.make_table(of_trees, values.auto_trees, values.gold_share, say)
    _show(runs.folder, table)
    _draw(table4.draw, table, runs)


def _figure(number: int) -> Maker:
    def draw(runs: Runs, values: flags.FlagValues) -> None:
        makers = {3: figures.figure3, 4: figures.figure4, 5: figures.figure5}
        picture, page = makers[number](runs, say)
        print(f"picture  {picture}\npage     {page}")

    return draw


def _show(folder: Path, *tables: ResultTable) -> None:
    """Prints and writes tables."""
    for table in tables:
        print(table.markdown())
    for table in tables:
        text, data = table.write(folder)
        print(f"table    {text}\ndata     {data}")


def _draw(draw: Callable[[ResultTable, Path], None], table: ResultTable, runs: Runs) -> None:
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

"""`t2t-reproduce`: reproduces the paper's tables and figures.

t2t-reproduce --table=3 --scale=cpu --data_source=FOLDER [--output_dir=DIR]
t2t-reproduce --table=1|2|3|4 --figure=3|4|5 [--scale=paper|cpu]

Trains the missing models of a table or figure by this project's other commands, which are printed, and writes
the results beside the paper's own numbers: Markdown, CSV and PNG, in output_dir. Ctrl-C saves and stops; the
same command resumes, and finished models are kept.

--scale=paper trains the paper's models on WMT14, which takes days on several GPUs; --scale=cpu trains
models of the same proportions, each in minutes on two CPU cores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from t2t_revival import registry
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import Flags, flag
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.subcommand import run_command
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.reproduction import figures, table2, table3, table4
from t2t_revival.reproduction.runs import TRANSLATION, Runs
from t2t_revival.reproduction.scales import SCALES
from t2t_revival.utils import checked_json
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import check_writable
from t2t_revival.visualization.result_table import ResultTable

Maker = Callable[[Runs, "ReproduceFlags"], None]
SETTINGS = "settings.json"  # of all trainings of a folder
PAIRS = "a folder with train.en train.de dev.en dev.de (and .fr for French), or sample"
TREES = "a treebank's folder, or sample"
OWN_FLAGS = {  # of one table only
    "problems": "table 2",
    "models": "table 2",
    "rows": "table 3",
    "treebank": "table 4",
    "auto_trees": "table 4",
    "gold_share": "table 4",
}


@dataclass(frozen=True)
class ReproduceFlags(Flags):
    needs = (("gold_share", "auto_trees"),)
    table: tuple[str, ...] = flag((), "Tables of the paper, such as 1,3.")
    figure: tuple[str, ...] = flag((), "Figures of the paper, such as 3,4,5.")
    problems: tuple[str, ...] = flag(
        (), "Table 2: translate_ende, translate_enfr or, by default, both; finished rows stay."
    )
    models: tuple[str, ...] = flag((), "Table 2: base, big or, by default, both; finished rows stay.")
    rows: tuple[str, ...] = flag(
        (), "Table 3: rows to train besides base, such as table3_a_h1,big; finished rows stay."
    )
    data_source: str | None = flag(
        None,
        "Source of sentence pairs: wmt14, tfds:NAME/CONFIG, hf:OWNER/NAME/CONFIG, sample or a folder; by "
        "default wmt14 with --scale=paper.",
    )
    treebank: str | None = flag(
        None, "Table 4: source of trees, as --data_source of t2t-trainer --problem=parse_wsj."
    )
    auto_trees: str | None = flag(
        None, "Table 4: automatically parsed sentences, for the semi-supervised row."
    )
    output_dir: str = flag("", "Folder for models and results; by default ~/t2t_train/reproduce/SCALE.")
    gold_share: float | None = flag(
        None, "Table 4: --gold_share of t2t-trainer, beside --auto_trees.", least=None
    )
    run: bool = flag(True, "Train missing models; with --norun they are an error.")
    scale: str = flag("paper", "Size of the models.", choices=("paper", "cpu"))
    precision: str | None = flag(
        None, "Precision of the trainings.", choices=("float32", "mixed_bfloat16", "mixed_float16")
    )
    strategy: str | None = flag(
        None, "Strategy of the trainings, as of t2t-trainer.", choices=("auto", "default", "mirrored")
    )


def _reproduce(flags: ReproduceFlags) -> None:
    wanted = [f"table {number}" for number in flags.table]
    wanted += [f"figure {number}" for number in flags.figure]
    _check_flags(flags, wanted)
    scale = SCALES[flags.scale]
    folder = Path(flags.output_dir or f"~/t2t_train/reproduce/{scale.name}").expanduser()
    check_writable(folder)
    tensorflow_setup.load_tensorflow_alone()
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):  # whose memory trainings share
        tf.config.experimental.set_memory_growth(gpu, True)
    precision = _precision(flags, folder)
    trainer_flags = {"precision": precision, "strategy": flags.strategy}
    source = flags.data_source or scale.data_source
    runs = Runs(folder, scale, run_command, source, trainer_flags, train_missing=flags.run)
    for what in wanted:
        _check_sources(runs, flags, what)
    if flags.run:
        folder.mkdir(parents=True, exist_ok=True)
        checked_json.save(folder / SETTINGS, {"precision": precision})
    for what in wanted:
        say(f"{what}, scale {scale.name}, in {folder}")
        MAKERS[what](runs, flags)


def _check_flags(flags: ReproduceFlags, wanted: list[str]) -> None:
    require("matplotlib", "t2t-reproduce")
    if not wanted:
        raise T2TError("no table or figure is named: give --table=1, 2, 3 or 4, or --figure=3, 4 or 5")
    for what in wanted:
        if what not in MAKERS:
            raise T2TError(f"{what} cannot be reproduced: give one of {', '.join(MAKERS)}")
    for name, table in OWN_FLAGS.items():
        if flags.has(name) and table not in wanted:
            raise T2TError(f"--{name} is for {table} only: give --table={table[-1]} too")
    for names, known, kind in (
        (flags.problems, table2.PROBLEMS, "problem"),
        (flags.models, table2.MODELS, "model"),
        (flags.rows, table3.ROWS, "row"),
    ):
        for name in names:
            if name not in known:
                raise T2TError(did_you_mean(name, known, kind))


def _precision(flags: ReproduceFlags, folder: Path) -> str | None:
    """Returns the precision of all trainings of a folder, which rows of one table share.

    Raises:
        T2TError: the folder's trainings were started with another one.
    """
    path = folder / SETTINGS
    kept = checked_json.load(path, "put a copy back") if path.exists() else {}
    precision = flags.precision or kept.get("precision")
    if kept and kept.get("precision") != precision:
        was = kept.get("precision") or "float32"
        raise T2TError(f"{folder} was started with --precision={was}: give that, or another --output_dir")
    return precision


def _check_sources(runs: Runs, flags: ReproduceFlags, what: str) -> None:
    """Checks that the sources of missing data are named; existing data knows its own."""
    if what == "table 1" or not runs.train_missing:
        return
    if what == "table 4":
        needed = [(table4.ALONE, "treebank", flags.treebank, TREES)]
    else:
        problems = flags.problems or table2.PROBLEMS if what == "table 2" else [TRANSLATION]
        needed = [(problem, "data_source", runs.data_source, PAIRS) for problem in problems]
    for problem, name, source, wanted in needed:
        if source is None and not registry.problem(problem).has_data(runs.data_dir):
            raise T2TError(f"--{name} is missing: {wanted}")


def _table1(runs: Runs, flags: ReproduceFlags) -> None:
    from t2t_revival.reproduction import table1

    _show(runs, [table1.make_table(runs.folder, runs.scale.name, say, runs.train_missing)])


def _table3(runs: Runs, flags: ReproduceFlags) -> None:
    table, found = table3.make_tables(runs, flags.rows, say)
    _show(runs, [table, found] if found.rows else [table], table3.draw)


def _table4(runs: Runs, flags: ReproduceFlags) -> None:
    of_trees = dataclasses.replace(runs, data_source=flags.treebank)
    _show(runs, [table4.make_table(of_trees, flags.auto_trees, flags.gold_share, say)], table4.draw)


def _figure(draw: Callable[..., list[Path]], runs: Runs, flags: ReproduceFlags) -> None:
    picture, page = draw(runs, say)
    print(f"picture  {picture}\npage     {page}")


def _show(
    runs: Runs, tables: list[ResultTable], draw: Callable[[ResultTable, Path], None] | None = None
) -> None:
    """Prints and writes tables, and draws the first."""
    for table in tables:
        print(table.markdown())
    for table in tables:
        text, data = table.write(runs.folder)
        print(f"table    {text}\ndata     {data}")
    if draw:
        picture = runs.folder / f"{tables[0].name}.png"
        draw(tables[0], picture)
        print(f"picture  {picture}")


MAKERS: dict[str, Maker] = {
    "table 1": _table1,
    "table 2": lambda runs, flags: _show(
        runs, [table2.make_table(runs, flags.problems, flags.models, say)], table2.draw
    ),
    "table 3": _table3,
    "table 4": _table4,
    "figure 3": partial(_figure, figures.figure3),
    "figure 4": partial(_figure, figures.figure4),
    "figure 5": partial(_figure, figures.figure5),
}


main = Command(ReproduceFlags, _reproduce, __doc__)

"""Table 2 of the paper: BLEU, and training cost by the paper's rule and counted from the training graph."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from t2t_revival import registry
from t2t_revival.checkpoints.directory import Checkpoint, Unusable, ignored_checkpoint
from t2t_revival.checkpoints.file import load
from t2t_revival.checkpoints.selection import select_checkpoint, taking_next
from t2t_revival.curve_files import CsvTable
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.hparams import HParams
from t2t_revival.metrics.bleu import sacrebleu_score
from t2t_revival.model_folder import ModelFolder
from t2t_revival.reproduction.runs import Decoded, Runs
from t2t_revival.reproduction.training_flops import (
    counted_flops,
    device_name,
    flops_by_time,
    sustained_rate,
    training_flops,
)
from t2t_revival.training.state import Seen
from t2t_revival.utils.made_of import fingerprint
from t2t_revival.visualization import png_figure
from t2t_revival.visualization.result_table import Cell, ResultTable

OnMessage = Callable[[str], None]

MODELS = ("base", "big")
PROBLEMS = ("translate_ende", "translate_enfr")
CHANGES = {("translate_enfr", "big"): "layer_prepostprocess_dropout=0.1"}  # section 6.1
FILE_NAME = "training_costs.csv"
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}  # FLOP/s (footnote 5)
GPUS, GPU = 8, "P100"  # that base and big were trained on (section 5.2)
VOCABULARY = 37_000  # tokens (section 5.1)
BATCH = 25_000  # source tokens of an update, and as many target tokens (section 5.1)
SENTENCE = 25  # tokens; the paper does not state it. With 50, the count is 0.7% higher
MATRIX_SIZES = {"cpu": 2048, "paper": 8192}  # rows of the square matrices that measure a machine's rate
HERE = "here, counted"


@dataclass(frozen=True)
class System:
    """A row of the paper's table 2: BLEU on newstest2014, training costs in FLOPs.

    The paper's own models have an hparams set, and the hours of their training (sections 5.2, 6.1).
    """

    name: str
    ende: float | None = None
    enfr: float | None = None
    ende_cost: float | None = None
    enfr_cost: float | None = None
    hparams_set: str | None = None
    hours: float = 0.0


SYSTEMS = (
    System("ByteNet", 23.75),
    System("Deep-Att + PosUnk", None, 39.2, None, 1.0e20),
    System("GNMT + RL", 24.6, 39.92, 2.3e19, 1.4e20),
    System("ConvS2S", 25.16, 40.46, 9.6e18, 1.5e20),
    System("MoE", 26.03, 40.56, 2.0e19, 1.2e20),
    System("Deep-Att + PosUnk Ensemble", None, 40.4, None, 8.0e20),
    System("GNMT + RL Ensemble", 26.30, 41.16, 1.8e20, 1.1e21),
    System("ConvS2S Ensemble", 26.36, 41.29, 7.7e19, 1.2e21),
    System("Transformer (base model)", 27.3, 38.1, 3.3e18, 3.3e18, "base", 12.0),
    System("Transformer (big)", 28.4, 41.8, 2.3e19, 2.3e19, "big", 3.5 * 24),
)
COLUMNS = (
    *("system", "BLEU EN-DE (paper)", "BLEU EN-FR (paper)", "FLOPs EN-DE (paper)", "FLOPs EN-FR (paper)"),
    *("time x devices x rate", "counted from the graph", "rate used"),
    *("updates", "target tokens", "hours", "BLEU", "of split"),
)


class Kept:
    """Numbers by their descriptions in a CSV file, written as soon as they are computed.

    Numbers in corrupt lines are computed again.
    """

    def __init__(self, path: Path) -> None:
        self._table = CsvTable(path)
        self._values = dict(self._table.parse(lambda row: (row["what"], float(row["value"]))))

    def value(self, what: str, make: Callable[[], float]) -> float:
        """The number of that description, computed by `make` unless the file has it."""
        if what not in self._values:
            self._values[what] = float(make())
            self._table.path.parent.mkdir(parents=True, exist_ok=True)
            self._table.write({"what": name, "value": repr(value)} for name, value in self._values.items())
        return self._values[what]


def make_table(
    runs: Runs, problems: Sequence[str], models: Sequence[str], on_message: OnMessage
) -> ResultTable:
    """Trains, averages and decodes the runs that are missing, and returns table 2.

    As in the paper, the average of the last checkpoints decodes the test split (dev, where there is none).
    Empty lists stand for all `PROBLEMS` and `MODELS`; other finished runs are also in the table.

    Raises:
        T2TError: a name is unknown; or see `Runs`.
    """
    for kind, names, known in (("problem", problems, PROBLEMS), ("model", models, MODELS)):
        for name in names:
            if name not in known:
                raise T2TError(did_you_mean(name, known, kind))
    for name in problems or PROBLEMS:
        runs.make_translation_data(name)
    trained = []
    requested = set(product(problems or PROBLEMS, models or MODELS))
    for name, model in product(PROBLEMS, MODELS):
        if (name, model) not in requested and not _is_finished(runs, name, model):
            continue
        on_message(f"table 2: {name}, {model}")
        output_dir = runs.train_translator(model, name, CHANGES.get((name, model), ""))
        trained.append((output_dir, runs.decode(output_dir, runs.test_split(name), average=True)))
    return cost_table(runs.folder, runs.scale.name, trained, on_message)


def _is_finished(runs: Runs, problem: str, model: str) -> bool:
    if not registry.problem(problem).has_data(runs.data_dir):
        return False
    changes = CHANGES.get((problem, model), "")
    return runs.is_finished(model, problem, runs.test_split(problem), average=True, changes=changes)


def cost_table(
    folder: Path, scale: str, trained: Sequence[tuple[Path, Decoded]], on_message: OnMessage
) -> ResultTable:
    """Returns the paper's systems, its two models counted again, and the trainings of this machine.

    Args:
        folder: has the `training_costs.csv` that stores counts and measurements.
        scale: "cpu" or "paper", which decides the size of the matrices that measure the machine's rate.
        trained: output_dirs, and their outputs for a split.
        on_message: called with each line of progress.

    Raises:
        T2TError: there is no such scale, or no trained model in one of the output_dirs.
    """
    if scale not in MATRIX_SIZES:
        raise T2TError(did_you_mean(scale, MATRIX_SIZES, "scale"))
    kept = Kept(folder / FILE_NAME)
    rows = [_system_row(system, kept, on_message) for system in SYSTEMS]
    rate = None
    if trained:
        size = MATRIX_SIZES[scale]
        on_message(f"measuring this machine's speed with matrices of {size} x {size}")
        rate = kept.value(f"FLOP/s of {device_name()}, matrices of {size}", lambda: sustained_rate(size))
        rows += [_run_row(output_dir, decoded, rate, kept, on_message) for output_dir, decoded in trained]
    return ResultTable("table2", "Table 2: BLEU and training cost in FLOPs", COLUMNS, rows, _remarks(rate))


def _system_row(system: System, kept: Kept, on_message: OnMessage) -> list[Cell]:
    stated: list[Cell] = [system.name, system.ende, system.enfr, system.ende_cost, system.enfr_cost]
    if system.hparams_set is None:
        return [*stated, *[None] * (len(COLUMNS) - len(stated))]
    hparams = registry.hparams(system.hparams_set)
    on_message(f"counting the FLOPs of {system.hparams_set}")
    update = _counted(kept, hparams, VOCABULARY, SENTENCE, SENTENCE, BATCH // SENTENCE)
    by_time = flops_by_time(system.hours, GPUS, SUSTAINED[GPU])
    counted = update * hparams.train_steps
    length = [hparams.train_steps, hparams.train_steps * BATCH, system.hours]
    return [*stated, by_time, counted, counted / by_time, *length, None, None]


def _run_row(
    output_dir: Path, decoded: Decoded, rate: float, kept: Kept, on_message: OnMessage
) -> list[Cell]:
    folder = ModelFolder(output_dir)
    run, hparams = folder.run, folder.hparams

    def on_unusable(error: Unusable) -> None:
        on_message(ignored_checkpoint(error))

    def read() -> tuple[Checkpoint, Seen, int]:
        checkpoint = select_checkpoint(output_dir, on_damaged=on_unusable)
        return checkpoint, *_seen(checkpoint.path)

    checkpoint, seen, devices = taking_next(read, on_removed=on_unusable)
    on_message(f"{output_dir}: counting its FLOPs")
    counted = _flops_of_training(kept, hparams, folder.vocabularies.targets.size, seen)
    hours = seen.seconds / 3600
    by_time = flops_by_time(hours, devices, rate)
    name = f"{output_dir.name}: {run.problem}, {run.hparams_set}"
    length = [checkpoint.step, seen.target_tokens, hours]
    target_lang = registry.problem(run.problem).target_lang
    bleu = round(sacrebleu_score(*decoded.lines(), target_lang=target_lang).score, 2)
    return [name, *[None] * 4, by_time, counted, counted / by_time, *length, bleu, decoded.split]


def _seen(checkpoint: Path) -> tuple[Seen, int]:
    """Returns the data that a training consumed, and the devices of its last session."""
    _, meta = load(checkpoint, prefixes=())
    try:
        seen, replicas = Seen(**meta["seen"]), meta["replicas"]
    except (KeyError, TypeError) as error:
        raise T2TError(
            f"{checkpoint} has no record of its training data: t2t-trainer did not write it"
        ) from error
    if not seen.examples:
        raise T2TError(f"{checkpoint} is of step 0: train the model first")
    return seen, replicas


def _flops_of_training(kept: Kept, hparams: HParams, vocab_size: int, seen: Seen) -> float:
    """Counts a pair of rounded mean lengths, and scales the count by formula to all pairs."""
    means = seen.source_tokens / seen.examples, seen.target_tokens / seen.examples
    rounded = round(means[0]), round(means[1])
    per_pair = _counted(kept, hparams, vocab_size, *rounded)
    by_formula = [
        training_flops(hparams, vocab_size, [source], [target]) for source, target in (means, rounded)
    ]
    return per_pair * by_formula[0] / by_formula[1] * seen.examples


def _counted(
    kept: Kept, hparams: HParams, vocab_size: int, source: int, target: int, sentences: int = 1
) -> float:
    model = fingerprint(dataclasses.asdict(hparams))
    tokens = (vocab_size, source * sentences, target * sentences, sentences)
    return kept.value(
        f"FLOPs of hparams {model}, {tokens}",
        lambda: counted_flops(hparams, vocab_size, source, target, sentences),
    )


def _remarks(rate: float | None) -> list[str]:
    rates = ", ".join(f"{name} {flops / 1e12}" for name, flops in SUSTAINED.items())
    remarks = [
        "- Time x devices x rate is the paper's rule: training time, number of GPUs, and single-precision "
        f"TFLOP/s that one GPU sustains ({rates}). For base and big: {GPUS} {GPU}, 12 hours and 3.5 days "
        "(sections 5.2 and 6.1).",
        "- Counted: multiplications and additions of all matrix products of the training step, forward and "
        "backward, from the shapes in its graph, times updates. For base and big: updates of "
        f"{BATCH:,} source and {BATCH:,} target tokens and {VOCABULARY:,} subwords (section 5.1), in "
        f"sentences of {SENTENCE} tokens; the sentence length hardly matters.",
        "- Rate used: counted FLOPs divided by the rule's, the share of the devices' rate that the training "
        "used.",
        "- The paper's cost is one figure for both languages; its BLEU is of tokenised text.",
    ]
    if rate is None:
        return remarks
    return [
        *remarks,
        f"- Trained here: the rate is that of this machine ({device_name()}) as one device, "
        f"{rate / 1e12:.3g} TFLOP/s with float32 matrices. {FILE_NAME} stores it; if the machine "
        "was busy, remove its line to measure again. A training in lower precision, or on another machine, "
        "may exceed it.",
        "- Hours of these runs are the trainer's, with evaluations and checkpoints. Tokens exclude padding. "
        "FLOPs are counted for a pair of mean lengths.",
        "- BLEU of these runs is sacreBLEU's, cased, 13a, of the average of the last checkpoints; it is not "
        "comparable with the paper's.",
    ]


def draw(table: ResultTable, path: Path) -> None:
    """Draws BLEU against training cost, on a logarithmic axis, as PNG."""
    names = table.texts("system")
    with png_figure(path, 8, 5) as figure:
        axes = figure.add_subplot()
        for label, cost, bleu, colour in (
            ("EN-DE, paper", "FLOPs EN-DE (paper)", "BLEU EN-DE (paper)", "#1f4e8c"),
            ("EN-FR, paper", "FLOPs EN-FR (paper)", "BLEU EN-FR (paper)", "#c0562f"),
            (HERE, "counted from the graph", "BLEU", "#2f8f3f"),
        ):
            points = zip(table.numbers(cost), table.numbers(bleu), names, strict=True)
            known = [point for point in points if not any(math.isnan(number) for number in point[:2])]
            axes.scatter([x for x, *_ in known], [y for _, y, _ in known], color=colour, label=label)
            for x, y, name in known:
                if "Transformer" in name or label == HERE:  # the others' names would overlap
                    axes.annotate(name, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
        axes.set_xscale("log")
        axes.set_xlabel("training cost (FLOPs)")
        axes.set_ylabel("BLEU (here: on another corpus)")
        axes.set_title(table.title)
        axes.grid(alpha=0.3)
        figure.legend(frameon=False, loc="outside lower center", ncols=3)

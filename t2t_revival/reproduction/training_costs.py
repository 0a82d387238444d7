"""Table 2: BLEU and training cost, by the paper's rule and counted from the graph of the training step."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from t2t_revival import registry
from t2t_revival.data.workers import cores
from t2t_revival.errors import T2TError, did_you_mean
from t2t_revival.evaluation.bleu import sacrebleu_score
from t2t_revival.files import writing
from t2t_revival.hparams import HParams
from t2t_revival.reproduction.kept import Kept
from t2t_revival.reproduction.layer_points import Report, device
from t2t_revival.reproduction.operations import count
from t2t_revival.reproduction.report import Cell, Table
from t2t_revival.reproduction.runs import Outputs
from t2t_revival.training.checkpoint_file import load
from t2t_revival.training.checkpoints import left_out, to_decode
from t2t_revival.training.evaluations import settings_fingerprint
from t2t_revival.training.loop import build_model
from t2t_revival.training.loss import TokenCrossEntropy
from t2t_revival.training.run import Run, load_hparams, load_vocabulary
from t2t_revival.training.state import Seen

FILE_NAME = "training_costs.csv"
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}  # FLOP/s (footnote 5)
VOCABULARY = 37_000  # tokens (section 5.1)
BATCH = 25_000  # source tokens of an update, and as many target tokens (section 5.1)
SENTENCE = 25  # tokens; the paper does not say. With 50, the count is 0.7% higher
MATRIX = {"cpu": 2048, "paper": 8192}  # rows of the square matrices by which a machine's rate is measured
HERE = "here, counted"
RATE_ROUNDS = 20


@dataclass(frozen=True)
class System:
    """A row of table 2. Costs are FLOPs.

    Attributes:
        name: as the paper has it.
        ende: BLEU on newstest2014, English to German.
        enfr: BLEU on newstest2014, English to French.
        ende_cost: of training English to German.
        enfr_cost: of training English to French.
        hparams_set: of the paper's own models.
        hours: that its training took (sections 5.2, 6.1).
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
GPUS, GPU = 8, "P100"  # that base and big were trained on (section 5.2)
COLUMNS = (
    "system",
    "BLEU EN-DE (paper)",
    "BLEU EN-FR (paper)",
    "FLOPs EN-DE (paper)",
    "FLOPs EN-FR (paper)",
    "time x devices x rate",
    "counted from the graph",
    "rate used",
    "updates",
    "target tokens",
    "hours",
    "BLEU",
    "of split",
)


def training_flops(
    hparams: HParams, vocab_size: int, source_tokens: float, target_tokens: float, sentences: float = 1
) -> float:
    """FLOPs of the matrix products of an update, forward and backward, by formula (full attention).

    A product of [a, b] and [b, c] has a·b·c multiplications and as many additions. Its gradients are two
    products as large. Embedding a token is none.

    Args:
        hparams: the model's.
        vocab_size: tokens of the vocabulary.
        source_tokens: of all sentences together.
        target_tokens: of all sentences together.
        sentences: pairs of equally long ones, which attention does not mix.
    """
    key, value, hidden = hparams.key_channels, hparams.value_channels, hparams.hidden_size
    projections = 2 * hidden * (key + value)  # W^Q, W^K, W^V and W^O (section 3.2.2)
    network = 2 * hidden * hparams.filter_size  # section 3.3
    source, target = source_tokens / sentences, target_tokens / sentences
    encoder = source_tokens * (projections + network + source * (key + value))
    queries = target_tokens * (projections / 2 + target * (key + value))
    over_encoder = source_tokens * projections / 2 + target_tokens * source * (key + value)
    decoder = queries + target_tokens * (projections + network) + over_encoder
    layers = hparams.encoder_layers * encoder + hparams.decoder_layers * decoder
    return 3 * 2 * (layers + target_tokens * hidden * vocab_size)


def counted_flops(
    hparams: HParams, vocab_size: int, source_tokens: int, target_tokens: int, sentences: int = 1
) -> int:
    """FLOPs of the matrix products of an update, counted from the graph of the training step.

    Arguments are those of `training_flops`.

    Raises:
        ValueError: sentences do not share the tokens evenly.
    """
    if source_tokens % sentences or target_tokens % sentences:
        raise ValueError(f"{source_tokens} and {target_tokens} tokens of {sentences} sentences")
    model = build_model(hparams, vocab_size)
    model.compile(loss=TokenCrossEntropy(hparams.label_smoothing))

    def gradients(source: tf.Tensor, targets: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            outputs = model({"inputs": source, "targets": targets}, training=True)
            loss = model.compute_loss(y=targets, y_pred=outputs)
        return tape.gradient(loss, [variable.value for variable in model.trainable_variables])

    shapes = [(sentences, tokens // sentences) for tokens in (source_tokens, target_tokens)]
    specs = [tf.TensorSpec(shape, tf.int32) for shape in shapes]
    return count(tf.function(gradients).get_concrete_function(*specs)).operations


def flops_by_time(hours: float, devices: int, rate: float) -> float:
    """The paper's rule: training time, devices, and the FLOP/s that a device sustains (section 6.1)."""
    return hours * 3600 * devices * rate


def sustained_rate(size: int) -> float:
    """FLOP/s of this machine in products of float32 [size, size], as many side by side as there are cores.

    Of the quickest round: the others are slower by what else the machine does.
    """
    products = 1 if tf.config.list_physical_devices("GPU") else cores()
    matrices = [tf.random.stateless_normal((size, size), seed=(1, i)) for i in range(products)]
    multiply = tf.function(lambda matrices: [tf.matmul(matrix, matrix) for matrix in matrices])
    times = []
    for _ in range(RATE_ROUNDS):
        began = time.perf_counter()
        multiply(matrices)
        tf.test.experimental.sync_devices()
        times.append(time.perf_counter() - began)
    return products * 2 * size**3 / min(times)


def table(folder: Path, scale: str, runs: Sequence[tuple[Path, Outputs]], report: Report) -> Table:
    """Table 2: the paper's systems, its two models counted again, and trainings of this machine.

    Args:
        folder: gets `training_costs.csv`, which keeps what was counted and measured.
        scale: "cpu" or "paper"; says by how large matrices the machine's rate is measured.
        runs: output_dirs of trainings, and what they gave for a split.
        report: is told what is being done.

    Raises:
        T2TError: there is no such scale, or no trained model in one of `runs`.
        OSError: `folder` cannot be written.
    """
    if scale not in MATRIX:
        raise T2TError(did_you_mean(scale, MATRIX, "scale"))
    kept = Kept(folder / FILE_NAME)
    rows = [_system_row(system, kept, report) for system in SYSTEMS]
    rate = None
    if runs:
        size = MATRIX[scale]
        report(f"measuring how fast this machine multiplies matrices of {size} x {size}")
        rate = kept.value(f"FLOP/s of {device()}, matrices of {size}", lambda: sustained_rate(size))
        rows += [_run_row(place, outputs, rate, kept, report) for place, outputs in runs]
    return Table("table2", "Table 2: BLEU and training cost in FLOPs", COLUMNS, rows, _remarks(rate))


def _system_row(system: System, kept: Kept, report: Report) -> list[Cell]:
    stated: list[Cell] = [system.name, system.ende, system.enfr, system.ende_cost, system.enfr_cost]
    if system.hparams_set is None:
        return [*stated, *[None] * (len(COLUMNS) - len(stated))]
    hparams = registry.hparams(system.hparams_set)
    report(f"counting the operations of {system.hparams_set}")
    update = _counted(kept, hparams, VOCABULARY, BATCH, BATCH, BATCH // SENTENCE)
    by_time = flops_by_time(system.hours, GPUS, SUSTAINED[GPU])
    counted = update * hparams.train_steps
    length = [hparams.train_steps, hparams.train_steps * BATCH, system.hours]
    return [*stated, by_time, counted, counted / by_time, *length, None, None]


def _run_row(output_dir: Path, outputs: Outputs, rate: float, kept: Kept, report: Report) -> list[Cell]:
    run, hparams = Run.load(output_dir), load_hparams(output_dir)
    checkpoint = to_decode(output_dir, on_damaged=lambda error: report(left_out(error)))
    seen, devices = _seen(checkpoint.path)
    report(f"{output_dir}: counting its operations")
    counted = _counted_of(kept, hparams, load_vocabulary(output_dir).size, seen)
    hours = seen.seconds / 3600
    by_time = flops_by_time(hours, devices, rate)
    name = f"{output_dir.name}: {run.problem}, {run.hparams_set}"
    length = [checkpoint.step, seen.target_tokens, hours]
    bleu = round(sacrebleu_score(*outputs.lines()).score, 2)
    return [name, *[None] * 4, by_time, counted, counted / by_time, *length, bleu, outputs.split]


def _seen(checkpoint: Path) -> tuple[Seen, int]:
    """What a training had seen, and on how many devices it ran last."""
    _, meta = load(checkpoint, prefixes=())
    try:
        seen = Seen(**meta["seen"])
    except (KeyError, TypeError) as error:
        raise T2TError(f"{checkpoint}: does not say what it was trained on, as t2t-trainer's do") from error
    if not seen.examples:
        raise T2TError(f"{checkpoint}: was not trained yet")
    return seen, meta.get("replicas", 1)


def _counted_of(kept: Kept, hparams: HParams, vocab_size: int, seen: Seen) -> float:
    """For all that was seen: counted for a pair of mean lengths in whole tokens; the rest by formula."""
    means = seen.source_tokens / seen.examples, seen.target_tokens / seen.examples
    whole = round(means[0]), round(means[1])
    per_pair = _counted(kept, hparams, vocab_size, *whole)
    rest = training_flops(hparams, vocab_size, *means) / training_flops(hparams, vocab_size, *whole)
    return per_pair * rest * seen.examples


def _counted(
    kept: Kept, hparams: HParams, vocab_size: int, source: int, target: int, sentences: int = 1
) -> float:
    shape = (vocab_size, source, target, sentences)
    model = settings_fingerprint(**dataclasses.asdict(hparams))
    make: Callable[[], float] = lambda: counted_flops(hparams, *shape)  # noqa: E731
    return kept.value(f"FLOPs of hparams {model}, {shape}", make)


def _remarks(rate: float | None) -> list[str]:
    rates = ", ".join(f"{name} {flops / 1e12}" for name, flops in SUSTAINED.items())
    remarks = [
        "- Time x devices x rate is the paper's rule: training time, the number of GPUs, and the TFLOP/s in "
        f"single precision that one sustains ({rates}). For base and big, {GPUS} {GPU}, 12 hours and 3.5 "
        "days (sections 5.2 and 6.1).",
        "- Counted: multiplications and additions of all matrix products of the training step, forward and "
        "backward, by the shapes of the nodes of its graph, times updates. For base and big, updates of "
        f"{BATCH:,} source and {BATCH:,} target tokens and {VOCABULARY:,} subwords (section 5.1), in "
        f"sentences of {SENTENCE} tokens, on which it hardly depends.",
        "- Rate used: what was counted by what the rule gives, the share of the devices' rate that the "
        "training makes use of.",
        "- The paper's cost is one figure for both languages; its BLEU is of tokenised text.",
    ]
    return remarks + (_remarks_on_runs(rate) if rate is not None else [])


def _remarks_on_runs(rate: float) -> list[str]:
    return [
        f"- Trained here: the rate is that of this machine ({device()}) as a device, {rate / 1e12:.3g} "
        f"TFLOP/s with float32 matrices. {FILE_NAME} keeps it; if the machine was busy then, remove its "
        "line. A training in lower precision, or on another machine, may exceed it.",
        "- Hours of these are the trainer's, with evaluations and checkpoints. Tokens have no padding among "
        "them. Operations are counted for a pair of mean lengths.",
        "- BLEU of these is sacreBLEU's, cased, 13a, of the mean of the last checkpoints: not to be compared "
        "with the paper's.",
    ]


def draw(measured: Table, path: Path) -> None:
    """Draws BLEU against the cost of training, on a logarithmic axis, as PNG.

    Args:
        measured: of `table`.
        path: of the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), dpi=120, layout="constrained")
    axes = figure.add_subplot()
    names = measured.texts("system")
    for label, cost, bleu, colour in (
        ("EN-DE, paper", "FLOPs EN-DE (paper)", "BLEU EN-DE (paper)", "#1f4e8c"),
        ("EN-FR, paper", "FLOPs EN-FR (paper)", "BLEU EN-FR (paper)", "#c0562f"),
        (HERE, "counted from the graph", "BLEU", "#2f8f3f"),
    ):
        points = zip(measured.numbers(cost), measured.numbers(bleu), names, strict=True)
        shown = [point for point in points if not any(math.isnan(number) for number in point[:2])]
        axes.scatter([x for x, *_ in shown], [y for _, y, _ in shown], color=colour, label=label)
        for x, y, name in shown:
            if "Transformer" not in name and label != HERE:
                continue  # they stand close together, and in the table
            axes.annotate(name, (x, y), xytext=(4, 4), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("training cost, FLOPs")
    axes.set_ylabel("BLEU (here: of another corpus)")
    axes.set_title(measured.title)
    axes.grid(alpha=0.3)
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    with writing(path) as file:
        figure.savefig(file, format="png")

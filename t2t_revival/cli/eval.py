"""`t2t-eval`: scores each checkpoint of a training on the dev or test split.

t2t-eval --problem=translate_ende --hparams_set=big [--eval_use_test_set] [--checkpoint=best|FILE|FOLDER]

Scores each checkpoint of a training, and the average of t2t-avg-all: loss, perplexity and accuracy on the
whole split, BLEU or F1 of --eval_bleu_sentences of its sentences, decoded. Prints a table, writes it to
output_dir/eval-dev.csv (or eval-test.csv) and draws it beside; the decoded outputs go to eval-dev/.
Checkpoints with a row in the table are not scored again. Recommends the checkpoint that is best by the
training's --best_metric. BLEU and F1 leave it to the loss where the best is below 1, or the difference is
within the noise of the sample.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.cli.support import tensorflow_setup, wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.engine_flags import Engine, engine_flags
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.messages import duration, say, say_skipped
from t2t_revival.cli.support.run_flags import SPLIT_DIR, RunFlags, checkpoint_flag
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation import checkpoint_evaluation as evaluation
from t2t_revival.evaluation.decoded import language_of
from t2t_revival.metrics.metric import metric_of
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, TEST, Data
from t2t_revival.utils.files import check_writable
from t2t_revival.visualization.learning_curve import draw_evaluations


@dataclass(frozen=True)
class EvalFlags(RunFlags):
    """The flags of t2t-eval; names are T2T's where T2T had them."""

    exclusive = tuple(
        (decoding, "eval_bleu_sentences=0")
        for decoding in ("engine=ctranslate2", "precision=bfloat16", "precision=int8")
    )
    checkpoint: str | None = checkpoint_flag("by default all of output_dir, and its averages.")
    data_dir: str | None = flag(None, SPLIT_DIR)
    eval_use_test_set: bool = flag(False, "Use the test split instead of dev.")
    eval_bleu_sentences: int = flag(
        200,
        "Sentences, evenly spread over the split (of each corpus of a mixture), that are decoded for BLEU or "
        "F1; 0 decodes none.",
    )
    engine: Engine = engine_flags()
    eval_timeout_mins: int = flag(0, wait_flags.waiting_for("checkpoint"))


def _eval(flags: EvalFlags) -> None:
    folder = flags.open_model()
    flags.engine.check()
    if flags.engine.is_ctranslate2:
        from t2t_revival.addons.ctranslate2.engine import check_usable

        options = DecodeHParams.parse("", folder.run.decode_hparams)
        check_usable(folder.hparams, options, flags.engine.precision)  # before TensorFlow is loaded
    split = TEST if flags.eval_use_test_set else DEV
    data = folder.own_data(flags.data_dir)
    engine = str(flags.engine) if flags.engine != Engine() else ""
    settings = evaluation.evaluation_settings(folder, data, split, flags.eval_bleu_sentences, engine)
    tensorflow_setup.load_backend()
    _evaluate(flags, folder, data, evaluation.Evaluations(folder.path, split, settings), split)


def _evaluate(
    flags: EvalFlags, folder: ModelFolder, data: Data, table: evaluation.Evaluations, split: str
) -> None:
    """Prints a row for each checkpoint, and the recommendation."""
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.evaluation.split_scores import CheckpointScores, sample

    def scorer() -> CheckpointScores:
        check_writable(folder.path)
        parallel, load_decoder = tensorflow_setup.num_parallel_batches(), None
        if flags.engine != Engine():
            load_decoder = partial(
                Translator.load,
                folder.path,
                num_parallel_batches=flags.engine.num_parallel_batches(),
                precision=flags.engine.precision,
                engine=flags.engine.name,
                on_note=say,
            )
        return CheckpointScores(folder, data, split, sentences, parallel, load_decoder)

    sentences = flags.eval_bleu_sentences
    names = [name for name in data.problem.eval_metrics() if sentences or not metric_of(name).outputs]
    where = flags.checkpoint or folder.path
    list_checkpoints = evaluation.checkpoint_lister(folder.path, flags.checkpoint)
    seen: set[Path] = set()

    def say_start(checkpoint: Checkpoint, seconds: float) -> None:
        seen.add(checkpoint.path)
        later = [other for other in list_checkpoints() if other.step >= checkpoint.step]
        left = 1 + sum(other.path not in seen for other in later)
        name = checkpoint.path.relative_to(checkpoint.path.parents[checkpoint.averaged])
        say(f"scoring {name}, {left} to go" + (f", about {duration(left * seconds)}" if seconds else ""))

    rows: list[evaluation.Evaluation] = []
    for row in evaluation.evaluate_checkpoints(
        wait_flags.step_files(list_checkpoints, flags.eval_timeout_mins, f"a checkpoint in {where}"),
        table,
        scorer,
        say_start,
        say_skipped,
    ):
        if not rows:
            names += [name for name in row.scores if "/" in name]  # of a mixture's corpora
            print("  ".join(["    step", *(f"{name:>10}" for name in names)]))
        rows.append(row)
        cells = (f"{row.scores.get(name, float('nan')):{max(10, len(name))}.4g}" for name in names)
        print("  ".join([f"{row.step:8}", *cells]) + ("  average" if row.averaged else ""), flush=True)
    if not rows:
        raise T2TError(f"no valid checkpoint in {where}: train with t2t-trainer")
    score = evaluation.drawn_score(folder.path, [row.scores for row in rows])
    title = f"{folder.run.problem}, {folder.run.hparams_set}: {split}"
    print(f"table    {table.path}")
    try:
        print(f"picture  {draw_evaluations(table.rows, table.path.with_suffix('.png'), title, score)}")
    except T2TError as error:
        say(str(error))
    references = [target for _, target in sample(data, split, sentences)]
    metric, language = evaluation.run_metric(folder.path), language_of(data)
    best, reason = evaluation.best_checkpoint(rows, data.problem, table.outputs, references, language, metric)
    print(reason)
    _print_next(flags, folder, best)


def _print_next(flags: EvalFlags, folder: ModelFolder, best: evaluation.Evaluation) -> None:
    path = Path(os.path.normpath(folder.path / best.checkpoint))
    if not path.exists():
        print(
            f"{path} was deleted by the training: t2t-trainer keeps more with a larger --keep_checkpoint_max"
        )
    where = {
        "output_dir": folder.path,
        "checkpoint": path if path.exists() else None,
        "data_dir": flags.data_dir,
        "t2t_usr_dir": flags.t2t_usr_dir,
        "eval_use_test_set": flags.eval_use_test_set,
    }
    print(f"next: {CommandLine('t2t-decoder', **where)}")


main = Command(EvalFlags, _eval, __doc__)

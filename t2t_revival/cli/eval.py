"""`t2t-eval`: scores each checkpoint of a training on the dev or test split."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from absl import flags

from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.cli.support import (
    command,
    engine_flags,
    problem_flags,
    run_flags,
    tensorflow_setup,
    wait_flags,
)
from t2t_revival.cli.support.messages import duration, say, say_skipped
from t2t_revival.decoding.options import FLOAT32, TENSORFLOW, DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.checkpoint_evaluation import (
    Evaluation,
    Evaluations,
    best_checkpoint,
    checkpoint_lister,
    drawn_score,
    evaluate_checkpoints,
    evaluation_settings,
    run_metric,
)
from t2t_revival.metrics.metric import metric_of
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.problems.problem import DEV, TEST, Data
from t2t_revival.utils.files import check_writable
from t2t_revival.visualization.learning_curve import draw_evaluations

USAGE = """
t2t-eval --problem=translate_ende --hparams_set=big [--eval_use_test_set] [--checkpoint=best|FILE|FOLDER]

Scores each checkpoint of a training, and the average of t2t-avg-all: loss, perplexity and accuracy on the
whole split, BLEU or F1 of --eval_bleu_sentences of its sentences, decoded. Prints a table, writes it to
output_dir/eval-dev.csv (or eval-test.csv) and draws it beside; the decoded outputs go to eval-dev/.
Checkpoints with a row in the table are not scored again. Recommends the checkpoint that is best by the
training's --best_metric. BLEU and F1 leave it to the loss where the best is below 1, or the difference is
within the noise of the sample.
"""


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-eval; names are T2T's where T2T had them."""
    values = command.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    run_flags.define_checkpoint(values, "by default all of output_dir, and its averages.")
    run_flags.define_split_dir(values)
    command.define(values, False, eval_use_test_set="Use the test split instead of dev.")
    command.define(
        values,
        200,
        eval_bleu_sentences="Sentences, evenly spread over the split (of each corpus of a mixture), that are "
        "decoded for BLEU or F1; 0 decodes none.",
    )
    engine_flags.define(values)
    wait_flags.define(values, "checkpoint", "eval_timeout_mins")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _eval, argv)


def _eval(values: flags.FlagValues) -> None:
    engine = _own_engine(values)
    output_dir, run = run_flags.open_run(values)
    if engine_flags.uses_ctranslate2(values):
        _check_ctranslate2(values, output_dir, run)
    split = TEST if values.eval_use_test_set else DEV
    data = ModelFolder(output_dir).own_data(values.data_dir)
    settings = evaluation_settings(ModelFolder(output_dir), data, split, values.eval_bleu_sentences, engine)
    tensorflow_setup.load_backend(values)
    _evaluate(values, output_dir, run, data, Evaluations(output_dir, split, settings), split)


def _own_engine(values: flags.FlagValues) -> str:
    """Names the engine that decodes and its precision; empty for that of the loss, Keras's in float32."""
    usual = {"engine": TENSORFLOW, "precision": FLOAT32}
    other = [f"--{name}={values[name].value}" for name in usual if values[name].value != usual[name]]
    if not other:
        return ""
    if not values.eval_bleu_sentences:
        raise T2TError(f"{other[0]} has no effect: --eval_bleu_sentences=0 decodes nothing")
    return f"{values.engine}, {values.precision}"


def _check_ctranslate2(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    """Checks, before TensorFlow is loaded, that CTranslate2 can decode with the model."""
    from t2t_revival.decoding.ctranslate2_engine import check_usable

    options = DecodeHParams.parse("", run.decode_hparams)
    check_usable(ModelFolder(output_dir).hparams, options, values.precision)


def _evaluate(
    values: flags.FlagValues,
    output_dir: Path,
    run: Run,
    data: Data,
    table: Evaluations,
    split: str,
) -> None:
    """Prints a row for each checkpoint, and the recommendation."""
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.evaluation.split_scores import CheckpointScores, sample

    def scorer() -> CheckpointScores:
        check_writable(output_dir)
        parallel, load_decoder = tensorflow_setup.num_parallel_batches(), None
        if _own_engine(values):
            load_decoder = partial(
                Translator.load,
                output_dir,
                num_parallel_batches=engine_flags.num_parallel_batches(values),
                precision=values.precision,
                engine=values.engine,
                on_note=say,
            )
        return CheckpointScores(ModelFolder(output_dir), data, split, sentences, parallel, load_decoder)

    sentences = values.eval_bleu_sentences
    names = [name for name in data.problem.eval_metrics() if sentences or not metric_of(name).outputs]
    where = values.checkpoint or output_dir
    list_checkpoints = checkpoint_lister(output_dir, values.checkpoint)
    seen: set[Path] = set()

    def say_start(checkpoint: Checkpoint, seconds: float) -> None:
        seen.add(checkpoint.path)
        later = [other for other in list_checkpoints() if other.step >= checkpoint.step]
        left = 1 + sum(other.path not in seen for other in later)
        name = checkpoint.path.relative_to(checkpoint.path.parents[checkpoint.averaged])
        say(f"scoring {name}, {left} to go" + (f", about {duration(left * seconds)}" if seconds else ""))

    rows: list[Evaluation] = []
    for row in evaluate_checkpoints(
        wait_flags.step_files(list_checkpoints, values.eval_timeout_mins, f"a checkpoint in {where}"),
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
    picture = table.path.with_suffix(".png")
    score = drawn_score(output_dir, [row.scores for row in rows])
    draw_evaluations(table.rows, picture, f"{run.problem}, {run.hparams_set}: {split}", score)
    print(f"table    {table.path}\npicture  {picture}")
    references = [target for _, target in sample(data, split, sentences)]
    outputs = {row.checkpoint: table.outputs(row) for row in rows}
    best, reason = best_checkpoint(rows, data.problem, outputs, references, run_metric(output_dir))
    print(reason)
    _print_next(values, output_dir, best)


def _print_next(values: flags.FlagValues, output_dir: Path, best: Evaluation) -> None:
    path = Path(os.path.normpath(output_dir / best.checkpoint))
    if not path.exists():
        print(
            f"{path} was deleted by the training: t2t-trainer keeps more with a larger --keep_checkpoint_max"
        )
    where = {
        "output_dir": output_dir,
        "checkpoint": path if path.exists() else None,
        "data_dir": values.data_dir,
        "t2t_usr_dir": values.t2t_usr_dir,
        "eval_use_test_set": values.eval_use_test_set,
    }
    print(f"next: {CommandLine('t2t-decoder', **where)}")


if __name__ == "__main__":
    sys.exit(main())

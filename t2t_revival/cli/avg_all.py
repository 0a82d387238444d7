"""`t2t-avg-all`: averages the last checkpoints of a training, or the last of each.

t2t-avg-all --problem=translate_ende --hparams_set=big [--output_dir=DIR] [--n=20] [--min_steps=0]
t2t-avg-all --model_dir=DIR [--output_dir=DIR/avg] [--n=8] [--wait_minutes=20] [--min_steps=0]

Averages the weights of the last checkpoints (section 6.1 of the paper) and writes the average to
output_dir/averaged. Scores it on the dev split beside the newest and the best checkpoint; commands such as
t2t-decoder use it from then on, unless it is worse. Where the training data has changed, only checkpoints
since then are averaged.

With --model_dir, as in tensor2tensor: for each checkpoint the average of it and the --n - 1 before it, also
while the training is running. The averages go to an --output_dir of their own, which t2t-eval,
t2t-translate-all, t2t-decoder and t2t-exporter read like a training's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.checkpoints.averaging import average_latest, check_averages, sliding_averages
from t2t_revival.checkpoints.directory import BEST, Checkpoint
from t2t_revival.checkpoints.selection import NEWEST, candidates, mark_average, mark_stopped_early
from t2t_revival.cli.support import tensorflow_setup, wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.messages import say, say_skipped, warn_of_corruption, warn_of_skipped
from t2t_revival.cli.support.run_flags import SPLIT_DIR, RunFlags
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.checkpoint_evaluation import (
    Evaluation,
    Evaluations,
    best_checkpoint,
    evaluate_checkpoints,
    evaluation_settings,
    run_metric,
)
from t2t_revival.evaluation.decoded import language_of
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.problem import DEV, Data
from t2t_revival.utils.files import check_writable, exclusive_lock

FOLDER = "avg"  # T2T's
SENTENCES = 200  # that are decoded for BLEU or F1, as t2t-eval does


@dataclass(frozen=True)
class AverageFlags(RunFlags):
    exclusive = (("checkpoint", "model_dir"),)
    needs = (("wait_minutes", "model_dir"),)
    n: int = flag(0, "Number of checkpoints in an average; 0 takes average_checkpoints of the hparams.")
    model_dir: str = flag(
        "",
        "Folder of a training: writes one average for each of its checkpoints to --output_dir, by default "
        f"MODEL_DIR/{FOLDER}.",
    )
    mix_data: bool = flag(
        False, "Also average checkpoints from before and after a change of the training data."
    )
    checkpoint: str = flag(
        NEWEST,
        "Checkpoints to average: the last ones, or those that t2t-trainer kept as the best (--keep_best).",
        choices=(NEWEST, BEST),
    )
    skip_scoring: bool = flag(
        False, "Make the average the default without scoring it on dev, which takes minutes."
    )
    data_dir: str | None = flag(None, SPLIT_DIR)
    min_steps: int = flag(0, wait_flags.MIN_STEPS)
    wait_minutes: int = flag(0, wait_flags.waiting_for("checkpoint"))


def _average(flags: AverageFlags) -> None:
    if flags.model_dir:
        _sliding_averages(flags)
        return
    folder = flags.open_model()
    check_writable(folder.path)
    path, steps = average_latest(
        folder.path,
        flags.n or folder.hparams.average_checkpoints,
        flags.min_steps,
        flags.mix_data,
        warn_of_corruption,
        say,
        of_best=flags.checkpoint == BEST,
    )
    count = _count(len(steps), "checkpoint")
    print(f"averaged {count} (steps {', '.join(map(str, steps))}): {path}")
    if flags.checkpoint != BEST:
        _choose_default(flags, folder, Checkpoint(steps[-1], True, path))
    where = flags.named
    if flags.checkpoint == BEST:
        where["checkpoint"] = str(path)
    if folder.run.problem not in registry.list_problems():
        where["t2t_usr_dir"] = "YOUR_PACKAGE"
    print(f"next: {CommandLine('t2t-decoder', **where)}")


def _choose_default(flags: AverageFlags, folder: ModelFolder, average: Checkpoint) -> None:
    """Makes the average the default, unless the newest or the best checkpoint scores better on dev."""
    if flags.skip_scoring:
        mark_average(folder.path, average.step, is_worse=False)
        return
    mark_average(folder.path, average.step, is_worse=True)  # until it is scored
    try:
        data = folder.own_data(flags.data_dir)
        settings = evaluation_settings(folder, data, DEV, SENTENCES)
    except T2TError as error:
        mark_average(folder.path, average.step, is_worse=False)
        say(f"the average is the default without a score on dev: {error.message(flags.t2t_usr_dir)}")
        return
    tensorflow_setup.load_backend()
    best = _score(folder, data, average, Evaluations(folder.path, DEV, settings))
    if best.averaged:
        mark_average(folder.path, average.step, is_worse=False)
        print("the average is the default of commands from now on")
        return
    if best.checkpoint.startswith(f"{BEST}{os.sep}"):
        mark_stopped_early(folder.path)
    print(
        f"the average is worse, and no default: commands use {best.checkpoint}; --checkpoint=average is for "
        "the average"
    )


def _score(folder: ModelFolder, data: Data, average: Checkpoint, table: Evaluations) -> Evaluation:
    """Prints the scores of an average, the newest checkpoint and the best one; returns the best of them."""
    from t2t_revival.evaluation.split_scores import CheckpointScores, sample

    newest = candidates(folder.path, NEWEST)[:1]
    others = [
        kept for kept in candidates(folder.path, BEST)[:1] if kept.step not in (own.step for own in newest)
    ]
    rows = []
    for row in evaluate_checkpoints(
        [average, *newest, *others],
        table,
        lambda: CheckpointScores(folder, data, DEV, SENTENCES, tensorflow_setup.num_parallel_batches()),
        lambda checkpoint, seconds: say(f"scoring {checkpoint.path.relative_to(folder.path)} on dev"),
        say_skipped,
    ):
        rows.append(row)
        scores = "  ".join(f"{name} {value:.4g}" for name, value in row.scores.items())
        print(f"{row.checkpoint}  dev: {scores}", flush=True)
    references = [target for _, target in sample(data, DEV, SENTENCES)]
    best, reason = best_checkpoint(
        rows, data.problem, table.outputs, references, language_of(data), run_metric(folder.path)
    )
    print(reason)
    return rows[0] if rows[0].scores == best.scores else best


def _sliding_averages(flags: AverageFlags) -> None:
    model_dir = Path(flags.model_dir).expanduser()
    folder = Path(flags.output_dir).expanduser() if flags.output_dir else model_dir / FOLDER
    model = flags.model_in(model_dir)
    count = flags.n or model.hparams.average_checkpoints
    check_averages(folder, model_dir, count, flags.mix_data)
    model.copy_to(folder)
    checkpoints = wait_flags.new_checkpoints(model_dir, flags.wait_minutes, flags.min_steps)
    made = 0
    waiting = f"{folder}: another t2t-avg-all is writing there; waiting until it ends"
    with exclusive_lock(folder, None, lambda: say(waiting)):
        for average in sliding_averages(checkpoints, count, folder, warn_of_skipped, say, flags.mix_data):
            made += 1
            print(
                f"step {average.step}: {average.path}{'' if average.made else ', there already'}", flush=True
            )
    if not made:
        raise T2TError(
            f"no average: {model_dir} has fewer than {count} valid checkpoints"
            + ("" if flags.mix_data else " in a row of the same training data")
            + (f" from step {flags.min_steps} on" if flags.min_steps else "")
            + ": give a lower --n, or --wait_minutes while it is trained"
        )
    print(f"{_count(made, 'average')} of {_count(count, 'checkpoint')}")
    print(f"next: {CommandLine('t2t-eval', output_dir=folder, t2t_usr_dir=flags.t2t_usr_dir)}")


def _count(number: int, kind: str) -> str:
    return f"{number} {kind}{'' if number == 1 else 's'}"


main = Command(AverageFlags, _average, __doc__)

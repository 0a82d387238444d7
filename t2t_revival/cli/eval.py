"""`t2t-eval`: scores each checkpoint of a training on the dev or test split."""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags, waiting
from t2t_revival.cli.lines import say
from t2t_revival.cli.progress import duration
from t2t_revival.errors import T2TError
from t2t_revival.hints import command_line, datagen_command
from t2t_revival.problems.problem import DEV, TEST, Text2TextProblem

if TYPE_CHECKING:
    from t2t_revival.training.checkpoints import Checkpoint
    from t2t_revival.training.evaluations import Evaluation, Evaluations
    from t2t_revival.training.run import Run

DECODED = {"bleu", "f1"}  # scores of what is decoded
USAGE = """
t2t-eval --problem=translate_ende --hparams_set=big [--eval_use_test_set] [--checkpoint_path=FILE|FOLDER]

Scores each checkpoint of a training, and the average of t2t-avg-all: loss, perplexity and accuracy on the
whole split, BLEU or F1 of --eval_bleu_sentences of its sentences, decoded. Prints a table; writes it to
output_dir/eval-dev.csv (or eval-test.csv) and draws it beside, and keeps what was decoded in eval-dev/.
Checkpoints that have their row there are not scored again. Recommends the checkpoint of the best BLEU or F1,
but that of the lowest loss where the best is below 1, or the difference is within the noise of the sample.
"""


def command_flags() -> flags.FlagValues:
    """The flags of t2t-eval; names are T2T's where T2T had them."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    flags.DEFINE_string(
        "checkpoint_path",
        None,
        "A checkpoint's file or a folder of them; by default all in output_dir, and the averages there.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "data_dir",
        None,
        "Where the split's shards lie; by default where the model was trained from.",
        flag_values=values,
    )
    flags.DEFINE_bool("eval_use_test_set", False, "The test split instead of dev.", flag_values=values)
    common.define_integer(
        "eval_bleu_sentences",
        200,
        "Sentences, evenly spread, that are decoded for BLEU, or F1; 0: none.",
        lower_bound=0,
        flag_values=values,
    )
    common.define_integer(
        "eval_timeout_mins",
        0,
        "How long to wait for the next checkpoint, counted from when the last one was written; 0: what is "
        "there is all.",
        lower_bound=0,
        flag_values=values,
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return common.run(command_flags(), USAGE, _eval, argv)


def _eval(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    output_dir, run = run_flags.open_run(values)
    problem = registry.problem(run.problem)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"{run.problem} is not a problem of text to text")
    split = TEST if values.eval_use_test_set else DEV
    data_dir = run_flags.split_dir(values, output_dir, run, problem)
    settings = _settings(values, output_dir, run, problem, split, data_dir)
    common.load_tensorflow(values)
    from t2t_revival.split_scores import sample
    from t2t_revival.training.evaluations import Evaluations
    from t2t_revival.visualization.learning_curve import draw_evaluations

    table = Evaluations(output_dir, split, settings)
    shown = _Evaluator(values, output_dir, problem, split, data_dir, table).all()
    if not shown:
        raise T2TError(
            f"no whole checkpoint in {values.checkpoint_path or output_dir}: train with t2t-trainer"
        )
    picture = table.path.with_suffix(".png")
    draw_evaluations(table.rows, picture, f"{run.problem}, {run.hparams_set}: {split}")
    print(f"table    {table.path}\npicture  {picture}")
    references = [target for _, target in sample(problem, split, data_dir, values.eval_bleu_sentences)]
    _tell_best(values, output_dir, problem, table, shown, references)


def _settings(
    values: flags.FlagValues,
    output_dir: Path,
    run: Run,
    problem: Text2TextProblem,
    split: str,
    data_dir: Path,
) -> str:
    """What tells rows that were measured on this data, in this way, from others."""
    from t2t_revival.training.evaluations import settings_fingerprint

    metadata = problem.metadata(data_dir)
    if metadata.vocab_fingerprint != run.fingerprint:
        other = output_dir / run_flags.IMPORTED_DATA
        raise T2TError(
            f"{data_dir} was made with another vocabulary than the model in {output_dir} has: give the "
            f"--data_dir that it was trained from, or --data_dir={other} after you have run "
            + datagen_command(problem, other, output_dir / run.vocabulary)
        )
    problem.shards(split, data_dir)
    return settings_fingerprint(
        data=dataclasses.asdict(metadata.splits[split]),
        source=metadata.source,
        decode_hparams=run.decode_hparams,
        decoded_sentences=values.eval_bleu_sentences,
    )


class _Evaluator:
    """Scores what has no row yet, and prints the table row by row."""

    def __init__(
        self,
        values: flags.FlagValues,
        output_dir: Path,
        problem: Text2TextProblem,
        split: str,
        data_dir: Path,
        table: Evaluations,
    ) -> None:
        from t2t_revival.split_scores import CheckpointScores

        self._values, self._output_dir, self._problem, self._table = values, output_dir, problem, table
        self._make = lambda: CheckpointScores(
            output_dir, problem, split, data_dir, values.eval_bleu_sentences, common.streams()
        )
        self._scores: CheckpointScores | None = None
        self._listed = _asked(output_dir, values.checkpoint_path)
        self._names = [
            name for name in problem.eval_metrics() if values.eval_bleu_sentences or name not in DECODED
        ]
        self._seconds: list[float] = []  # that each evaluation took
        self._seen: set[Path] = set()  # checkpoints whose turn has come

    def all(self) -> list[Evaluation]:
        """The rows of all checkpoints that were asked for; damaged ones are named."""
        from t2t_revival.training.checkpoint_file import DamagedError, GoneError

        shown: list[Evaluation] = []
        where = self._values.checkpoint_path or self._output_dir
        for checkpoint in waiting.following(
            self._listed, self._values.eval_timeout_mins, f"a checkpoint in {where}"
        ):
            try:
                row = self._row(checkpoint)
            except DamagedError as error:
                run_flags.say_left_out(error)
                continue
            except GoneError:
                say(f"step {checkpoint.step}: removed by the training meanwhile, left out")
                continue
            if not shown:
                print("  ".join(["    step", *(f"{name:>10}" for name in self._names)]))
            shown.append(row)
            cells = [
                f"{row.step:8}",
                *(f"{row.scores.get(name, float('nan')):10.4g}" for name in self._names),
            ]
            print("  ".join(cells) + ("  average" if row.averaged else ""), flush=True)
        return shown

    def _row(self, checkpoint: Checkpoint) -> Evaluation:
        from t2t_revival.training.checkpoint_file import fingerprint

        self._seen.add(checkpoint.path)
        weights = fingerprint(checkpoint.path)
        if found := self._found(checkpoint.path, weights):
            return found
        began = time.monotonic()
        self._say_start(checkpoint)
        self._scores = self._scores or self._make()
        scores, outputs = self._scores(checkpoint.path)
        self._seconds.append(time.monotonic() - began)
        row = self._table.add(checkpoint.step, checkpoint.path, weights, scores)
        if outputs:
            self._table.save_outputs(row, outputs)
        return row

    def _found(self, path: Path, weights: str) -> Evaluation | None:
        """The row of an earlier call; None where what it decoded is not there to be compared."""
        found = self._table.find(path, weights)
        if found and DECODED.intersection(found.scores) and self._table.outputs(found) is None:
            return None
        return found

    def _say_start(self, checkpoint: Checkpoint) -> None:
        after = (other for other in self._listed() if other.step >= checkpoint.step)
        left = 1 + sum(other.path not in self._seen for other in after)
        pace = self._seconds[-1] if self._seconds else 0.0
        name = checkpoint.path.relative_to(checkpoint.path.parents[checkpoint.averaged])
        say(f"scoring {name}, {left} to go" + (f", about {duration(left * pace)}" if pace else ""))


def _asked(output_dir: Path, checkpoint_path: str | None) -> Callable[[], list[Checkpoint]]:
    """What lists the checkpoints that are scored."""
    from t2t_revival.training import checkpoints

    if not checkpoint_path:
        return lambda: sorted(
            checkpoints.list_checkpoints(output_dir) + checkpoints.list_averaged(output_dir)
        )
    folder = Path(checkpoint_path).expanduser()
    if folder.is_dir():
        return lambda: checkpoints.list_checkpoints(folder)
    given = [checkpoints.to_decode(output_dir, checkpoint_path)]
    return lambda: given


def _tell_best(
    values: flags.FlagValues,
    output_dir: Path,
    problem: Text2TextProblem,
    table: Evaluations,
    rows: list[Evaluation],
    references: list[str],
) -> None:
    from t2t_revival.evaluation.best_checkpoint import best_checkpoint
    from t2t_revival.evaluation.decoded import measure_of

    decoded = {row.checkpoint: table.outputs(row) or [] for row in rows}
    comparable = {name: lines for name, lines in decoded.items() if len(lines) == len(references) > 0}
    best, reason = best_checkpoint(rows, measure_of(problem), comparable, references)
    print(reason)
    path = Path(os.path.normpath(output_dir / best.checkpoint))
    if not path.exists():
        print(f"{path} is gone: t2t-trainer keeps more with a larger --keep_checkpoint_max")
    given = path if path.exists() else None
    test, usr_dir, data = values.eval_use_test_set, values.t2t_usr_dir, values.data_dir
    where = {"output_dir": output_dir, "checkpoint_path": given, "data_dir": data, "t2t_usr_dir": usr_dir}
    print(f"next: {command_line('t2t-decoder', **where, eval_use_test_set=test)}")


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-translate-all`: translates a file with each checkpoint of a training."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from absl import flags

from t2t_revival import checked_json, registry
from t2t_revival.cli import common, problem_flags, run_flags, waiting
from t2t_revival.cli.lines import check_outputs, named, output_to, read, say, to_bytes, translate
from t2t_revival.errors import T2TError
from t2t_revival.files import only_one
from t2t_revival.hints import command_line

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.training.checkpoints import Checkpoint
    from t2t_revival.training.run import Run

USAGE = """
t2t-translate-all --model_dir=DIR --source=FILE [--translations_dir=DIR/translations] [--wait_minutes=20]

Translates a file with each checkpoint of a training, also while it goes on, or with each average of
t2t-avg-all. The outputs of step 1000 go to translations_dir/PROBLEM-1000, where t2t-bleu --translations_dir
finds them; what is there already is not made again. After an interruption, even kill -9, the same command
resumes.
"""
FOLDER = "translations"  # T2T's
FROM_T2T = ("beam_size", "alpha")
NOT_PLAIN = ("return_beams", "write_beam_scores")
ANOTHER = "give another --translations_dir"


def command_flags() -> flags.FlagValues:
    """The flags of t2t-translate-all; names are T2T's where T2T had them."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    flags.DEFINE_alias("model_dir", "output_dir", flag_values=values)
    flags.DEFINE_string(
        "source",
        None,
        "Text to translate, a sentence on each line; - is the standard input.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "translations_dir",
        None,
        f"Where the outputs go; by default MODEL_DIR/{FOLDER}.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "decode_hparams", "", "How to decode, such as beam_size=4,alpha=0.6.", flag_values=values
    )
    common.define_integer("beam_size", None, "As in --decode_hparams.", flag_values=values)
    flags.DEFINE_float("alpha", None, "As in --decode_hparams.", flag_values=values)
    waiting.define_min_steps(values, "checkpoint")
    waiting.define(values, "checkpoint")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return common.run(command_flags(), USAGE, _translate_all, argv)


def _translate_all(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    model_dir, run = run_flags.open_run(values)
    has_bleu = "bleu" in registry.problem(run.problem).eval_metrics()
    if not values.source:
        raise T2TError("--source=FILE is missing: the text to translate")
    options = _options(values, run)
    folder = Path(values.translations_dir or model_dir / FOLDER).expanduser()
    made = {f"the translation {path}": path for path in folder.glob(f"{run.problem}-*")}
    check_outputs(named(values, "source"), made)
    lines = read(values.source, "source")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise T2TError(f"cannot write to {folder}: {error.strerror or error}; {ANOTHER}") from error
    with only_one(folder, f"{folder}: another t2t-translate-all is at work there"):
        _check_same(folder, run, _origin(model_dir, lines, options), model_dir / run.vocabulary)
        steps = _Translations(values, model_dir, run, folder, options, lines).all()
    if not steps:
        least = f" of {values.min_steps} steps or more" if values.min_steps else ""
        raise T2TError(
            f"no whole checkpoint{least} in {model_dir}: train with t2t-trainer, or --wait_minutes"
        )
    print(f"{len(steps)} translations of {len(lines):,} lines in {folder}, steps {steps[0]} to {steps[-1]}")
    if has_bleu:
        print(f"next: {command_line('t2t-bleu', translations_dir=folder, reference='REFERENCE')}")


def _options(values: flags.FlagValues, run: Run) -> DecodeHParams:
    """`--decode_hparams`, `--beam_size` and `--alpha` on top of the problem's own."""
    own = (f"{name}={values[name].value}" for name in FROM_T2T if values[name].value is not None)
    text = ",".join(filter(None, [values.decode_hparams, *own]))
    options = run_flags.decode_options(text, run)
    for name in NOT_PLAIN:
        if getattr(options, name):
            raise T2TError(
                f"decode_hparams: {name} is for t2t-decoder: translations are one output a line here"
            )
    return options


def _origin(model_dir: Path, lines: list[str], options: DecodeHParams) -> dict[str, Any]:
    """What translations come from, by the flag that says so."""
    how = dataclasses.asdict(options)
    for name in (*NOT_PLAIN, "batch_size"):
        del how[name]
    source = hashlib.sha256(to_bytes(lines)).hexdigest()
    return {"model_dir": str(model_dir.resolve()), "source": f"sha256:{source}", **how}


def _check_same(folder: Path, run: Run, origin: dict[str, Any], began: Path) -> None:
    """Checks that what is in a folder has this origin, or else writes it down there.

    The file is as old as `began`: as the training. TensorBoard counts the time of BLEU from there.
    """
    path = folder / f"{run.problem}-flags.json"
    if not path.exists():
        checked_json.save(path, origin)
        time = began.stat().st_mtime_ns
        os.utime(path, ns=(time, time))
        return
    found = checked_json.load(path, f"remove it, or {ANOTHER}")
    for name, value in origin.items():
        if found.get(name) != value:
            raise T2TError(
                f"{folder} holds translations with {name}={found.get(name)}, not {value}: {ANOTHER}"
            )


class _Translations:
    """Makes those that are missing, one after the other, with one model that takes each one's weights."""

    def __init__(
        self,
        values: flags.FlagValues,
        model_dir: Path,
        run: Run,
        folder: Path,
        options: DecodeHParams,
        lines: list[str],
    ) -> None:
        self._values, self._model_dir, self._folder = values, model_dir, folder
        self._stem, self._options, self._lines = run.problem, options, lines
        self._translator: Translator | None = None

    def all(self) -> list[int]:
        """The steps of those that are there now."""
        from t2t_revival.training.checkpoint_file import DamagedError, GoneError
        from t2t_revival.training.checkpoints import list_checkpoints

        steps = []
        values, model_dir = self._values, self._model_dir
        for checkpoint in waiting.following(
            lambda: list_checkpoints(model_dir),
            values.wait_minutes,
            f"a checkpoint in {model_dir}",
            values.min_steps,
        ):
            try:
                self._make(checkpoint)
            except DamagedError as error:
                run_flags.say_left_out(error)
                continue
            except GoneError:
                say(f"step {checkpoint.step}: removed by the training meanwhile, left out")
                continue
            steps.append(checkpoint.step)
        return steps

    def _make(self, checkpoint: Checkpoint) -> None:
        from t2t_revival.training.checkpoint_file import written_at

        path = self._folder / f"{self._stem}-{checkpoint.step}"
        if path.exists():
            print(f"step {checkpoint.step}: {path}, there already", flush=True)
            return
        say(f"step {checkpoint.step}: translating")
        time = written_at(checkpoint.path)
        first = self._translator is None
        translator = self._with(checkpoint)
        with output_to(path, mtime_ns=time) as output:
            translate(translator, self._lines, self._values.source, output, warn_of_cuts=first)
        print(f"step {checkpoint.step}: {path}", flush=True)

    def _with(self, checkpoint: Checkpoint) -> Translator:
        """A translator with the weights of a checkpoint."""
        if self._translator is not None:
            self._translator.take(checkpoint)
            return self._translator
        common.load_tensorflow(self._values)
        from t2t_revival.decoding.translator import Translator

        self._translator = Translator.load(
            self._model_dir,
            str(checkpoint.path),
            self._options,
            common.streams(),
            frozen=False,
        )
        return self._translator


if __name__ == "__main__":
    sys.exit(main())

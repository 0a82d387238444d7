"""`t2t-translate-all`: translates a file with each checkpoint of a training."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError
from t2t_revival.cli.support import command, problem_flags, run_flags, tensorflow_setup, wait_flags
from t2t_revival.cli.support.field_flags import FlagFields, define_fields, field_values
from t2t_revival.cli.support.messages import ProgressBar, say, say_skipped
from t2t_revival.cli.support.text_files import check_outputs, named_files, read_flag
from t2t_revival.decoding.checkpoint_translations import CheckpointTranslations
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder

USAGE = """
t2t-translate-all --model_dir=DIR --source=FILE [--translations_dir=DIR/translations] [--wait_minutes=20]

Translates a file with each checkpoint of a training, also while the training is running, or with each average
of t2t-avg-all. The translation by the checkpoint of step 1000 goes to translations_dir/PROBLEM-1000, where
t2t-bleu --translations_dir reads it; existing translations are kept. After an interruption, even kill -9, the
same command resumes.
"""
FOLDER = "translations"  # T2T's
DECODE_FLAGS: FlagFields = {"beam_size": "beam_size", "alpha": "alpha"}  # T2T's; fields of DecodeHParams


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-translate-all; names are T2T's where T2T had them."""
    values = command.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    flags.DEFINE_alias("model_dir", "output_dir", flag_values=values)
    command.define(
        values,
        None,
        source="Text to translate, a sentence a line, plain or .gz; - is the standard input.",
        translations_dir=f"Folder for the translations; by default MODEL_DIR/{FOLDER}.",
    )
    run_flags.define_decode_hparams(values)
    define_fields(values, DecodeHParams, DECODE_FLAGS, optional=True)
    wait_flags.define_min_steps(values, "checkpoint")
    wait_flags.define(values, "checkpoint")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _translate_all, argv)


def _translate_all(values: flags.FlagValues) -> None:
    model_dir, run = run_flags.open_run(values)
    if not values.source:
        raise T2TError("--source=FILE is missing: the text to translate")
    own = (f"{name}={value}" for name, value in field_values(values, DECODE_FLAGS).items())
    options = run_flags.decode_options(",".join(filter(None, [values.decode_hparams, *own])), run)
    is_text = registry.problem(run.problem).targets_are_text
    folder = Path(values.translations_dir or model_dir / FOLDER).expanduser()
    made = {f"the translation {path}": path for path in folder.glob(f"{run.problem}-*")}
    check_outputs(named_files(values, "source"), made)
    lines = read_flag(values, "source")
    with ProgressBar("sentences") as bar:
        translations = CheckpointTranslations(
            ModelFolder(model_dir),
            folder,
            lines,
            values.source,
            options,
            tensorflow_setup.num_parallel_batches,
            bar.show_decoding,
            say,
        )
        with translations.open():
            steps = _translate(values, model_dir, translations)
    if not steps:
        at_least = f" of {values.min_steps} steps or more" if values.min_steps else ""
        raise T2TError(
            f"no valid checkpoint{at_least} in {model_dir}: train with t2t-trainer, or give --wait_minutes"
        )
    print(f"{len(steps)} translations of {len(lines):,} lines in {folder}, steps {steps[0]} to {steps[-1]}")
    if is_text:
        print(f"next: {CommandLine('t2t-bleu', translations_dir=folder, reference='REFERENCE')}")


def _translate(values: flags.FlagValues, model_dir: Path, translations: CheckpointTranslations) -> list[int]:
    """Translates with each checkpoint that has no translation yet; returns the steps of all translations."""
    steps = []
    for checkpoint in wait_flags.step_files(
        lambda: list_checkpoints(model_dir),
        values.wait_minutes,
        f"a checkpoint in {model_dir}",
        values.min_steps,
    ):
        path, note = translations.path(checkpoint), ", there already"
        if not path.exists():
            say(f"step {checkpoint.step}: translating")
            tensorflow_setup.load_backend(values)
            try:
                translations.translate(checkpoint)
            except (CorruptCheckpointError, CheckpointNotFoundError) as error:
                say_skipped(checkpoint, error)
                continue
            note = ""
        steps.append(checkpoint.step)
        print(f"step {checkpoint.step}: {path}{note}", flush=True)
    return steps


if __name__ == "__main__":
    sys.exit(main())

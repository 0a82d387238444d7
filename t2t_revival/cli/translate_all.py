"""`t2t-translate-all`: translates a file with each checkpoint of a training.

t2t-translate-all --model_dir=DIR --source=FILE [--translations_dir=DIR/translations] [--wait_minutes=20]

Translates a file with each checkpoint of a training, also while the training is running, or with each average
of t2t-avg-all. The translation by the checkpoint of step 1000 goes to translations_dir/PROBLEM-1000, where
t2t-bleu --translations_dir reads it; existing translations are kept. After an interruption, even kill -9, the
same command resumes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError
from t2t_revival.cli.support import tensorflow_setup, wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import ProgressBar, say, say_skipped
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS, RunFlags, decode_options
from t2t_revival.cli.support.text_files import check_outputs, read_lines
from t2t_revival.decoding.files.checkpoint_translations import CheckpointTranslations
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.decoded import known_language
from t2t_revival.model_folder import ModelFolder

FOLDER = "translations"  # T2T's


@dataclass(frozen=True)
class TranslateFlags(RunFlags, NormalizeFlags):
    """The flags of t2t-translate-all; names are T2T's where T2T had them."""

    aliases = (("model_dir", "output_dir"),)
    source: str = flag(
        "",
        "Text to translate, a sentence a line, plain or .gz; - is the standard input.",
        missing="=FILE is missing: the text to translate",
        file=READ,
    )
    translations_dir: str = flag("", f"Folder for the translations; by default MODEL_DIR/{FOLDER}.")
    decode_hparams: str = flag("", DECODE_HPARAMS)
    beam_size: int | None = flag(
        None, "Hypotheses kept at each position, 1 is greedy; maximum number of samples."
    )
    alpha: float | None = flag(None, "Exponent of the length penalty.")
    min_steps: int = flag(0, wait_flags.MIN_STEPS)
    wait_minutes: int = flag(0, wait_flags.waiting_for("checkpoint"))


def _translate_all(flags: TranslateFlags) -> None:
    model = flags.open_model()
    own = [f"{name}={flags.given[name]}" for name in ("beam_size", "alpha") if name in flags.given]
    given = ",".join(filter(None, [flags.decode_hparams, *own]))
    options = decode_options(given, model.run, flags.normalize)
    problem = registry.problem(model.run.problem)
    folder = Path(flags.translations_dir or model.path / FOLDER).expanduser()
    made = {f"the translation {path}": path for path in folder.glob(f"{model.run.problem}-*")}
    check_outputs(flags.files(READ), made)
    lines = read_lines(flags.source, "source")
    with ProgressBar("sentences") as bar:
        translations = CheckpointTranslations(
            model,
            folder,
            lines,
            flags.source,
            options,
            tensorflow_setup.num_parallel_batches,
            bar.show_decoding,
            say,
        )
        with translations.open():
            steps = _translate(flags, model, translations)
    if not steps:
        at_least = f" of {flags.min_steps} steps or more" if flags.min_steps else ""
        raise T2TError(
            f"no valid checkpoint{at_least} in {model.path}: train with t2t-trainer, or give --wait_minutes"
        )
    print(f"{len(steps)} translations of {len(lines):,} lines in {folder}, steps {steps[0]} to {steps[-1]}")
    if problem.targets_are_text:
        files = {"translations_dir": folder, "reference": "REFERENCE"}
        language = known_language(problem.target_lang)
        print(f"next: {CommandLine('t2t-bleu', **files, target_lang=language)}")


def _translate(flags: TranslateFlags, model: ModelFolder, translations: CheckpointTranslations) -> list[int]:
    """Translates with each checkpoint that has no translation yet; returns the steps of all translations."""
    steps = []
    for checkpoint in wait_flags.step_files(
        lambda: list_checkpoints(model.path),
        flags.wait_minutes,
        f"a checkpoint in {model.path}",
        flags.min_steps,
    ):
        path, note = translations.path(checkpoint), ", there already"
        if not path.exists():
            say(f"step {checkpoint.step}: translating")
            tensorflow_setup.load_backend()
            try:
                translations.translate(checkpoint)
            except (CorruptCheckpointError, CheckpointNotFoundError) as error:
                say_skipped(checkpoint, error)
                continue
            note = ""
        steps.append(checkpoint.step)
        print(f"step {checkpoint.step}: {path}{note}", flush=True)
    return steps


main = Command(TranslateFlags, _translate_all, __doc__)

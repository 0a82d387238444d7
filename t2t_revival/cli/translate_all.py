"""`t2t-translate-all`: translates a file with each checkpoint of a training.

t2t-translate-all --model_dir=DIR --source=FILE [--translations_dir=DIR/translations] [--wait_minutes=20]

Translates a file with each checkpoint of a training, also while the training is running, or with each average
of t2t-avg-all. The translation by the checkpoint of step 1000 goes to translations_dir/PROBLEM-1000, where
t2t-bleu --translations_dir reads it; existing translations are kept. After an interruption, even kill -9, the
same command resumes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival import registry
from t2t_revival.checkpoints.directory import Checkpoint
from t2t_revival.checkpoints.file import CheckpointNotFoundError, CorruptCheckpointError, written_at
from t2t_revival.cli.support import tensorflow_setup, wait_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import READ, flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import ProgressBar, say, say_skipped
from t2t_revival.cli.support.run_flags import DECODE_HPARAMS, RunFlags, decode_options
from t2t_revival.cli.support.text_files import check_outputs, read_lines
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.files.part_file import part_file
from t2t_revival.decoding.files.resumable import Report, translate_lines
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.outputs import to_bytes
from t2t_revival.decoding.trained_models import TrainedModel, load_translator
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.evaluation.decoded import known_language
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils import checked_json
from t2t_revival.utils.files import exclusive_lock, writing
from t2t_revival.utils.made_of import MadeOf, fingerprint

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

FOLDER = "translations"  # T2T's
ANOTHER = "give another --translations_dir"


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
    capabilities.check(options.asked(), capabilities.TRANSLATIONS)
    with writing(f"to {folder}", ANOTHER):
        folder.mkdir(parents=True, exist_ok=True)
    busy = f"{folder}: another t2t-translate-all is writing there: wait until it ends, or {ANOTHER}"
    with exclusive_lock(folder, busy):
        _check_origin(folder, model, lines, options)
        steps = _translate(flags, model, folder, lines, options)
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


def _check_origin(folder: Path, model: ModelFolder, lines: list[str], options: DecodeHParams) -> None:
    """Checks what the folder's translations were made from, or else writes it down there.

    The file gets the time at which the training began, from which TensorBoard counts the time of BLEU.
    """
    path = folder / f"{model.run.problem}-flags.json"
    source = f"sha256:{fingerprint(to_bytes(lines))}"
    origin = MadeOf({"model_dir": str(model.path.resolve()), "source": source, **options.of_texts})
    if path.exists():
        stored = MadeOf(checked_json.load(path, f"remove it, or {ANOTHER}"))
        stored.check(origin, f"{folder} holds translations with", ANOTHER)
        return
    checked_json.save(path, origin.values)
    time = (model.path / model.run.vocabulary).stat().st_mtime_ns
    os.utime(path, ns=(time, time))


def _translate(
    flags: TranslateFlags, model: ModelFolder, folder: Path, lines: list[str], options: DecodeHParams
) -> list[int]:
    """Translates with each checkpoint that has no translation yet; returns the steps of all translations.

    A translation gets the time of its checkpoint. Only the first one warns of lines that are too long: they
    are the same for all.
    """
    steps: list[int] = []
    translator: Translator | None = None
    for checkpoint in wait_flags.new_checkpoints(model.path, flags.wait_minutes, flags.min_steps):
        path, note = folder / f"{model.run.problem}-{checkpoint.step}", ", there already"
        if not path.exists():
            say(f"step {checkpoint.step}: translating")
            is_first, note = translator is None, ""
            try:
                time = written_at(checkpoint.path)
                translator = _loaded(checkpoint, translator, model, options)
                with ProgressBar("sentences") as bar, part_file(path, say, time) as output:
                    report = Report(flags.source, say, bar.show_decoding, of_inputs=is_first)
                    translate_lines(translator, Lines(lines), output, report)
            except (CorruptCheckpointError, CheckpointNotFoundError) as error:
                say_skipped(checkpoint, error)
                continue
        steps.append(checkpoint.step)
        print(f"step {checkpoint.step}: {path}{note}", flush=True)
    return steps


def _loaded(
    checkpoint: Checkpoint, translator: Translator | None, model: ModelFolder, options: DecodeHParams
) -> Translator:
    """Returns the translator with the weights of a checkpoint; `None` makes it."""
    if translator:
        translator.load_checkpoint(checkpoint)
        return translator
    tensorflow_setup.load_backend()
    return load_translator(
        [TrainedModel(model, checkpoint)],
        options,
        tensorflow_setup.num_parallel_batches(),
        constant_weights=False,
        on_note=say,
    )


main = Command(TranslateFlags, _translate_all, __doc__)

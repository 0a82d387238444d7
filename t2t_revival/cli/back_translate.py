"""`t2t-back-translate`: makes a corpus of monolingual text with a model of the other direction."""

from __future__ import annotations

import sys
from pathlib import Path

from absl import flags

from t2t_revival import registry
from t2t_revival.back_translation.corpus import BackTranslation, MonolingualText
from t2t_revival.back_translation.noise import WordNoise
from t2t_revival.checkpoints.selection import taking_next
from t2t_revival.cli.support import command, engine_flags, run_flags
from t2t_revival.cli.support.messages import ProgressBar, say, warn_of_corruption
from t2t_revival.cli.support.text_files import STANDARD_STREAM
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.shards import Shard
from t2t_revival.decoding.trained_models import TrainedModel, load_translator
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder, Run

USAGE = """
t2t-back-translate --model_dir=DIR --mono=FILE[,FILE...] --corpus_dir=DIR [--method=beam|sampling|noised]

Translates text that has no translation, and writes a corpus for a model of the other direction: with a model
from German to English and German text, corpus_dir/train.en has the model's outputs and train.de the text.
After an interruption, even kill -9, the same command resumes.

With --decode_shards, several processes or machines share the text, each with its own --worker_id; the one
that finishes last writes the corpus.
"""
METHODS = BEAM, SAMPLING, NOISED = "beam", "sampling", "noised"


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-back-translate."""
    values = command.new_flags()
    run_flags.define_model(values)
    flags.DEFINE_alias("model_dir", "output_dir", flag_values=values)
    command.define(
        values,
        [],
        mono="Files of text in the language from which the model translates, a sentence a line; .gz too.",
    )
    command.define(
        values,
        None,
        corpus_dir="Folder for the corpus, which --data_source can name.",
        noise=f"Noise of --method=noised; by default {WordNoise()}: the probabilities that a word is left "
        "out or replaced by _, the places by which a word moves at most, and the seed of all these.",
    )
    flags.DEFINE_enum(
        "method",
        BEAM,
        METHODS,
        "beam: the best output by beam search; sampling: an output drawn from the model; noised: the best "
        "output with noise of words.",
        flag_values=values,
    )
    run_flags.define_decode_hparams(values)
    engine_flags.define(values)
    run_flags.define_shards(values, "The corpus is that of a single one.")
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _back_translate, argv)


def _back_translate(values: flags.FlagValues) -> None:
    _check_flags(values)
    shard = Shard(values.worker_id, values.decode_shards)
    model_dir, run = run_flags.open_run(values)

    def decoded() -> BackTranslation:
        corpus = _corpus(values, model_dir, run)
        if not (corpus.stored_counts() or corpus.are_complete()):
            _decode(values, corpus, shard)
        return corpus

    corpus = taking_next(decoded, values.checkpoint, warn_of_corruption)
    counts = corpus.make_corpus()
    if counts is None:
        say(f"this worker is done; the last of the {shard.count} to finish writes the corpus")
        return
    outputs, texts = corpus.corpus_files
    print(f"corpus    {outputs} of the model's outputs, {texts} of the text")
    print(f"pairs     {counts['pairs']:,} of {counts['lines']:,} lines")
    print(
        f"left out  {counts['left_out']:,} blank or longer than max_length, {counts['empty_outputs']:,} with "
        "an empty output"
    )
    print(f"next: {_next(values, corpus)}")


def _check_flags(values: flags.FlagValues) -> None:
    """Rejects flags that are missing, wrong, or without effect beside others."""
    if not values.mono:
        raise T2TError("--mono=FILE is missing: text in the language from which the model translates")
    if STANDARD_STREAM in values.mono:
        raise T2TError("--mono=-: the text is read more than once; name files")
    if not values.corpus_dir:
        raise T2TError("--corpus_dir=DIR is missing: the folder for the corpus")
    if values.noise and values.method != NOISED:
        raise T2TError(f"--noise has no effect with --method={values.method}: give --method={NOISED}")
    if values.method == SAMPLING and engine_flags.uses_ctranslate2(values):
        raise T2TError(
            f"--engine={values.engine} does not support --method={SAMPLING}: use --engine=tensorflow"
        )


def _corpus(values: flags.FlagValues, model_dir: Path, run: Run) -> BackTranslation:
    """Returns the corpus that the flags ask for, made or not."""
    folder = Path(values.corpus_dir).expanduser()
    if folder.resolve() == model_dir.resolve():
        raise T2TError(f"--corpus_dir={folder} is the model's own folder: give another")
    problem = registry.problem(run.problem)
    options, noise = _options(values, run), _noise(values)
    model = TrainedModel.select(ModelFolder(model_dir), values.checkpoint, warn_of_corruption)
    say(f"reading {', '.join(values.mono)}")
    try:
        text = MonolingualText.open([Path(file).expanduser() for file in values.mono])
    except OSError as error:
        raise T2TError(f"--mono={error.filename}: {error.strerror}") from error
    engine = f"{values.engine}, {values.precision}"
    return BackTranslation(folder, model, problem, run.fingerprint, options, text, noise, engine)


def _options(values: flags.FlagValues, run: Run) -> DecodeHParams:
    samples = values.method == SAMPLING
    own = ["sampling_method=random"] if samples else []
    options = run_flags.decode_options(",".join([*own, *filter(None, [values.decode_hparams])]), run)
    if options.samples and not samples:
        raise T2TError(f"decode_hparams: sampling_method=random is for --method={SAMPLING}; leave it out")
    return options


def _noise(values: flags.FlagValues) -> WordNoise | None:
    if values.method != NOISED:
        return None
    try:
        return WordNoise.parse(values.noise or "")
    except T2TError as error:
        raise T2TError(f"--noise: {error}") from error


def _decode(values: flags.FlagValues, corpus: BackTranslation, shard: Shard) -> None:
    """Decodes the share of one worker."""
    engine_flags.load_backend(values)
    translator = load_translator(
        [corpus.model],
        corpus.options,
        engine_flags.num_parallel_batches(values),
        engine=values.engine,
        precision=values.precision,
        on_note=say,
    )
    say(f"decoding {corpus.text.count:,} lines with {corpus.model.checkpoint.path}")
    with ProgressBar("sentences") as bar:
        corpus.decode(translator, shard, bar.update, say)


def _next(values: flags.FlagValues, corpus: BackTranslation) -> CommandLine:
    """The command that makes data of the corpus and of another one, which only the user knows."""
    name = corpus.problem.name
    forward = (
        name.removesuffix(registry.REVERSED) if corpus.problem.was_reversed else name + registry.REVERSED
    )
    return CommandLine(
        "t2t-datagen",
        problem="PROBLEM" if corpus.problem.one_way() else forward,
        data_source=f"parallel=FOLDER,back={corpus.folder}",
        data_dir="DATA_DIR",
        t2t_usr_dir=values.t2t_usr_dir,
    )


if __name__ == "__main__":
    sys.exit(main())

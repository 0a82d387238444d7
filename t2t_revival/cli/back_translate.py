"""`t2t-back-translate`: makes a corpus of monolingual text with a model of the other direction.

t2t-back-translate --model_dir=DIR --mono=FILE[,FILE...] --corpus_dir=DIR [--method=beam|sampling|noised]

Translates text that has no translation, and writes a corpus for a model of the other direction: with a model
from German to English and German text, corpus_dir/train.en has the model's outputs and train.de the text.
After an interruption, even kill -9, the same command resumes.

With --decode_shards, several processes or machines share the text, each with its own --worker_id; the one
that finishes last writes the corpus.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from t2t_revival import registry
from t2t_revival.addons.back_translation.corpus import BackTranslation, MonolingualText
from t2t_revival.addons.back_translation.noise import WordNoise
from t2t_revival.checkpoints.selection import taking_next
from t2t_revival.cli.support import run_flags
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.engine_flags import Engine, engine_flags
from t2t_revival.cli.support.flags import flag
from t2t_revival.cli.support.line_flags import NormalizeFlags
from t2t_revival.cli.support.messages import ProgressBar, say, warn_of_corruption
from t2t_revival.cli.support.text_files import STANDARD_STREAM
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.decoding.trained_models import TrainedModel
from t2t_revival.errors import CommandLine, T2TError
from t2t_revival.model_folder import ModelFolder, Run

METHODS = BEAM, SAMPLING, NOISED = "beam", "sampling", "noised"


@dataclass(frozen=True)
class BackTranslateFlags(run_flags.ModelFlags, run_flags.ShardFlags, NormalizeFlags):
    aliases = (("model_dir", "output_dir"),)
    needs = (("noise", f"method={NOISED}"),)
    mono: tuple[str, ...] = flag(
        (),
        "Files of text in the language from which the model translates, a sentence a line; .gz too.",
        missing="=FILE is missing: text in the language from which the model translates",
    )
    corpus_dir: str = flag(
        "",
        "Folder for the corpus, which --data_source can name.",
        missing="=DIR is missing: the folder for the corpus",
    )
    noise: str = flag(
        "",
        f"Noise of --method=noised; by default {WordNoise()}: the probabilities that a word is left out or "
        "replaced by _, the places by which a word moves at most, and the seed of all these.",
    )
    method: str = flag(
        BEAM,
        "beam: the best output by beam search; sampling: an output drawn from the model; noised: the best "
        "output with noise of words.",
        choices=METHODS,
    )
    decode_hparams: str = flag("", run_flags.DECODE_HPARAMS)
    engine: Engine = engine_flags()
    decode_shards: int = run_flags.shards_flag("The corpus is that of a single one.")


def _back_translate(flags: BackTranslateFlags) -> None:
    _check_flags(flags)
    shard = flags.shard()
    trained = flags.open_model()

    def decoded() -> BackTranslation:
        corpus = _corpus(flags, trained)
        if not (corpus.stored_counts() or corpus.are_complete()):
            translator = flags.engine.load_translator([corpus.model], corpus.options)
            say(f"decoding {corpus.text.count:,} lines with {corpus.model.checkpoint.path}")
            with ProgressBar("sentences") as bar:
                corpus.decode(translator, shard, bar.update, say)
        return corpus

    corpus = taking_next(decoded, flags.checkpoint, warn_of_corruption)
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
    print(f"next: {_next(flags, corpus)}")


def _check_flags(flags: BackTranslateFlags) -> None:
    """Rejects flags that are wrong, or without effect beside others."""
    if STANDARD_STREAM in flags.mono:
        raise T2TError("--mono=-: the text is read more than once; name files")
    flags.engine.check()
    if flags.method == SAMPLING:
        capabilities.check({"sampling_method": f"--method={SAMPLING}"}, flags.engine.place)


def _corpus(flags: BackTranslateFlags, trained: ModelFolder) -> BackTranslation:
    """Returns the corpus that the flags ask for, made or not."""
    folder = Path(flags.corpus_dir).expanduser()
    if folder.resolve() == trained.path.resolve():
        raise T2TError(f"--corpus_dir={folder} is the model's own folder: give another")
    problem = registry.problem(trained.run.problem)
    options = _options(flags, trained.run)
    try:
        noise = WordNoise.parse(flags.noise) if flags.method == NOISED else None
    except T2TError as error:
        raise T2TError(f"--noise: {error}") from error
    model = TrainedModel.select(trained, flags.checkpoint, warn_of_corruption)
    say(f"reading {', '.join(flags.mono)}")
    try:
        text = MonolingualText.open([Path(file).expanduser() for file in flags.mono])
    except OSError as error:
        raise T2TError(f"--mono={error.filename}: {error.strerror}") from error
    return BackTranslation(
        folder, model, problem, trained.run.fingerprint, options, text, noise, str(flags.engine)
    )


def _options(flags: BackTranslateFlags, run: Run) -> DecodeHParams:
    samples = flags.method == SAMPLING
    own = ["sampling_method=random"] if samples else []
    given = ",".join([*own, *filter(None, [flags.decode_hparams])])
    options = run_flags.decode_options(given, run, flags.normalize)
    if options.samples and not samples:
        raise T2TError(f"decode_hparams: sampling_method=random is for --method={SAMPLING}; leave it out")
    return options


def _next(flags: BackTranslateFlags, corpus: BackTranslation) -> CommandLine:
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
        t2t_usr_dir=flags.t2t_usr_dir,
    )


main = Command(BackTranslateFlags, _back_translate, __doc__)

"""`t2t-decoder`: translates a file, a split, or typed lines, and scores given targets.

t2t-decoder --problem=translate_ende --hparams_set=base --decode_from_file=in.en --decode_to_file=out.de

Decodes a file, or lines that are typed (--decode_interactive), or else the dev or test split, with its BLEU
or F1. Each line of input has one line of output, in the same order. Unfinished output is in FILE.part; after
an interruption, even kill -9, the same command resumes.

With --decode_hparams="return_beams=True" a line holds beam_size outputs, best first, joined by tabs; outputs
that the search did not finish are empty, and a blank line stays blank. With write_beam_scores=True each
output is followed by a tab and its score (-inf for the empty ones); with sampling_method=random outputs are
sampled from the model. Parsing reads sentences as people write them, or, with
--decode_hparams="tokenized=True", with spaces between words. --score_file=FILE decodes nothing: it computes
the log-probability of each target in a file of source, tab, target.

--decode_hparams="alignments=pharaoh" writes after each output which of its words translates which of the
source, 0-0 1-2; --output_format=jsonl writes objects, with token_scores=True and alternatives=5 also how
likely each token is, and what else was.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.engine_flags import Engine, engine_flags
from t2t_revival.cli.support.flags import READ, WRITTEN, flag
from t2t_revival.cli.support.line_flags import LineFlags
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.run_flags import (
    DECODE_HPARAMS,
    SPLIT_DIR,
    EnsembleFlags,
    ShardFlags,
    decode_options,
    shards_flag,
)
from t2t_revival.cli.support.text_files import (
    check_outputs,
    drawing,
    name_of,
    output_path,
    output_to,
    read_lines,
    read_part,
    split_at_tab,
)
from t2t_revival.cli.support.typed_lines import translate_typed
from t2t_revival.decoding import capabilities
from t2t_revival.decoding.files.part_file import part_file
from t2t_revival.decoding.files.resumable import Report, score_pairs, translate_lines
from t2t_revival.decoding.files.shards import Shard
from t2t_revival.decoding.lines.pipeline import Lines
from t2t_revival.decoding.outputs import summarize, to_bytes
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles, language_of, report, score_outputs, scoring_command
from t2t_revival.model_folder import ModelFolder
from t2t_revival.utils.files import buffered_write, is_special, writing

if TYPE_CHECKING:
    from t2t_revival.decoding.options import DecodeHParams
    from t2t_revival.decoding.translator import Translator

INPUTS = ("decode_from_file", "decode_interactive", "score_file")


@dataclass(frozen=True)
class DecoderFlags(EnsembleFlags, LineFlags, ShardFlags):
    exclusive = (
        *combinations(INPUTS, 2),
        ("decode_interactive", "decode_to_file"),
        *product(INPUTS, ("dataset_split", "eval_use_test_set", "log_examples")),
        *product(
            ("score_file",),
            ("pretty", "partial_targets", "split_sentences", "markup", "input_format", "terminology"),
        ),
        *product(("eval_use_test_set",), ("dataset_split=train", "dataset_split=dev")),
        *product(("output_format=jsonl",), ("pretty", "decode_interactive")),
        *product(("decode_shards",), ("decode_interactive", "score_file")),
    )
    features = LineFlags.features | {"ensemble": "ensemble", "score_file": "scores"}
    needs = (
        *(
            (name, "decode_from_file", "decode_interactive")
            for name in ("partial_targets", "terminology", "pretty")
        ),
        ("output_format=jsonl", "decode_from_file", "score_file"),
    )
    decode_hparams: str = flag("", DECODE_HPARAMS)
    engine: Engine = engine_flags()
    data_dir: str | None = flag(None, SPLIT_DIR)
    decode_to_file: str = flag(
        "",
        "File for translations or scores; by default, or with -, the standard output. Translations of a "
        "split always go to a file, with inputs and references beside it; by default in output_dir/decoded.",
        file=WRITTEN,
    )
    score_file: str = flag(
        "",
        "Pairs to score, source TAB target on each line; - is the standard input. Writes the natural "
        "logarithm of each target's probability, EOS included, without a length penalty.",
        file=READ,
    )
    decode_interactive: bool = flag(False, "Translate typed lines.")
    eval_use_test_set: bool = flag(False, "Equal to --dataset_split=test.")
    dataset_split: str = flag(
        "", "Split to translate where no file is given; by default dev.", choices=("", "train", "dev", "test")
    )
    log_examples: int = flag(10, "Examples of a split that are printed.")
    decode_shards: int = shards_flag(
        "Their output files are decode_to_file with 000, 001, ... appended; joined in this order they are "
        "all outputs."
    )

    @property
    def is_of_split(self) -> bool:
        return not (self.decode_from_file or self.decode_interactive or self.score_file)


def _decoder(flags: DecoderFlags) -> None:
    _check_flags(flags)
    shard = flags.shard()
    read = flags.files(READ)
    parts = {f"{name}{shard.suffix}": f"{file}{shard.suffix}" for name, file in read.items()}
    check_outputs({**parts, **read}, _outputs(flags, shard))
    folder = flags.open_model()
    check_outputs(flags.model_files(folder), _outputs(flags, shard))
    options = _options(flags, folder)

    def load() -> Translator:
        flags.engine.load_backend(typed=flags.decode_interactive)
        return _load(flags, folder, options)

    if flags.score_file:
        _score_file(flags, load)
    elif flags.decode_interactive:
        translator = load()
        translate_typed(flags, translator, drawing(translator.problem) if flags.pretty else None)
    elif flags.decode_from_file:
        _decode_file(flags, shard, load)
    else:
        _decode_split(flags, shard, folder, load)


def _check_flags(flags: DecoderFlags) -> None:
    """Rejects combinations in which one flag has no effect."""
    path = output_path(flags.decode_to_file)
    if path and is_special(path) and (flags.is_of_split or flags.decode_shards > 1):
        raise T2TError(f"--decode_to_file={path}: other files are written beside it: name a file")
    if flags.is_of_split and flags.decode_to_file and not path:
        raise T2TError(
            f"--decode_to_file={flags.decode_to_file}: the split's report goes to the standard output; "
            "name a file"
        )
    if flags.ensemble and flags.is_of_split and not flags.decode_to_file:
        raise T2TError("--decode_to_file is missing: the outputs of an ensemble belong to no output_dir")
    flags.check_lines(typed=flags.decode_interactive)


def _outputs(flags: DecoderFlags, shard: Shard) -> dict[str, str | Path]:
    """The files of `--decode_to_file`, by their names for errors."""
    joined = output_path(flags.decode_to_file)
    if joined is None:
        return {}
    flag = f"--decode_to_file={flags.decode_to_file}"
    files = SplitFiles.beside(joined) if flags.is_of_split else (joined,)
    parts = {f"{path} of {flag}": path for file in files for path in (file, shard.path(file))}
    return {flag: joined, **parts}


def _options(flags: DecoderFlags, folder: ModelFolder) -> DecodeHParams:
    """Returns the settings, and checks them before anything large is loaded."""
    options = replace(decode_options(flags.decode_hparams, folder.run), **flags.settings)
    flags.engine.check()
    places = flags.engine.place, *capabilities.places_of(folder.hparams)
    capabilities.check(options.asked() | flags.asked, *places)
    flags.check_details(options, bool(flags.score_file))
    return options


def _load(flags: DecoderFlags, folder: ModelFolder, options: DecodeHParams) -> Translator:
    translator, path, step = flags.load_translator(
        folder,
        options,
        num_parallel_batches=flags.engine.num_parallel_batches(flags.decode_interactive),
        engine=flags.engine.name,
        precision=flags.engine.precision,
        on_note=say,
    )
    say(f"decoding with {path} ({step})")
    if translator.problem is None:
        say(
            f"warning: the problem {folder.run.problem} is not registered, so its changes to inputs and "
            "outputs are not made: if it has any, give --t2t_usr_dir"
        )
    return translator


def _decode_file(flags: DecoderFlags, shard: Shard, load: Callable[[], Translator]) -> None:
    joined = output_path(flags.decode_to_file)
    path = joined and shard.path(joined)
    lines, first_line, name = read_part(flags.decode_from_file, shard)
    asked = flags.lines_of(lines, name, first_line)
    with output_to(path) as output, ProgressBar("sentences") as bar:
        translator = load()
        translate_lines(
            translator,
            asked,
            output,
            Report(name, say, bar.show_decoding),
            draw=drawing(translator.problem) if flags.pretty else None,
            as_json=flags.writes_json,
        )
    if joined is None or path is None or is_special(path):
        return
    say(f"outputs  {path}")
    if shard.count > 1:
        say(f"next, when all {shard.count} workers are done: {shard.joining(joined)}")
        return
    problem = translator.problem
    plain = not (flags.pretty or flags.writes_json or translator.options.has_columns)
    if plain and problem and (scoring := scoring_command(problem, joined, problem.target_lang)):
        say(f"next: {scoring}")


def _decode_split(
    flags: DecoderFlags, shard: Shard, folder: ModelFolder, load: Callable[[], Translator]
) -> None:
    """Decodes a split, and writes inputs and references beside the outputs; prints the BLEU or F1."""
    split = flags.dataset_split or ("test" if flags.eval_use_test_set else "dev")
    flags.engine.load_backend()
    data = folder.find_data(flags.data_dir)
    pairs = list(data.references(split))
    first, end = shard.bounds(len(pairs))
    part = split
    if shard.count > 1:
        say(shard.describe(len(pairs), f"the {split} split"))
        part = f"{split}, sentences {first + 1:,} to {end:,} of {len(pairs):,}"
    pairs = pairs[first:end]
    sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
    translator = load()
    files = _split_files(flags, folder, split, translator)
    written = SplitFiles(*map(shard.path, files))
    with ProgressBar("sentences") as bar, part_file(written.outputs, say) as output:
        asked = Lines(sources, preprocessed=True, first=first + 1)
        translate_lines(translator, asked, output, Report(f"the {split} split", say, bar.show_decoding))
        for path, lines in ((written.inputs, sources), (written.references, targets)):
            with buffered_write(path) as file:
                file.write(to_bytes(lines))
    outputs = written.outputs.read_bytes().decode().split("\n")[:-1]
    if translator.options.has_columns:
        outputs = [line.partition("\t")[0] for line in outputs]
    for (source, reference), text in list(zip(pairs, outputs, strict=True))[: flags.log_examples]:
        print(f"source     {source}\noutput     {text}\nreference  {reference}\n")
    language = language_of(data)
    if results := score_outputs(data.problem, outputs, targets, language) if pairs else {}:
        print(report(results, f"{part}, {len(outputs):,} sentences"))
    print(f"outputs    {written.outputs}\ninputs     {written.inputs}\nreference  {written.references}")
    if shard.count > 1:
        joining = "; ".join(map(shard.joining, files))
        print(f"next, when all {shard.count} workers are done: {joining}")
    elif results and not translator.options.has_columns:
        scoring = scoring_command(data.problem, written.outputs, language, str(written.references))
        print(f"next: {scoring}")


def _split_files(flags: DecoderFlags, folder: ModelFolder, split: str, translator: Translator) -> SplitFiles:
    """Names the files of a split, by default after split and step in output_dir/decoded, which is made."""
    if path := output_path(flags.decode_to_file):
        return SplitFiles.beside(path)
    assert translator.checkpoint is not None
    decoded = folder.path / "decoded"
    with writing(decoded, "give --decode_to_file"):
        decoded.mkdir(exist_ok=True)
    return SplitFiles.beside(decoded / f"{split}-{translator.checkpoint.step}.outputs")


def _score_file(flags: DecoderFlags, load: Callable[[], Translator]) -> None:
    """Writes the log-probability of each line's target; prints their mean and perplexity."""
    name = name_of(flags.score_file)
    pairs = [
        split_at_tab(line, name, number, required=True)
        for number, line in enumerate(read_lines(flags.score_file, "score_file"), start=1)
    ]
    path = output_path(flags.decode_to_file)
    with output_to(path) as output, ProgressBar("sentences") as bar:
        as_json = flags.writes_json
        report = Report(name, say, bar.show_decoding)
        scores = score_pairs(load(), pairs, output, report, as_json=as_json)
    say(summarize(scores))
    if path and not is_special(path):
        say(f"scores   {path}")
        pairs_file = Path(flags.score_file).expanduser()
        if pairs_file.is_file():  # a pipe is read already
            say(f"next: {shlex.join(['paste', str(path), str(pairs_file)])} | sort -g | head")


main = Command(DecoderFlags, _decoder, __doc__)

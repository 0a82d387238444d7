"""`t2t-decoder`: translates a file, a split, or typed lines, and scores given targets."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli.support import command, constraint_flags, engine_flags, run_flags
from t2t_revival.cli.support.messages import ProgressBar, say
from t2t_revival.cli.support.run_flags import JSONL
from t2t_revival.cli.support.text_files import (
    STANDARD_STREAM,
    check_one_standard_input,
    check_outputs,
    drawing,
    name_of,
    named_files,
    output_path,
    output_to,
    prompt,
    read_flag,
    read_part,
)
from t2t_revival.cli.support.typed_lines import answering
from t2t_revival.decoding.json_outputs import links_of
from t2t_revival.decoding.resumable import UNCHECKED, score_pairs, split_at_tab, translate_lines
from t2t_revival.decoding.shards import Shard
from t2t_revival.errors import T2TError
from t2t_revival.evaluation.decoded import SplitFiles, decode_split, metric_for
from t2t_revival.problems.text_problems import Text2TextProblem
from t2t_revival.training.run import Run
from t2t_revival.utils.files import is_special

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator

USAGE = """
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
SPLIT_FLAGS = ("dataset_split", "eval_use_test_set", "log_examples")
INPUTS = ("decode_from_file", "decode_interactive", "score_file")


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-decoder."""
    values = command.new_flags()
    run_flags.define_model(values)
    run_flags.define_decode_hparams(values)
    engine_flags.define(values)
    run_flags.define_text_options(values)
    run_flags.define_ensemble(values)
    constraint_flags.define(values)
    run_flags.define_split_dir(values)
    command.define(
        values,
        None,
        decode_from_file="Text to translate, a sentence a line, plain or .gz; - is the standard input.",
        decode_to_file="File for translations or scores; by default, or with -, the standard output. "
        "Translations of a split always go to a file, with inputs and references beside it; by default in "
        "output_dir/decoded.",
        score_file="Pairs to score, source TAB target on each line; - is the standard input. Writes the "
        "natural logarithm of each target's probability, EOS included, without a length penalty.",
    )
    command.define(
        values,
        False,
        decode_interactive="Translate typed lines.",
        partial_targets="Each line is source TAB beginning of the output. The tokens of the beginning, as "
        "the vocabulary splits it, are forced.",
        pretty="Parsing: draw trees where they fit, or else indent them.",
        eval_use_test_set="Equal to --dataset_split=test.",
    )
    run_flags.define_output_format(values)
    flags.DEFINE_enum(
        "dataset_split",
        "",
        ["", "train", "dev", "test"],
        "Split to translate where no file is given; by default dev.",
        flag_values=values,
    )
    command.define(values, 10, log_examples="Examples of a split that are printed.")
    run_flags.define_shards(
        values,
        "Their output files are decode_to_file with 000, 001, ... appended; joined in this order they are "
        "all outputs.",
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _decoder, argv)


def _decoder(values: flags.FlagValues) -> None:
    _check_flags(values)
    shard = Shard(values.worker_id, values.decode_shards)
    _check_files(values, shard)
    output_dir, run = run_flags.open_run(values)
    _check_model_files(values, shard, output_dir, run)

    def load() -> Translator:
        engine_flags.load_backend(values, typed=values.decode_interactive)
        return _load(values, output_dir, run)

    if values.score_file:
        _score_file(values, load)
    elif values.decode_interactive:
        translator = load()
        draw = drawing(translator.problem) if values.pretty else None
        terminology = constraint_flags.read_terminology(values)
        if values.terminology and translator.why_unchecked:
            say(f"warning: {UNCHECKED}{translator.why_unchecked}")
        answer = answering(translator, values.partial_targets, terminology)
        links = links_of if translator.options.alignments else None
        prompt(answer, translator.options.write_beam_scores, draw, links)
    elif values.decode_from_file:
        _decode_file(values, shard, load)
    else:
        _decode_split(values, shard, output_dir, run, load)


def _check_flags(values: flags.FlagValues) -> None:
    """Rejects combinations in which one flag has no effect."""
    for one, other in (
        *combinations(INPUTS, 2),
        ("decode_interactive", "decode_to_file"),
        *product(INPUTS, SPLIT_FLAGS),
        ("score_file", "pretty"),
        ("score_file", "partial_targets"),
        *product(("score_file", "partial_targets"), run_flags.TEXT_OPTIONS),
        *constraint_flags.CONFLICTS,
    ):
        if _is_set(values[one]) and _is_set(values[other]):
            raise T2TError(f"--{one} and --{other} cannot be combined: give one of them")
    if values.eval_use_test_set and values.dataset_split not in ("", "test"):
        raise T2TError(f"--eval_use_test_set and --dataset_split={values.dataset_split}: give one of them")
    path = output_path(values.decode_to_file)
    if path and is_special(path) and (_of_split(values) or values.decode_shards > 1):
        raise T2TError(f"--decode_to_file={path}: other files are written beside it: name a file")
    if _of_split(values):
        if values.decode_to_file and not path:
            raise T2TError(
                f"--decode_to_file={values.decode_to_file}: the split's report goes to the standard output; "
                "name a file"
            )
        if values.partial_targets:
            raise T2TError("--partial_targets needs --decode_from_file or --decode_interactive")
        if values.pretty:
            raise T2TError("--pretty and a split cannot be combined: the metric needs one output per line")
    if values.output_format == JSONL:
        for name in ("pretty", "decode_interactive"):
            if values[name].value:
                raise T2TError(f"--output_format=jsonl and --{name} cannot be combined: give one of them")
        if _of_split(values):
            raise T2TError("--output_format=jsonl and a split cannot be combined: give --decode_from_file")
    if values.ensemble and engine_flags.uses_ctranslate2(values):
        raise T2TError("--ensemble is for --engine=tensorflow: CTranslate2 has one model")
    if values.ensemble and _of_split(values) and not values.decode_to_file:
        raise T2TError("--decode_to_file is missing: the outputs of an ensemble belong to no output_dir")
    if values.score_file and engine_flags.uses_jax(values):
        raise T2TError("--score_file does not run on JAX: set KERAS_BACKEND=tensorflow")
    constraint_flags.check(values)
    if values.decode_shards > 1 and (values.decode_interactive or values.score_file):
        raise T2TError("--decode_shards is only for decoding a file or a split")


def _is_set(flag: flags.Flag) -> bool:
    return bool(flag.present) and flag.value is not False and flag.value != ""


def _of_split(values: flags.FlagValues) -> bool:
    return not (values.decode_from_file or values.decode_interactive or values.score_file)


def _check_files(values: flags.FlagValues, shard: Shard) -> None:
    """Checks that no output overwrites the text."""
    check_one_standard_input(decode_from_file=values.decode_from_file, terminology=values.terminology)
    inputs = named_files(values, "decode_from_file", "score_file")
    parts = {
        f"{name}{shard.suffix}": f"{file}{shard.suffix}"
        for name, file in inputs.items()
        if file != STANDARD_STREAM
    }
    inputs |= named_files(values, "terminology")
    check_outputs({**parts, **inputs}, _outputs(values, shard) or ({"": STANDARD_STREAM} if inputs else {}))


def _check_model_files(values: flags.FlagValues, shard: Shard, output_dir: Path, run: Run) -> None:
    """Checks that no output overwrites the model or the data."""
    inputs = run_flags.model_files(values, output_dir, run)
    if _of_split(values):
        data_dir = Path(values.data_dir or run.data_dir).expanduser()
        patterns = (
            f"{run.problem}-*-?????-of-?????",
            f"{run.problem}-*.references",
            f"{run.problem}.*",
            "vocab.*",
        )
        inputs |= {f"the data's {path}": path for pattern in patterns for path in data_dir.glob(pattern)}
    check_outputs(inputs, _outputs(values, shard))


def _outputs(values: flags.FlagValues, shard: Shard) -> dict[str, str | Path]:
    """The files of `--decode_to_file`, by their names for errors."""
    joined = output_path(values.decode_to_file)
    if joined is None:
        return {}
    flag = f"--decode_to_file={values.decode_to_file}"
    files = SplitFiles.beside(joined) if _of_split(values) else (joined,)
    parts = {f"{path} of {flag}": path for file in files for path in (file, shard.path(file))}
    return {flag: joined, **parts}


def _load(values: flags.FlagValues, output_dir: Path, run: Run) -> Translator:
    options = run_flags.text_options(values, run_flags.decode_options(values.decode_hparams, run))
    run_flags.check_details(values, options, bool(values.score_file))
    translator, path, step = run_flags.load_translator(
        values,
        output_dir,
        options,
        num_parallel_batches=engine_flags.num_parallel_batches(values, values.decode_interactive),
        engine=values.engine,
        precision=values.precision,
        on_note=say,
    )
    say(f"decoding with {path} ({step})")
    if translator.problem is None:
        say(
            f"warning: the problem {run.problem} is not registered, so its changes to inputs and outputs are "
            "not made: if it has any, give --t2t_usr_dir"
        )
    return translator


def _decode_file(values: flags.FlagValues, shard: Shard, load: Callable[[], Translator]) -> None:
    joined = output_path(values.decode_to_file)
    path = joined and shard.path(joined)
    lines, first_line, name = read_part(values.decode_from_file, shard)
    prefixes = None
    if values.partial_targets:
        pairs = [split_at_tab(line, name, number) for number, line in enumerate(lines, first_line)]
        lines, prefixes = [line for line, _ in pairs], [prefix for _, prefix in pairs]
    lines, constraints = constraint_flags.constrained(values, lines, name, first_line)
    with output_to(path) as output, ProgressBar("sentences") as bar:
        translator = load()
        translate_lines(
            translator,
            lines,
            name,
            output,
            draw=drawing(translator.problem) if values.pretty else None,
            prefixes=prefixes,
            constraints=constraints,
            first_line=first_line,
            on_progress=bar.show_decoding,
            on_note=say,
            as_json=values.output_format == JSONL,
        )
    if joined is None or path is None or is_special(path):
        return
    say(f"outputs  {path}")
    if shard.count > 1:
        say(f"next, when all {shard.count} workers are done: {shard.joining(joined)}")
        return
    plain = not (values.pretty or values.output_format == JSONL or translator.options.has_columns)
    metric = metric_for(translator.problem) if plain and translator.problem else None
    if metric:
        say(f"next: {metric.command(str(joined), 'REFERENCE')}")


def _decode_split(
    values: flags.FlagValues, shard: Shard, output_dir: Path, run: Run, load: Callable[[], Translator]
) -> None:
    """Decodes a split; prints examples and the BLEU or F1."""
    split = values.dataset_split or ("test" if values.eval_use_test_set else "dev")
    problem = registry.problem(run.problem)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"problem {run.problem} has no splits of text to decode: give --decode_from_file")
    engine_flags.load_backend(values)
    pairs = list(problem.references(split, run_flags.split_dir(values, output_dir, run, problem)))
    first, end = shard.bounds(len(pairs))
    part = split
    if shard.count > 1:
        say(shard.describe(len(pairs), f"the {split} split"))
        part = f"{split}, sentences {first + 1:,} to {end:,} of {len(pairs):,}"
    translator = load()
    path = output_path(values.decode_to_file)
    files = SplitFiles.beside(path) if path else SplitFiles.of_model(output_dir, split, translator)
    written = files.of_shard(shard)
    with ProgressBar("sentences") as bar:
        outputs, result = decode_split(
            translator, problem, split, pairs[first:end], written, first + 1, bar.show_decoding, say
        )
    for (source, reference), text in list(zip(pairs[first:end], outputs, strict=True))[: values.log_examples]:
        print(f"source     {source}\noutput     {text}\nreference  {reference}\n")
    metric = metric_for(problem)
    if metric and result:
        print(f"{metric.title} {result.score:.2f} on {part}, {len(outputs):,} sentences\n{result.details}")
    print(f"outputs    {written.outputs}\ninputs     {written.inputs}\nreference  {written.references}")
    if shard.count > 1:
        joining = "; ".join(map(shard.joining, files))
        print(f"next, when all {shard.count} workers are done: {joining}")
    elif metric and not translator.options.has_columns:
        print(f"next: {metric.command(str(written.outputs), str(written.references))}")


def _score_file(values: flags.FlagValues, load: Callable[[], Translator]) -> None:
    """Writes the log-probability of each line's target; prints their mean and perplexity."""
    from t2t_revival.decoding.scoring import summarize

    name = name_of(values.score_file)
    pairs = [
        split_at_tab(line, name, number, required=True)
        for number, line in enumerate(read_flag(values, "score_file"), start=1)
    ]
    path = output_path(values.decode_to_file)
    with output_to(path) as output, ProgressBar("sentences") as bar:
        as_json = values.output_format == JSONL
        how = {"on_progress": bar.show_decoding, "on_note": say, "as_json": as_json}
        scores = score_pairs(load(), pairs, name, output, **how)
    say(summarize(scores))
    if path and not is_special(path):
        say(f"scores   {path}")
        pairs_file = Path(values.score_file).expanduser()
        if pairs_file.is_file():  # a pipe is read already
            say(f"next: {shlex.join(['paste', str(path), str(pairs_file)])} | sort -g | head")


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-decoder`: translates a file, a split, or what is typed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import combinations, count, islice, product
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags, shards
from t2t_revival.cli.lines import (
    STANDARD_STREAM,
    Draw,
    check_outputs,
    drawing,
    named,
    output_to,
    prompt,
    say,
    split_at_tab,
    to_bytes,
    translate,
    writing_to,
)
from t2t_revival.cli.scoring import score_file
from t2t_revival.errors import LineError, T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translation, Translator
    from t2t_revival.problems.problem import Text2TextProblem
    from t2t_revival.training.run import Run

USAGE = """
t2t-decoder --problem=translate_ende --hparams_set=base --decode_from_file=in.en --decode_to_file=out.de

Decodes a file, or what is typed (--decode_interactive), or else the dev or test split, with its BLEU or F1.
One line in, one line out, in input order. Until all are there they are in FILE.part; after an interruption,
even kill -9, the same command resumes.

With --decode_hparams="return_beams=True" a line holds beam_size outputs, best first, joined by tabs; where
the search finished fewer, the last are empty, and a blank line stays one. With write_beam_scores=True each
output is followed by a tab and its score (-inf behind those empty ones); with sampling_method=random outputs
are drawn from the model. Parsing takes sentences as people write them, or with
--decode_hparams="tokenized=True" with spaces between words. --score_file=FILE decodes nothing, and gives the
log-probability of each target in a file of source, tab, target.
"""
SPLIT_FLAGS = ("dataset_split", "eval_use_test_set", "log_examples")
INPUTS = ("decode_from_file", "decode_interactive", "score_file")


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    run_flags.define_checkpoint_path(values)
    for name, text in (
        ("decode_hparams", "How to decode, such as beam_size=4,alpha=0.6,extra_length=50,return_beams=True."),
        ("decode_from_file", "Text to translate, a sentence on each line; - is the standard input."),
        (
            "decode_to_file",
            "Where translations or scores go; by default, or with -, the standard output. Translations of a "
            "split go to a file always, with inputs and references beside it; by default in "
            "output_dir/decoded.",
        ),
        (
            "score_file",
            "Pairs to score, source TAB target on each line; - is the standard input. For each, the natural "
            "logarithm of the target's probability is given, EOS counted, without a length penalty.",
        ),
    ):
        flags.DEFINE_string(name, "", text, flag_values=values)
    flags.DEFINE_string(
        "data_dir",
        None,
        "Where a split's shards lie; by default where the model was trained from.",
        flag_values=values,
    )
    flags.DEFINE_bool("decode_interactive", False, "Translate what is typed.", flag_values=values)
    flags.DEFINE_bool(
        "partial_targets",
        False,
        "Lines are source TAB beginning of the output, which the output then begins with; what is forced is "
        "the beginning as the vocabulary cuts it into pieces.",
        flag_values=values,
    )
    shards.define(values)
    flags.DEFINE_bool(
        "pretty", False, "Parsing: draw trees, where they fit, or else indent them.", flag_values=values
    )
    flags.DEFINE_bool("eval_use_test_set", False, "As --dataset_split=test.", flag_values=values)
    flags.DEFINE_enum(
        "dataset_split",
        "",
        ["", "train", "dev", "test"],
        "Split that is translated where no file is given; by default dev.",
        flag_values=values,
    )
    common.define_integer(
        "log_examples", 10, "Examples of a split that are shown.", lower_bound=0, flag_values=values
    )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return common.run(command_flags(), USAGE, _decoder, argv)


def _decoder(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    _check_flags(values)
    _check_files(values)
    output_dir, run = run_flags.open_run(values)
    _check_model_files(values, output_dir, run)
    if values.score_file:
        score_file(values, lambda: _translator(values, output_dir, run))
    elif values.decode_interactive:
        translator = _translator(values, output_dir, run)
        answer = _answering(translator, values.partial_targets)
        prompt(answer, translator.options.write_beam_scores, _draw(values, translator))
    elif values.decode_from_file:
        _file(values, output_dir, run)
    else:
        _split(values, output_dir, run)


def _check_flags(values: flags.FlagValues) -> None:
    """Refuses flags of which one would do nothing beside the other."""
    for one, other in (
        *combinations(INPUTS, 2),
        ("decode_interactive", "decode_to_file"),
        *product(INPUTS, SPLIT_FLAGS),
        ("score_file", "pretty"),
        ("score_file", "partial_targets"),
    ):
        if _given(values[one]) and _given(values[other]):
            raise T2TError(f"--{one} and --{other} do not go together: give one of them")
    if values.eval_use_test_set and values.dataset_split not in ("", "test"):
        raise T2TError(f"--eval_use_test_set and --dataset_split={values.dataset_split}: give one of them")
    if not (values.decode_from_file or values.decode_interactive or values.score_file):
        if values.decode_to_file == STANDARD_STREAM:
            raise T2TError("--decode_to_file=-: the standard output has the split's report; name a file")
        if values.partial_targets:
            raise T2TError("--partial_targets needs --decode_from_file or --decode_interactive")
    if shards.shard(values).of > 1 and (values.decode_interactive or values.score_file):
        raise T2TError("--decode_shards is for a file or a split that is decoded")


def _check_files(values: flags.FlagValues) -> None:
    """Checks that the text that is read is not overwritten."""
    inputs, suffix = named(values, "decode_from_file", "score_file"), shards.shard(values).suffix
    parts = {f"{name}{suffix}": f"{file}{suffix}" for name, file in inputs.items() if file != STANDARD_STREAM}
    check_outputs({**parts, **inputs}, _outputs(values) or ({"": STANDARD_STREAM} if inputs else {}))


def _check_model_files(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    """Checks that neither the model nor the data that are read are overwritten."""
    inputs = run_flags.model_files(values, output_dir, run)
    if not (values.decode_from_file or values.decode_interactive or values.score_file):
        data_dir = Path(values.data_dir or run.data_dir).expanduser()
        read = (
            f"{run.problem}-*-?????-of-?????",
            f"{run.problem}-*.references",
            f"{run.problem}.*",
            "vocab.*",
        )
        inputs |= {f"the data's {path}": path for pattern in read for path in data_dir.glob(pattern)}
    check_outputs(inputs, _outputs(values))


def _outputs(values: flags.FlagValues) -> dict[str, str | Path]:
    """The files that `--decode_to_file` names, by their names in errors."""
    if values.decode_to_file in ("", STANDARD_STREAM):
        return {}
    flag, whole = f"--decode_to_file={values.decode_to_file}", Path(values.decode_to_file).expanduser()
    files = (whole,) if values.decode_from_file or values.score_file else _of_split(whole)
    shard = shards.shard(values)
    return {flag: whole, **{f"{path} of {flag}": path for file in files for path in (file, shard.path(file))}}


def _of_split(whole: Path) -> tuple[Path, Path, Path]:
    """The files of a split's outputs, inputs and references."""
    stem = whole.name.removesuffix(".outputs")
    return whole, whole.with_name(f"{stem}.inputs"), whole.with_name(f"{stem}.targets")


def _given(flag: flags.Flag) -> bool:
    return bool(flag.present) and flag.value is not False and flag.value != ""


def _translator(values: flags.FlagValues, output_dir: Path, run: Run) -> Translator:
    options = run_flags.decode_options(values.decode_hparams, run)
    common.load_tensorflow(values)
    streams = common.single_stream() if values.decode_interactive else common.streams()
    from t2t_revival.decoding.translator import Translator

    translator = Translator.load(
        output_dir,
        values.checkpoint_path,
        options,
        streams,
        on_damaged=run_flags.warn_of_damage,
    )
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    average = ", an average" if checkpoint.averaged else ""
    say(f"decoding with {checkpoint.path} (step {checkpoint.step:,}{average})")
    if translator.problem is None:
        say(
            f"warning: problem {run.problem} is not known, so that inputs and outputs stay as they are; if "
            "it changes them, give --t2t_usr_dir"
        )
    return translator


def _file(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    shard = shards.shard(values)
    to_file = values.decode_to_file not in ("", STANDARD_STREAM)
    whole = Path(values.decode_to_file).expanduser() if to_file else None
    target = whole and shard.path(whole)
    part, prefixes = shard.read(values.decode_from_file), None
    if values.partial_targets:
        pairs = [split_at_tab(line, part.where, n) for n, line in enumerate(part.lines, part.first)]
        part, prefixes = part._replace(lines=[line for line, _ in pairs]), [prefix for _, prefix in pairs]
    with output_to(target) as output:
        translator = _translator(values, output_dir, run)
        draw = _draw(values, translator)
        translate(translator, part.lines, part.where, output, draw, prefixes=prefixes, first_line=part.first)
    if whole:
        say(f"outputs  {target}")
        plain = not (values.pretty or translator.options.has_columns)
        _say_next(whole, shard, translator.problem if plain else None)


def _say_next(whole: Path, shard: shards.Shard, problem: Text2TextProblem | None) -> None:
    """What to do with outputs that are written to a file."""
    from t2t_revival.evaluation.decoded import measure_of

    if shard.of > 1:
        say(f"next, when all {shard.of} workers are done: {shard.joining(whole)}")
        return
    measure = measure_of(problem) if problem else None
    if measure:
        say(f"next: {measure.command(str(whole), 'REFERENCE')}")


def _split(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    """Decodes a split; writes inputs, outputs and references side by side; shows its BLEU or F1."""
    from t2t_revival.evaluation.decoded import measure_of

    if values.pretty:
        raise T2TError("--pretty and a split do not go together: what is measured has a line for each output")
    split = values.dataset_split or ("test" if values.eval_use_test_set else "dev")
    problem, shard = _problem(run, values), shards.shard(values)
    pairs = list(problem.references(split, run_flags.split_dir(values, output_dir, run, problem)))
    first, end = shard.bounds(len(pairs))
    shard.tell(len(pairs), f"the {split} split")
    part_name = f"{split}, sentences {first + 1:,} to {end:,} of {len(pairs):,}" if shard.of > 1 else split
    pairs = pairs[first:end]
    translator = _translator(values, output_dir, run)
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    default = output_dir / "decoded" / f"{split}-{checkpoint.step}.outputs"
    whole = Path(values.decode_to_file or default).expanduser()
    if not values.decode_to_file:
        _make_folder(whole.parent)
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    files = _of_split(whole)
    path, inputs_path, references_path = map(shard.path, files)
    with output_to(path) as lines_out:
        outputs = translate(
            translator, inputs, f"the {split} split", lines_out, prepared=True, first_line=first + 1
        )
        for side, lines in ((inputs_path, inputs), (references_path, references)):
            with writing_to(side) as file:
                file.write(to_bytes(lines))
    best = [found[0].text for found in outputs]
    for source, text, reference in islice(zip(inputs, best, references, strict=True), values.log_examples):
        print(f"source     {source}\noutput     {text}\nreference  {reference}\n")
    measure = measure_of(problem)
    if measure and pairs:
        measured = measure.score(best, references)
        print(
            f"{measure.title} {measured.score:.2f} on {part_name}, {len(pairs):,} sentences\n"
            f"{measured.details}"
        )
    print(f"outputs    {path}\ninputs     {inputs_path}\nreference  {references_path}")
    if shard.of > 1:
        joining = "; ".join(map(shard.joining, files))
        print(f"next, when all {shard.of} workers are done: {joining}")
    elif measure and not translator.options.has_columns:
        print(f"next: {measure.command(str(path), str(references_path))}")


def _problem(run: Run, values: flags.FlagValues) -> Text2TextProblem:
    """The problem of a run, which knows where its splits are."""
    from t2t_revival.problems.problem import Text2TextProblem

    problem = registry.problem(run.problem)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"{run.problem} has no text to decode: give --decode_from_file")
    common.load_tensorflow(values)
    return problem


def _answering(translator: Translator, partial: bool) -> Callable[[str], Sequence[Translation]]:
    """Gives the outputs of a line that is typed; `partial`: with the beginning of the output behind a tab."""
    numbers = count(1)

    def answer(line: str) -> Sequence[Translation]:
        source, _, prefix = line.partition("\t") if partial else (line, "", "")
        try:
            return translator.nbest(
                [source],
                on_cut=lambda cut: say(f"warning: {cut}"),
                prefixes=[prefix],
                first_line=next(numbers),
            )[0]
        except LineError as error:
            say(f"error: {error}")
            return []

    return answer


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise T2TError(f"cannot write {folder}: {error.strerror}; give --decode_to_file") from error


def _draw(values: flags.FlagValues, translator: Translator) -> Draw | None:
    return drawing(translator.problem) if values.pretty else None


if __name__ == "__main__":
    sys.exit(main())

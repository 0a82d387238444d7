"""`t2t-decoder`: translates a file, a split, or what is typed."""

from __future__ import annotations

import sys
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags
from t2t_revival.cli.lines import (
    STANDARD_STREAM,
    Draw,
    drawing,
    formatted,
    prompt,
    read,
    say,
    to_bytes,
    translate,
    writing_to,
)
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translation, Translator
    from t2t_revival.problems.problem import Text2TextProblem
    from t2t_revival.training.run import Run

USAGE = """
t2t-decoder --problem=translate_ende --hparams_set=base --decode_from_file=in.en --decode_to_file=out.de

Decodes a file, or what is typed (--decode_interactive), or else the dev or test split, with its BLEU or F1.
One line in, one line out. With --decode_hparams="return_beams=True" a line holds all outputs, best first,
joined by tabs; with write_beam_scores=True each output is followed by a tab and its score. Parsing takes
sentences as people write them, or with --decode_hparams="tokenized=True" with spaces between words.
"""
SPLIT_FLAGS = ("dataset_split", "eval_use_test_set", "log_examples")


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
            "Where translations go; by default, or with -, the standard output. Those of a split go to a "
            "file always, with inputs and references beside it; by default in output_dir/decoded.",
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
    flags.DEFINE_integer(
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
    output_dir, run = run_flags.open_run(values)
    if values.decode_interactive:
        translator = _translator(values, output_dir, run)
        prompt(
            lambda line: translator.nbest([line], on_cut=lambda cut: say(f"warning: {cut}"))[0],
            translator.options.write_beam_scores,
            _draw(values, translator),
        )
    elif values.decode_from_file:
        _file(values, output_dir, run)
    else:
        _split(values, output_dir, run)


def _check_flags(values: flags.FlagValues) -> None:
    """Refuses flags of which one would do nothing beside the other."""
    for one, other in (
        ("decode_from_file", "decode_interactive"),
        ("decode_interactive", "decode_to_file"),
        *product(("decode_from_file", "decode_interactive"), SPLIT_FLAGS),
    ):
        if _given(values[one]) and _given(values[other]):
            raise T2TError(f"--{one} and --{other} do not go together: give one of them")
    if values.eval_use_test_set and values.dataset_split not in ("", "test"):
        raise T2TError(f"--eval_use_test_set and --dataset_split={values.dataset_split}: give one of them")
    if values.decode_to_file == STANDARD_STREAM and not values.decode_from_file:
        raise T2TError("--decode_to_file=-: the standard output has the split's report; name a file")


def _given(flag: flags.Flag) -> bool:
    return bool(flag.present) and flag.value is not False and flag.value != ""


def _translator(values: flags.FlagValues, output_dir: Path, run: Run) -> Translator:
    from t2t_revival.decoding.options import DecodeHParams

    DecodeHParams.parse(values.decode_hparams, run.decode_hparams)
    common.load_tensorflow(values)
    streams = common.single_stream() if values.decode_interactive else common.streams()
    from t2t_revival.decoding.translator import Translator

    translator = Translator.load(
        output_dir,
        values.checkpoint_path,
        values.decode_hparams,
        streams,
        on_damaged=run_flags.warn_of_damage,
    )
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    average = ", an average" if checkpoint.averaged else ""
    say(f"decoding with {checkpoint.path} (step {checkpoint.step:,}{average})")
    return translator


def _file(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    source = values.decode_from_file
    to_file = values.decode_to_file not in ("", STANDARD_STREAM)
    target = Path(values.decode_to_file).expanduser() if to_file else None
    from t2t_revival.evaluation.decoded import measure_of

    lines = read(source)
    with writing_to(target) as file:
        translator = _translator(values, output_dir, run)
        outputs = translate(translator, lines, "standard input" if source == STANDARD_STREAM else source)
        file.write(_formatted(outputs, translator, _draw(values, translator)))
    if target:
        say(f"outputs  {target}")
        if not values.pretty:
            measure = measure_of(translator.problem) if translator.problem else None
            say(f"next: {measure.command(str(target), 'REFERENCE')}" if measure else "")


def _split(values: flags.FlagValues, output_dir: Path, run: Run) -> None:
    """Decodes a split; writes inputs, outputs and references side by side; shows its BLEU or F1."""
    from t2t_revival.evaluation.decoded import measure_of

    if values.pretty:
        raise T2TError("--pretty and a split do not go together: what is measured has a line for each output")
    split = values.dataset_split or ("test" if values.eval_use_test_set else "dev")
    problem = _problem(run, values)
    pairs = list(problem.references(split, values.data_dir or run.data_dir))
    translator = _translator(values, output_dir, run)
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    default = output_dir / "decoded" / f"{split}-{checkpoint.step}.outputs"
    path = Path(values.decode_to_file or default).expanduser()
    if not values.decode_to_file:
        _make_folder(path.parent)
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    with writing_to(path) as file:
        outputs = translate(translator, inputs, f"the {split} split", prepared=True)
        file.write(_formatted(outputs, translator))
    stem = path.name.removesuffix(".outputs")
    inputs_path, references_path = (path.with_name(f"{stem}.{kind}") for kind in ("inputs", "targets"))
    for side, lines in ((inputs_path, inputs), (references_path, references)):
        with writing_to(side) as file:
            file.write(to_bytes(lines))
    best = [found[0].text for found in outputs]
    for source, output, reference in islice(zip(inputs, best, references, strict=True), values.log_examples):
        print(f"source     {source}\noutput     {output}\nreference  {reference}\n")
    measure = measure_of(problem)
    if measure:
        measured = measure.score(best, references)
        print(
            f"{measure.title} {measured.score:.2f} on {split}, {len(pairs):,} sentences\n{measured.details}"
        )
    print(f"outputs    {path}\ninputs     {inputs_path}\nreference  {references_path}")
    if measure and not (translator.options.return_beams or translator.options.write_beam_scores):
        print(f"next: {measure.command(str(path), str(references_path))}")


def _problem(run: Run, values: flags.FlagValues) -> Text2TextProblem:
    """The problem of a run, which knows where its splits are."""
    from t2t_revival.problems.problem import Text2TextProblem

    problem = registry.problem(run.problem)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"{run.problem} has no text to decode: give --decode_from_file")
    common.load_tensorflow(values)
    return problem


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise T2TError(f"cannot write {folder}: {error.strerror}; give --decode_to_file") from error


def _formatted(outputs: list[list[Translation]], translator: Translator, draw: Draw | None = None) -> bytes:
    options = translator.options
    return formatted(outputs, options.return_beams, options.write_beam_scores, draw)


def _draw(values: flags.FlagValues, translator: Translator) -> Draw | None:
    return drawing(translator.problem) if values.pretty else None


if __name__ == "__main__":
    sys.exit(main())

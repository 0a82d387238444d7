"""`t2t-decoder`: translates a file, a split, or what is typed."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from absl import flags

from t2t_revival import registry
from t2t_revival.cli import common, problem_flags, run_flags
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Cut, Progress, Translation, Translator
    from t2t_revival.training.run import Run

USAGE = """
t2t-decoder --problem=translate_ende --hparams_set=base --decode_from_file=in.en --decode_to_file=out.de

Translates a file, or what is typed (--decode_interactive), or else the dev or test split, with its BLEU.
One line in, one line out. With --decode_hparams="return_beams=True" a line holds all outputs, best first,
joined by tabs; with write_beam_scores=True each output is followed by a tab and its score.
"""
STANDARD_STREAM = "-"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LOG_SECONDS, TERMINAL_SECONDS = 5.0, 0.2  # between two progress lines in a log, and on a terminal


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    problem_flags.define(values)
    run_flags.define(values)
    run_flags.define_checkpoint_path(values)
    for name, text in (
        ("decode_hparams", "How to decode, such as beam_size=4,alpha=0.6,extra_length=50,return_beams=True."),
        ("decode_from_file", "Text to translate, a sentence on each line; - is the standard input."),
        ("decode_to_file", "Where translations go; by default, or with -, the standard output."),
    ):
        flags.DEFINE_string(name, "", text, flag_values=values)
    flags.DEFINE_bool("decode_interactive", False, "Translate what is typed.", flag_values=values)
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
    if values.decode_from_file and values.decode_interactive:
        raise T2TError("--decode_from_file and --decode_interactive: give one of them")
    _run(values)
    if values.decode_interactive:
        _interactive(_translator(values))
    elif values.decode_from_file:
        _file(values)
    else:
        _split(values)


def _run(values: flags.FlagValues) -> Run:
    """What was trained in output_dir; the flags that name a problem or an hparams set must agree with it."""
    from t2t_revival.training.run import Run

    folder = run_flags.output_dir(values)
    run = Run.load(folder)
    for flag, found in (("problem", run.problem), ("hparams_set", run.hparams_set)):
        if values[flag].value not in (None, found):
            raise T2TError(f"--{flag}={values[flag].value}: {folder} holds a model of {found}")
    return run


def _translator(values: flags.FlagValues) -> Translator:
    from t2t_revival.decoding.options import DecodeHParams

    DecodeHParams.parse(values.decode_hparams, _run(values).decode_hparams)
    streams = _streams()
    from t2t_revival.decoding.translator import Translator

    translator = Translator.load(
        run_flags.output_dir(values), values.checkpoint_path, values.decode_hparams, streams
    )
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    average = ", an average" if checkpoint.averaged else ""
    _say(f"decoding with {checkpoint.path} (step {checkpoint.step:,}{average})")
    return translator


def _streams() -> int:
    """Batches decoded side by side: on CPUs one for each core, since a batch uses one core best."""
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        return 1
    try:
        tf.config.threading.set_intra_op_parallelism_threads(1)
    except RuntimeError:  # TensorFlow was in use before, with threads of its own
        return 1
    return os.cpu_count() or 1


def _file(values: flags.FlagValues) -> None:
    source, target = values.decode_from_file, values.decode_to_file or STANDARD_STREAM
    lines = _read(source)
    with _writing(target) as file:
        translator = _translator(values)
        outputs = _translate(translator, lines, "standard input" if source == STANDARD_STREAM else source)
        file.write(_format(outputs, translator))
    if target != STANDARD_STREAM:
        _say(f"translations  {target}")
        _say(f"next: {_bleu_command(target, 'REFERENCE')}")


def _split(values: flags.FlagValues) -> None:
    """Translates a split; writes inputs, outputs and references side by side; shows its BLEU."""
    from t2t_revival.evaluation.bleu import sacrebleu_score

    run = _run(values)
    split = _split_name(values)
    pairs = list(_pairs(run, split, values))
    translator = _translator(values)
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    default = run_flags.output_dir(values) / "decoded" / f"{split}-{checkpoint.step}.outputs"
    path = Path(values.decode_to_file or default).expanduser()
    if not values.decode_to_file:
        _make_folder(path.parent)
    inputs, references = [source for source, _ in pairs], [target for _, target in pairs]
    with _writing(str(path)) as file:
        outputs = _translate(translator, inputs, f"the {split} split")
        file.write(_format(outputs, translator))
    stem = path.name.removesuffix(".outputs")
    inputs_path, references_path = (path.with_name(f"{stem}.{kind}") for kind in ("inputs", "targets"))
    for side, lines in ((inputs_path, inputs), (references_path, references)):
        with _writing(str(side)) as file:
            file.write(_text(lines))
    best = [found[0].text for found in outputs]
    for source, output, reference in islice(zip(inputs, best, references, strict=True), values.log_examples):
        print(f"source     {source}\noutput     {output}\nreference  {reference}\n")
    bleu = sacrebleu_score(best, references)
    print(f"BLEU {bleu.score:.2f} on {split}, {len(pairs):,} sentences\n{bleu.signature}")
    print(f"outputs    {path}\ninputs     {inputs_path}\nreference  {references_path}")
    if not (translator.options.return_beams or translator.options.write_beam_scores):
        print(f"next: {_bleu_command(str(path), str(references_path))}")


def _bleu_command(translation: str, reference: str) -> str:
    return shlex.join(["t2t-bleu", f"--translation={translation}", f"--reference={reference}"])


def _split_name(values: flags.FlagValues) -> str:
    if values.eval_use_test_set and values.dataset_split not in ("", "test"):
        raise T2TError(f"--eval_use_test_set and --dataset_split={values.dataset_split}: give one of them")
    return values.dataset_split or ("test" if values.eval_use_test_set else "dev")


def _pairs(run: Run, split: str, values: flags.FlagValues) -> Iterator[tuple[str, str]]:
    """The sentence pairs of a split; the data is where the model was trained, or in `--data_dir`."""
    from t2t_revival.problems.problem import Text2TextProblem

    if values.t2t_usr_dir:
        registry.import_usr_dir(values.t2t_usr_dir)
    problem = registry.problem(run.problem)
    if not isinstance(problem, Text2TextProblem):
        raise T2TError(f"{run.problem} has no text to decode: give --decode_from_file")
    folder = problem_flags.data_dir(values) if values["data_dir"].present else run.data_dir
    return problem.text(split, folder)


def _interactive(translator: Translator) -> None:
    """A prompt; each line is answered with its outputs, until the end of input (Ctrl-D)."""
    prompt = "> " if sys.stdin.isatty() else ""
    while True:
        try:
            line = input(prompt)
        except EOFError:
            return
        except UnicodeDecodeError as error:
            raise T2TError(f"standard input: not UTF-8 ({error.reason})") from error
        (outputs,) = translator.nbest([line], on_cut=lambda cut: _say(f"warning: {cut}"))
        for output in outputs:
            score = f"\t{output.score:.2f}" if translator.options.write_beam_scores else ""
            print(f"{output.text}{score}", flush=True)


def _translate(translator: Translator, lines: list[str], name: str) -> list[list[Translation]]:
    """The outputs of all lines, with progress on stderr."""
    shown = _Progress()
    outputs = translator.nbest(lines, on_cut=lambda cut: _warn_of_cut(cut, name), on_progress=shown)
    shown.end(len(lines))
    if any(found[0].score == float("-inf") for found in outputs):
        raise T2TError("the model finds no output: its weights are not numbers; use an earlier checkpoint")
    return outputs


def _warn_of_cut(cut: Cut, name: str) -> None:
    _say(f"warning: {name}, {cut}")


class _Progress:
    """Says how far decoding is: one line that changes on a terminal, a line now and then in a log."""

    def __init__(self) -> None:
        self._began = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < (TERMINAL_SECONDS if self._terminal else LOG_SECONDS):
            return
        self._shown, seconds = now, now - self._began
        left = seconds / progress.share - seconds
        text = (
            f"{progress.done:,} of {progress.total:,} sentences, "
            f"{progress.done / seconds:.1f} sentences/s, {problem_flags.duration(left)} left"
        )
        if self._terminal:
            sys.stderr.write(f"\r{text:{self._width}}")
            self._width = len(text)
        else:
            _say(text)

    def end(self, total: int) -> None:
        """The last line."""
        seconds = time.monotonic() - self._began
        if self._width:
            sys.stderr.write(f"\r{'':{self._width}}\r")
        rate = total / max(seconds, 1e-3)
        _say(f"{total:,} sentences in {problem_flags.duration(seconds)}, {rate:.1f} sentences/s")


def _read(path: str) -> list[str]:
    """The lines of a file."""
    if path == STANDARD_STREAM:
        content, name = sys.stdin.buffer.read(), "standard input"
    else:
        name = f"--decode_from_file={path}"
        try:
            content = Path(path).expanduser().read_bytes()
        except OSError as error:
            raise T2TError(f"{name}: {error.strerror or error}") from error
    lines = content.removeprefix(BYTE_ORDER_MARK).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [_decoded(line, number, name) for number, line in enumerate(lines, start=1)]


def _decoded(line: bytes, number: int, name: str) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise T2TError(f"{name}, line {number}: not UTF-8 ({error.reason})") from error


@contextmanager
def _writing(path: str) -> Iterator[BinaryIO]:
    """Opens a file that appears whole or not at all; what cannot be written is known at once."""
    from t2t_revival.data.records import writing

    if path == STANDARD_STREAM:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path).expanduser()
    if target.exists() and not target.is_file():
        raise T2TError(f"cannot write {path}: not a file")
    try:
        with writing(target) as file:
            yield file
    except OSError as error:
        raise T2TError(f"cannot write {path}: {error.strerror or error}") from error


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise T2TError(f"cannot write {folder}: {error.strerror}; give --decode_to_file") from error


def _format(outputs: list[list[Translation]], translator: Translator) -> bytes:
    """Outputs as T2T writes them: all of one input on one line, joined by tabs, scores behind."""
    options = translator.options
    if not (options.return_beams or options.write_beam_scores):
        return _text([found[0].text for found in outputs])
    lines = []
    for found in outputs:
        cells = []
        for output in found:
            cells.append(output.text.replace("\t", " "))  # a tab in the text would look like a column
            cells += [f"{output.score:.2f}"] * options.write_beam_scores
        lines.append("\t".join(cells))
    return _text(lines)


def _text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())

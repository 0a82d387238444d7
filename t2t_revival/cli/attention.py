"""`t2t-attention`: draws what a trained model looks at."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from absl import flags

from t2t_revival.cli import common, problem_flags, run_flags
from t2t_revival.cli.lines import check_outputs, named, say, writing_to
from t2t_revival.errors import T2TError

if TYPE_CHECKING:
    from t2t_revival.decoding.translator import Translator
    from t2t_revival.training.run import Run
    from t2t_revival.visualization.attention import Attention

USAGE = """
t2t-attention --output_dir=RUN --input="The dog sleeps because it is tired."

Shows which tokens a trained model looks at, as figures 3 to 5 of the paper: decodes a sentence, or takes the
--target that is given, and writes a page for a browser, where layers and heads can be chosen, or a picture,
or both. The page needs nothing else, neither files nor a network.
"""
PAGE_NAME = "attention.html"


def command_flags() -> flags.FlagValues:
    """This command's flags."""
    values = common.new_flags()
    problem_flags.define_names(values)
    run_flags.define(values)
    run_flags.define_checkpoint_path(values)
    for name, text in (
        ("input", "The sentence that is read."),
        ("target", "The output, in the model's words; by default the best one that the model finds."),
        ("decode_hparams", "How to decode, such as beam_size=4,alpha=0.6,extra_length=50."),
        ("html", f"The page; by default, where there is no --png either, output_dir/{PAGE_NAME}."),
        ("png", "The picture: one layer, the last one unless --layer is given, each head by itself."),
    ):
        flags.DEFINE_string(name, None, text, flag_values=values)
    flags.DEFINE_enum(
        "kind",
        None,
        ["encoder", "decoder", "cross"],
        "Only the encoder's attention over the input, only the decoder's over what it has written, or only "
        "the decoder's over the encoder; by default all.",
        flag_values=values,
    )
    for name in ("layer", "head"):
        common.define_integer(
            name,
            None,
            f"Only the {name} of this number, counted from 1; by default all.",
            lower_bound=1,
            flag_values=values,
        )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    return common.run(command_flags(), USAGE, _attention, argv)


def _attention(values: flags.FlagValues) -> None:
    if values.registry_help:
        problem_flags.print_registry(values)
        return
    if not values.input:
        raise T2TError("--input is missing: a sentence, in quotes")
    if values.target is not None and values.decode_hparams:
        raise T2TError("--target and --decode_hparams do not go together: give one of them")
    output_dir, run = run_flags.open_run(values)
    page, picture = (Path(name).expanduser() if name else None for name in (values.html, values.png))
    if page is None and picture is None:
        page = output_dir / PAGE_NAME
    if page == picture:
        raise T2TError(f"--html={page} and --png={picture} are the same file; name another")
    check_outputs(run_flags.model_files(values, output_dir, run), named(values, "html", "png"))
    with ExitStack() as files:
        page_file, picture_file = (
            files.enter_context(writing_to(path)) if path else None for path in (page, picture)
        )
        translator = _translator(values, output_dir, run)
        attention = _attend(translator, values)
        if page_file:
            from t2t_revival.visualization.attention_page import page as html_page

            page_file.write(html_page(attention, _about(translator, run)).encode())
        if picture_file:
            from t2t_revival.visualization.attention_picture import draw

            draw(attention, picture_file)
    print(f"input      {attention.source}\noutput     {attention.target}")
    if picture:
        print(f"picture    {picture}")
    if page:
        print(f"page       {page}\nnext: open it in a browser: {page.resolve().as_uri()}")


def _attend(translator: Translator, values: flags.FlagValues) -> Attention:
    from t2t_revival.visualization.attention import attend

    whole = attend(translator, values.input, values.target)
    return whole.narrowed(values.layer, values.head, values.kind)


def _translator(values: flags.FlagValues, output_dir: Path, run: Run) -> Translator:
    options = run_flags.decode_options(values.decode_hparams, run)
    common.load_tensorflow(values)
    common.single_stream()
    from t2t_revival.decoding.translator import Translator

    translator = Translator.load(
        output_dir,
        values.checkpoint_path,
        options,
        on_damaged=run_flags.warn_of_damage,
    )
    say(f"attention of {_about(translator, run)}: {_checkpoint(translator)}")
    return translator


def _about(translator: Translator, run: Run) -> str:
    """Which model it is; names no folder, since a page may be passed on."""
    checkpoint = translator.checkpoint
    assert checkpoint is not None
    average = ", an average" if checkpoint.averaged else ""
    return f"{run.problem}, {run.hparams_set}, step {checkpoint.step:,}{average}"


def _checkpoint(translator: Translator) -> Path:
    assert translator.checkpoint is not None
    return translator.checkpoint.path


if __name__ == "__main__":
    sys.exit(main())

"""`t2t-attention`: draws the attention of a trained model."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

from absl import flags

from t2t_revival.cli.support import command, run_flags, tensorflow_setup
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.text_files import check_outputs, named_files
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import T2TError
from t2t_revival.model_folder import Run
from t2t_revival.utils.files import buffered_write
from t2t_revival.visualization.attention import compute_attention
from t2t_revival.visualization.attention_page import page as html_page
from t2t_revival.visualization.attention_picture import draw

USAGE = """
t2t-attention --output_dir=RUN --input="The dog sleeps because it is tired."

Shows the tokens that a trained model attends to, as figures 3 to 5 of the paper: decodes a sentence, or
reads its --target, and writes a page for a browser, where layers and heads can be chosen, or a picture, or
both. The page needs neither other files nor a network.
"""
PAGE_NAME = "attention.html"


def command_flags() -> flags.FlagValues:
    """Defines the flags of t2t-attention."""
    values = command.new_flags()
    run_flags.define_model(values)
    command.define(
        values,
        None,
        input="Sentence to decode.",
        target="Its output, as the model writes it; by default the best that the model finds.",
        decode_hparams="Changes to the decoding, such as beam_size=4,alpha=0.6.",
        html=f"File for the page; without --html and --png, output_dir/{PAGE_NAME}.",
        png="File for the picture: each head of one layer, the last one without --layer.",
    )
    flags.DEFINE_enum(
        "kind",
        None,
        ["encoder", "decoder", "cross"],
        "Attention to show: of the encoder over the input, of the decoder over its own output, or of the "
        "decoder over the encoder; by default all.",
        flag_values=values,
    )
    for name in ("layer", "head"):
        command.define_integer(
            name,
            None,
            f"Number of the {name} to show, counted from 1; by default all.",
            lower_bound=1,
            flag_values=values,
        )
    return values


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns the exit status."""
    return command.run(command_flags(), USAGE, _attention, argv)


def _attention(values: flags.FlagValues) -> None:
    if not values.input:
        raise T2TError("--input is missing: give a sentence, in quotes")
    if values.target is not None and values.decode_hparams:
        raise T2TError("--target and --decode_hparams cannot be combined: give one of them")
    output_dir, run = run_flags.open_run(values)
    page, picture = (Path(name).expanduser() if name else None for name in (values.html, values.png))
    if page is None and picture is None:
        page = output_dir / PAGE_NAME
    if page == picture:
        raise T2TError(f"--html={page} and --png={picture} are the same file: give different names")
    check_outputs(run_flags.model_files(values, output_dir, run), named_files(values, "html", "png"))
    options = run_flags.decode_options(values.decode_hparams, run)
    if options.mbr or options.split_sentences or options.markup:
        raise T2TError("decode_hparams: mbr, split_sentences and markup are for t2t-decoder: leave them out")
    tensorflow_setup.load_tensorflow_alone(values)
    _draw(values, output_dir, run, options, page, picture)


def _draw(
    values: flags.FlagValues,
    output_dir: Path,
    run: Run,
    options: DecodeHParams,
    page: Path | None,
    picture: Path | None,
) -> None:
    """Writes page and picture."""
    tensorflow_setup.use_one_thread()
    with ExitStack() as files:
        page_file, picture_file = (
            files.enter_context(buffered_write(path)) if path else None for path in (page, picture)
        )
        translator, path, step = run_flags.load_translator(values, output_dir, options)
        title = f"{run.problem}, {run.hparams_set}, {step}"  # no folder, since a page may be passed on
        say(f"attention of {title}: {path}")
        attention = compute_attention(translator, values.input, values.target)
        attention = attention.select(values.layer, values.head, values.kind)
        if page_file:
            page_file.write(html_page(attention, title).encode())
        if picture_file:
            draw(attention, picture_file)
    print(f"input      {attention.source}\noutput     {attention.target}")
    if picture:
        print(f"picture    {picture}")
    if page:
        print(f"page       {page}\nnext: open it in a browser: {page.resolve().as_uri()}")


if __name__ == "__main__":
    sys.exit(main())

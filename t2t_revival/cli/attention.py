"""`t2t-attention`: draws the attention of a trained model.

t2t-attention --output_dir=RUN --input="The dog sleeps because it is tired."

Shows the tokens that a trained model attends to, as figures 3 to 5 of the paper: decodes a sentence, or
reads its --target, and writes a page for a browser, where layers and heads can be chosen, or a picture, or
both. The page needs neither other files nor a network.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from t2t_revival.addons.attention.attention import compute_attention
from t2t_revival.addons.attention.page import page as html_page
from t2t_revival.addons.attention.picture import draw
from t2t_revival.cli.support import tensorflow_setup
from t2t_revival.cli.support.command import Command
from t2t_revival.cli.support.flags import WRITTEN, flag
from t2t_revival.cli.support.messages import say
from t2t_revival.cli.support.run_flags import ModelFlags, decode_options
from t2t_revival.cli.support.text_files import check_outputs
from t2t_revival.decoding import capabilities
from t2t_revival.errors import T2TError
from t2t_revival.utils.extras import require
from t2t_revival.utils.files import buffered_write

PAGE_NAME = "attention.html"


@dataclass(frozen=True)
class AttentionFlags(ModelFlags):
    exclusive = (("target", "decode_hparams"),)
    input: str = flag("", "Sentence to decode.", missing=" is missing: give a sentence, in quotes")
    target: str | None = flag(
        None, "Its output, as the model writes it; by default the best that the model finds."
    )
    decode_hparams: str = flag("", "Changes to the decoding, such as beam_size=4,alpha=0.6.")
    html: str = flag(
        "", f"File for the page; without --html and --png, output_dir/{PAGE_NAME}.", file=WRITTEN
    )
    png: str = flag(
        "", "File for the picture: each head of one layer, the last one without --layer.", file=WRITTEN
    )
    kind: str | None = flag(
        None,
        "Attention to show: of the encoder over the input, of the decoder over its own output, or of the "
        "decoder over the encoder; by default all.",
        choices=("encoder", "decoder", "cross"),
    )
    layer: int | None = flag(None, "Number of the layer to show, counted from 1; by default all.", least=1)
    head: int | None = flag(None, "Number of the head to show, counted from 1; by default all.", least=1)


def _attention(flags: AttentionFlags) -> None:
    folder = flags.open_model()
    check_outputs(flags.model_files(folder), flags.files(WRITTEN))
    page, picture = (Path(name).expanduser() if name else None for name in (flags.html, flags.png))
    if page is None and picture is None:
        page = folder.path / PAGE_NAME
    if page == picture:
        raise T2TError(f"--html={page} and --png={picture} are the same file: give different names")
    if picture:
        require("matplotlib", "--png")
    options = decode_options(flags.decode_hparams, folder.run)
    capabilities.check(options.asked(), capabilities.ATTENTION_PAGE)
    tensorflow_setup.load_tensorflow_alone()
    tensorflow_setup.use_one_thread()
    with ExitStack() as files:
        page_file, picture_file = (
            files.enter_context(buffered_write(path)) if path else None for path in (page, picture)
        )
        translator, path, step = flags.load_translator(folder, options)
        run = folder.run
        title = f"{run.problem}, {run.hparams_set}, {step}"  # no folder, since a page may be passed on
        say(f"attention of {title}: {path}")
        attention = compute_attention(translator, flags.input, flags.target)
        attention = attention.select(flags.layer, flags.head, flags.kind)
        if page_file:
            page_file.write(html_page(attention, title).encode())
        if picture_file:
            draw(attention, picture_file)
    print(f"input      {attention.source}\noutput     {attention.target}")
    if picture:
        print(f"picture    {picture}")
    if page:
        print(f"page       {page}\nnext: open it in a browser: {page.resolve().as_uri()}")


main = Command(AttentionFlags, _attention, __doc__)

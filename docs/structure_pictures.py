"""Draws the pictures of the structure: `python docs/structure_pictures.py` writes docs/images/*.svg.

A picture is rows of boxes with arrows between them, in the colours of the reader's theme.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

IMAGES = Path(__file__).parent / "images"
WIDTH, HEIGHT = 204, 58  # of a box
ACROSS, DOWN = 244, 96  # from a box to the next
MARGIN = 16
STYLE = """\
text { font: 13px system-ui, "DejaVu Sans", sans-serif; text-anchor: middle; fill: #1d2126 }
.small { font-size: 11px; fill: #56616c }
rect { fill: #f2f5f8; stroke: #8a97a3 }
.command rect { fill: #dbe9fb; stroke: #1a66c9 }
path { fill: none; stroke: #56616c; marker-end: url(#tip) }
#tip path { fill: #56616c; stroke: none; marker-end: none }
@media (prefers-color-scheme: dark) {
  text { fill: #e6eaee } .small { fill: #a5b0bb }
  rect { fill: #20262c; stroke: #66717c }
  .command rect { fill: #17304f; stroke: #7fb4ff }
  path { stroke: #a5b0bb } #tip path { fill: #a5b0bb }
}
"""


class Box(NamedTuple):
    """A box at a column and a row; a command's or a module's name begins with "t2t-" or ends in ".py"."""

    column: float
    row: float
    name: str
    about: str = ""

    @property
    def is_code(self) -> bool:
        return self.name.startswith("t2t-") or self.name.endswith(".py")

    def point(self, right: float, down: float) -> tuple[float, float]:
        """Returns a point of the box: 0 is its left or top, 1 its right or bottom."""
        x, y = MARGIN + self.column * ACROSS, MARGIN + self.row * DOWN
        return x + right * WIDTH, y + down * HEIGHT


FILES = {
    "corpus": Box(0, 0, "corpus", "train.en, train.de, …"),
    "datagen": Box(1, 0, "t2t-datagen", "t2t-trainer does it too"),
    "data": Box(2, 0, "data_dir", "vocabulary, shards"),
    "trainer": Box(3, 0, "t2t-trainer", "TensorFlow or JAX"),
    "text": Box(4, 0, "translations", "and scores, alignments"),
    "others": Box(1, 1, "other models", "tensor2tensor, OPUS-MT"),
    "import": Box(2, 1, "t2t-import-checkpoint"),
    "model": Box(3, 1, "output_dir", "hparams, checkpoints"),
    "decoder": Box(4, 1, "t2t-decoder", "or CTranslate2 in it"),
    "distill": Box(3, 2, "t2t-distill", "a smaller output_dir"),
    "exporter": Box(4, 2, "t2t-exporter"),
    "people": Box(2, 3, "programs and people", "HTTP, gRPC, a page"),
    "server": Box(3, 3, "t2t-server", "or TensorFlow Serving"),
    "export": Box(4, 3, "export", "SavedModel, LiteRT, …"),
}
DECODING = {
    "line": Box(0, 0, "a line", "text"),
    "translator": Box(1, 0, "translator.py", "runs lines/pipeline.py"),
    "preprocessor": Box(2, 0, "lines/preprocessor.py", "tags, lengths, ids"),
    "batching": Box(3, 0, "lines/batching.py", "lines of like length"),
    "search": Box(3, 1, "lines/local_search.py", "asks an engine"),
    "engine": Box(2, 1, "engines/tensorflow_engine.py", "or JAX's, or CTranslate2's"),
    "graph": Box(1, 1, "search/search_graph.py", "traces the loop once"),
    "loop": Box(0, 1, "search/decoding_loop.py", "until no beam can improve"),
    "beam": Box(0, 2, "search/beam_search.py", "grows hypotheses by a token"),
    "step": Box(1, 2, "model/incremental.py", "the model, one position"),
    "score": Box(2, 2, "hypothesis_scores.py", "length, coverage"),
    "output": Box(3, 2, "outputs.py", "ids to text, details"),
}


def arrows(boxes: Mapping[str, Box], pairs: str) -> Iterator[str]:
    """Yields paths of "from>to": straight between neighbours, else along a row and then a column."""
    for pair in pairs.split():
        start, end = (boxes[name] for name in pair.split(">"))
        if start.column == end.column:
            down = end.row > start.row
            points = [start.point(0.5, down), end.point(0.5, not down)]
        else:
            right = end.column > start.column
            points = [start.point(right, 0.5), end.point(not right, 0.5)]
            middle = (points[0][0] + points[1][0]) / 2
            points[1:1] = [(middle, points[0][1]), (middle, points[1][1])]
        yield f'<path d="M{" L".join(f"{x:g} {y:g}" for x, y in points)}"/>'


def svg(title: str, boxes: Mapping[str, Box], pairs: str) -> str:
    """Returns a picture."""
    right, bottom = (max(box.point(1, 1)[axis] for box in boxes.values()) + MARGIN for axis in (0, 1))
    drawn = []
    for box in boxes.values():
        (x, y), (middle, _) = box.point(0, 0), box.point(0.5, 0)
        kind = ' class="command"' if box.is_code else ""
        name = f'<text x="{middle:g}" y="{y + (26 if box.about else 34):g}">{escape(box.name)}</text>'
        about = f'<text class="small" x="{middle:g}" y="{y + 44:g}">{escape(box.about)}</text>'
        drawn.append(
            f'<g{kind}><rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
            f"{name}{about if box.about else ''}</g>"
        )
    lines = "\n".join([*arrows(boxes, pairs), *drawn])
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:g} {bottom:g}" role="img">\n'
        f'<title>{title}</title>\n<style>\n{STYLE}</style>\n{tip}<path d="M0 0 L8 4 L0 8"/></marker>\n'
        f"{lines}\n</svg>\n"
    )


def pictures() -> dict[str, str]:
    """Returns the pictures by file name."""
    files = (
        "corpus>datagen datagen>data data>trainer trainer>model others>import import>model model>distill "
        "distill>model model>decoder decoder>text model>exporter exporter>export export>server server>people"
    )
    decoding = (
        "line>translator translator>preprocessor preprocessor>batching batching>search search>engine "
        "engine>graph graph>loop loop>beam beam>step step>score score>output"
    )
    return {
        "files.svg": svg("From a corpus to a served model", FILES, files),
        "decoding.svg": svg("A line through decoding", DECODING, decoding),
    }


if __name__ == "__main__":
    for file, picture in pictures().items():
        (IMAGES / file).write_text(picture, encoding="utf-8")

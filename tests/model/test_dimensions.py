"""Shapes in comments and docstrings of the model have the names of the legend in `t2t_revival.model`."""

import re
import tokenize
from pathlib import Path

import t2t_revival.model

FOLDER = Path(t2t_revival.model.__file__).parent
LEGEND = {
    name
    for line in re.findall(r"^    ([a-z, ]+): (?=[^\n]+$)", t2t_revival.model.__doc__ or "", re.M)
    for name in line.split(", ")
} | {"source", "target", "positions", "beams"}
JOINED = {"or", "of", "sum", "sizes", "size", "head", "a", "before", "after", "from", "to"}


def shapes(path: Path) -> list[str]:
    """Returns what stands in brackets in comments and docstrings."""
    with path.open("rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    texts = (t.string for t in tokens if t.type == tokenize.COMMENT or t.string.startswith('"""'))
    return [shape for text in texts for shape in re.findall(r"\[([^\[\]]*)\]", text)]


def test_names_of_dimensions() -> None:
    assert {"batch", "hidden", "memory", "vocab"} <= LEGEND
    unknown = [
        f"{path.name}: [{shape}]"
        for path in sorted(FOLDER.rglob("*.py"))
        for shape in shapes(path)
        if not set(re.findall("[a-z_]+", shape)) <= LEGEND | JOINED
    ]
    assert not unknown

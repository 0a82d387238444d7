"""Every syntax of the guide's table: what a line has of it comes out once, byte for byte."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.addons.markup.plain import describe_faults, take_out
from t2t_revival.addons.markup.put_back import put_back

GUIDE = Path(__file__).parents[3] / "docs/guides/decoding_control.md"
WORDS = "…"  # between the tags of an element
NOT_SO = {"escapes": "placeholders", "numbers": "html+numbers"}  # kinds of rows that are not for all
TEXTS = st.lists(st.sampled_from(["red", "big", "House,", "(is", "so)", "it's", "!"]), max_size=4).map(
    " ".join
)
LINKS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=16)


def examples():
    section = GUIDE.read_text().partition("| syntax | examples |")[2].partition("\n\n")[0]
    rows = [line.split(" | ", 1) for line in section.splitlines() if line.startswith("| ")]
    assert len(rows) >= 18
    for syntax, cells in rows:
        name = syntax.removeprefix("| ")
        own = next((kind for start, kind in NOT_SO.items() if name.startswith(start)), None)
        for example in re.findall(r"`([^`]+)`", cells.replace("\\|", "|")):
            for kind in [own] if own else ["html", "placeholders"]:
                yield pytest.param(example, kind, id=f"{kind} {example}")


@pytest.mark.parametrize(("example", "kind"), examples())
@settings(max_examples=25, deadline=None)
@given(TEXTS, TEXTS, TEXTS, TEXTS, LINKS)
def test_comes_out_once_byte_for_byte(example, kind, before, within, after, output, links):
    parts = example.split(WORDS)
    line = f"{before} {(within or 'dog').join(parts)} {after}"
    plain = take_out(line, kind)
    assert "".join(plain.text.split()) == "".join(
        f"{before}{(within or 'dog') * (len(parts) - 1)}{after}".split()
    )
    result = put_back(plain, output, links)
    if plain.text:
        rest = result
        for part in parts:
            assert rest.count(part) == 1
            rest = rest.partition(part)[2]
            result = result.replace(part, "", 1)
        assert "".join(result.split()) == "".join(output.split())
    assert describe_faults([line], kind) == []


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('The <a href="x', "html"),
        ("The {% if x", "html"),
        ("%} dog", "placeholders"),
        ("The {n, plural, one {dog", "placeholders"),
        ("The &lt;a href=", "html"),
        ("see [[x", "html"),
        ("{{ name", "html"),
        ("a ${name", "placeholders"),
    ],
)
def test_what_is_not_whole_is_named(line, kind):
    assert take_out(line, kind).text == line.replace("&lt;", "<")
    [fault] = describe_faults(["The dog.", line, line], kind, first_line=4)
    assert fault.startswith("line 5, and 1 more lines: what looks like markup is incomplete")


@pytest.mark.parametrize(
    "line",
    [
        "**bold** and :name and [x] (y)",
        "x < y > z",
        "a <- b -> c",
        "struct { int a; } x",
        "[1] [sic]",
        "I <3 you",
    ],
)
def test_what_is_no_markup_is_text_without_a_warning(line):
    assert take_out(line, "placeholders").text == line
    assert describe_faults([line], "placeholders") == []

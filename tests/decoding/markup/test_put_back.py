"""Marks in a translation: each exactly once, at its words, in valid nesting."""

import re
from collections import Counter
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.addons.markup.plain import take_out
from t2t_revival.addons.markup.put_back import put_back
from t2t_revival.utils.texts import is_blank

WORDS = st.sampled_from(["red", "big", "House,", "is", "(a", "b)", "„Q“", "CO", "2.", "-", "it's", "!"])
POINTS = st.sampled_from(
    ["%1$s", "{x}", "<br/>", "\\n", "<http://x.org>", "<img src='y'>", "<!-- c -->", "%%"]
)
SPACES = st.sampled_from([" ", " ", ""])
TEXT = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
LINKS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=16)
OUTPUTS = st.lists(WORDS, max_size=9).map(" ".join)
MARKS = re.compile(r"%1\$s|\{x\}|<[^<>]*>|\\n|%%")
TAGS = re.compile(r"<(/?)(b|i|p|li|a)(?: [^<>]*)?>")


def elements(inner):
    names = st.sampled_from(["b", "i", "p", "li", "a href='x y'"])
    parts = st.tuples(names, SPACES, inner, SPACES)
    return parts.map(lambda one: f"<{one[0]}>{one[1]}{one[2]}{one[3]}</{one[0].split()[0]}>")


def joined(inner):
    pieces = st.lists(st.tuples(inner, SPACES).map("".join), min_size=1, max_size=4)
    return pieces.map("".join)


BALANCED = joined(st.recursive(TEXT | POINTS, lambda inner: elements(joined(inner)), max_leaves=6))
BROKEN = joined(TEXT | POINTS | st.sampled_from(["<b>", "</b>", "<i>", "</i>", "<p>", "</p>"]))


def is_nested(text):
    path = []
    for end, name in TAGS.findall(text):
        if not end:
            path.append(name)
        elif not path or path.pop() != name:
            return False
    return not path


def remove(marks, text):
    for mark in sorted(marks, key=lambda mark: -len(mark.text)):
        assert mark.text in text
        text = text.replace(mark.text, "\1" if mark.breaks else "\0", 1)
    return text.replace("\0", "").replace("\1", " ")


def without_space(text):
    return re.sub(r"\s", "", text)


@settings(max_examples=400, deadline=None)
@given(BALANCED | BROKEN, OUTPUTS, LINKS, st.sampled_from(["placeholders", "html"]))
def test_each_mark_comes_out_once_and_the_text_stays(line, output, links, kind):
    plain = take_out(line, kind)
    result = put_back(plain, output, links)
    if not plain.text.strip():
        assert result == (line if plain.marks else output)
        return
    assert not re.search(r"\s\s", result) or re.search(r"\s\s", line)
    if kind == "placeholders":
        assert Counter(MARKS.findall(result)) == Counter(MARKS.findall(line))
        words = r"\s+".join(r"\s*".join(map(re.escape, word)) for word in output.split())
        assert re.fullmatch(rf"\s*{words}\s*", remove(plain.marks, result))
    else:
        tags = re.compile("<[^<>]*>")
        assert Counter(tags.findall(result)) == Counter(tags.findall(line))


@settings(max_examples=400, deadline=None)
@given(BALANCED, OUTPUTS, LINKS)
def test_nesting_stays_valid(line, output, links):
    assert is_nested(line)
    assert is_nested(put_back(take_out(line, "html"), output, links))


@settings(max_examples=300, deadline=None)
@given(BALANCED)
def test_the_text_itself_as_translation_keeps_the_order_of_marks(line):
    plain = take_out(line, "placeholders")
    words = range(len(plain.text.split()))
    result = put_back(plain, plain.text, zip(words, words, strict=True))
    assert without_space(result) == without_space(line)


@given(st.text(st.sampled_from("aé .,-'\"()5%$&<>"), max_size=30), LINKS)
def test_a_line_without_marks_is_as_translated(line, links):
    plain = take_out(line, "placeholders")
    if not plain.marks:
        assert plain.text == line
        expected = "" if is_blank(line) else line.upper()  # blank in, empty out
        assert put_back(plain, line.upper(), links) == expected


def words_of(pairs):
    return [tuple(map(int, pair.split("-"))) for pair in pairs.split()]


PLACES = [
    (
        "The <b>red</b> house of {name} is <i>big</i>.",
        "Das Haus von ist rot, groß.",
        "0-0 1-4 2-1 3-2 4-3 5-5",
        "Das Haus von {name} ist <b>rot</b>, <i>groß</i>.",
    ),
    (
        "The file '%s' was not found: %s",
        "Die Datei wurde nicht gefunden:",
        "0-0 1-1 2-2 3-3 4-4",
        "Die Datei '%s' wurde nicht gefunden: %s",
    ),
    ("Error: %s", "Fehler:", "0-0", "Fehler: %s"),
    ("Error: %s", "Fehler aufgetreten", "0-0", "Fehler %s aufgetreten"),
    ("The file %s that I saw", "Die Datei, die ich sah", "0-0 1-1 2-2 3-3 4-4", "Die Datei %s, die ich sah"),
    ("Hello {name}!", "Guten Tag!", "0-0 0-1", "Guten Tag {name}!"),
    ("<b>pick</b> <i>him</i> <b>up</b>", "hole ihn ab", "0-0 1-1 2-2", "<b>hole</b> <i>ihn</i> <b>ab</b>"),
    ("<b>pick up</b> <i>him</i>", "hole ihn ab", "0-0 1-2 2-1", "<b>hole</b> <i>ihn</i> ab"),
    ("<b>pick up</b> him", "hole ihn ab", "0-0 1-2 2-1", "<b>hole ihn ab</b>"),
    ("<b>hard</b> <i>disk</i>", "Festplatte", "0-0 1-0", "<b>Festplatte</b><i></i>"),
    ("<p><b>A dog</b> barks.</p>", "Es bellt ein Hund.", "0-2 1-3 2-1", "<p>Es bellt <b>ein Hund</b>.</p>"),
    ('Say "<i>hello</i>"!', "„Hallo“ sagen!", "0-1 1-0", "„<i>Hallo</i>“ sagen!"),
    ("the {n}th file", "die te Datei", "0-0 1-1 2-2", "die {n}te Datei"),
    ("One<br>two", "Eins. Zwei", "0-0 1-1", "Eins.<br>Zwei"),
    ("%s was deleted", "wurde gelöscht", "", "%s wurde gelöscht"),
    ("CO<sub>2</sub> in air", "In Luft ist CO2.", "0-3 1-0 2-1", "In Luft ist CO<sub>2</sub>."),
    ("Tom &amp; <i>Q</i>", "Tom & <Q>", "0-0 1-1 2-2", "Tom &amp; <i>&lt;Q&gt;</i>"),
    ("a <b>b</b>", "", "", "<b></b>"),
    ("<b>%s</b>", "x", "", "<b>%s</b>"),
]


@pytest.mark.parametrize(("line", "output", "links", "expected"), PLACES)
def test_places(line, output, links, expected):
    assert put_back(take_out(line, "html"), output, words_of(links)) == expected


def test_entities_of_the_output():
    plain = take_out("1 &lt; 2 &amp; 3", "placeholders")
    assert plain.text == "1 < 2 & 3"
    assert put_back(plain, "1 < 2 & 3", []) == plain.line
    assert unescape(put_back(plain, "a&b<c>d", [])) == "a&b<c>d"

"""Markup of a line: found, paired, taken out, and put back byte for byte."""

from itertools import pairwise

import pytest

from t2t_revival.addons.markup.elements import parse
from t2t_revival.addons.markup.patterns import find
from t2t_revival.addons.markup.plain import take_out
from t2t_revival.decoding.options import MARKUP

MESSAGES = [  # of software: line, plain text, marks
    ("Hello, {name}!", "Hello,!", ["{name}"]),
    ("%d of %d files copied", "of files copied", ["%d", "%d"]),
    ("Cannot open '%s': %s", "Cannot open:", ["'%s'", "%s"]),
    ("Copied %1$s to %2$s.", "Copied to.", ["%1$s", "%2$s"]),
    ("%(count)d of %(total)5.1f MB", "of MB", ["%(count)d", "%(total)5.1f"]),
    ("%-5.2f%% of the disk is used", "of the disk is used", ["%-5.2f%%"]),
    ("About 50% of all users, 100% sure", "About 50% of all users, 100% sure", []),
    ("It is 100%% sure", "It is 100 sure", ["%%"]),
    ("Saved on %Y-%m-%d at %H:%M.", "Saved on at.", ["%Y-%m-%d", "%H:%M"]),
    ("Page %1 of %2", "Page of", ["%1", "%2"]),
    ("Start %PRODUCTNAME Writer", "Start Writer", ["%PRODUCTNAME"]),
    ("The ${product} folder", "The folder", ["${product}"]),
    ("Open $[officename] and $(ARG1).", "Open and.", ["$[officename]", "$(ARG1)"]),
    ("The table “$table$” is locked", "The table is locked", ["“$table$”"]),
    ("Set $HOME/.config/x.conf.", "Set.", ["$HOME/.config/x.conf"]),
    ("It costs $5, or $1,000.", "It costs $5, or $1,000.", []),
    ("Replace with $1", "Replace with $1", []),
    ("{n, plural, one {# file} other {# files}} left", "left", ["{n, plural, one {# file} other {# files}}"]),
    ("In { $year }, {user profile} has {{ name }}", "In, has", ["{ $year }", "{user profile}", "{{ name }}"]),
    ("struct { int a, b; } x", "struct { int a, b; } x", []),
    ("The $kind_$name and $a| of $b.c", "The and of", ["$kind_$name", "$a|", "$b.c"]),
    ("bg %job is %dpx or %dx%d", "bg is or x", ["%job", "%dpx", "%d", "%d"]),
    ("Built with @prefix@.", "Built with.", ["@prefix@"]),
    ("First line\\nSecond line\\n", "First line Second line", ["\\n", "\\n"]),
    ('Press \\"Go\\" now', "Press Go now", ['\\"', '\\"']),
    ("Write to C:\\new\\table.txt first", "Write to first", ["C:\\new\\table.txt"]),
    ("See https://example.org/a_(b), or else", "See, or else", ["https://example.org/a_(b)"]),
    ("Ask <me.too@example.org> or www.example.org.", "Ask or.", ["<me.too@example.org>", "www.example.org"]),
    ("Type http:// first", "Type first", ["http://"]),
    ("The <b>new</b> file", "The new file", ["<b>", "</b>"]),
    ("user@.service and a@b", "user@.service and a@b", []),
    ("if a < b && c > d", "if a < b && c > d", []),
    ("&File", "&File", []),
]
PAGES = [
    ('<p class="x">One<br/>two</p>', "One two", ['<p class="x">', "<br/>", "</p>"]),
    ("<li>One</li><li>Two</li>", "One Two", ["<li>", "</li>", "<li>", "</li>"]),
    ("<B  class='x>y'>Hi</b >", "Hi", ["<B  class='x>y'>", "</b >"]),
    ("M&uuml;ller &amp; Co", "Müller & Co", []),
    ("10&nbsp;km &legal; x", "10\xa0km x", ["&legal;"]),
    ("A <!-- note <b> --> B<?php x ?>", "A B", ["<!-- note <b> -->", "<?php x ?>"]),
    ("<!DOCTYPE html><title>Hi</title>", "Hi", ["<!DOCTYPE html>", "<title>", "</title>"]),
    ('<a href="x"><img src=y></a> right', "right", ['<a href="x"><img src=y></a>']),
    ("<td>&nbsp;</td>", "", ["<td>&nbsp;</td>"]),
    ("line\\nline", "line\\nline", []),
    ("CO<sub>2</sub>", "CO2", ["<sub>", "</sub>"]),
]


@pytest.mark.parametrize(
    ("kind", "line", "text", "marks"),
    [("placeholders", *case) for case in MESSAGES] + [("html", *case) for case in PAGES],
)
def test_lines(kind, line, text, marks):
    plain = take_out(line, kind)
    assert plain.text == text
    assert [mark.text for mark in plain.marks] == marks


@pytest.mark.parametrize("kind", MARKUP)
def test_numbers_only_if_asked(kind):
    plain = take_out("At 10:30 it was -4.5, on 1/2/2020, not x86", kind)
    found = ["10:30", "-4.5", "1/2/2020"] if "numbers" in kind else []
    assert [mark.text for mark in plain.marks] == found


def test_unbalanced_tags_stand_alone():
    for line, count in (("<b>a</i>", 2), ("<b><i>a</b></i>", 2), ("<p>a", 1), ("a</p>", 1), ("<b>a</B>", 0)):
        assert take_out(line, "html").unbalanced == count
    plain = take_out("<user> <b>gave</b> <file>", "html")
    assert [mark.shape for mark in plain.marks] == ["tag", "open", "close", "tag"]


def test_elements_without_text_are_one_span():
    spans = parse("<a><b></b><i>x</i></a>", "html").spans
    assert [span.shape for span in spans] == ["open", "tag", "open", "close", "close"]


def test_no_two_spans_overlap():
    text = "'%s''%s' (%d)(%d) <<b>> {{a}} ${b}} %%%d%%%s\\n\\n\\\\n \"{a}\"{b}\" http://x.org)(mailto:a@b.cc)"
    for kind in MARKUP:
        spans = find(text, kind)
        assert all(one.end <= other.start for one, other in pairwise(spans))
        assert all(span.start < span.end for span in spans)


def test_long_lines_of_signs_take_little_time():
    for sign in ("<", "{", "%", "$", "\\", "<a ", "&", "a@", "://", "<b>", "(", "'", "http://(", "-", "1"):
        take_out(sign * 2000, "placeholders+numbers")

"""Lines with markup through a translator: what it gets, and what comes of its outputs."""

import pytest

from t2t_revival import DecodeHParams, T2TError
from t2t_revival.addons.markup.plain import describe_faults
from tests.support.exported import make_translator


def test_unbalanced_lines_are_named_once():
    lines = ["<b>a</b>", "<i>b", "c</p>", "<d>"]
    [fault] = describe_faults(lines, "html", 5)
    assert fault.startswith("line 6, and 2 more lines: tags without")
    assert describe_faults(lines[:2], "html")[0].startswith("line 2: tags without")
    assert describe_faults(lines[:1], "html") == []


def translator(vocabulary, asked):
    return make_translator(vocabulary, DecodeHParams.parse(f"extra_length=2,beam_size=2,{asked}"))


def test_refusals(vocabulary):
    with pytest.raises(T2TError, match="line 2: not valid Unicode"):
        translator(vocabulary, "markup=html").nbest(["a", "\ud800"])
    with pytest.raises(T2TError, match="markup=html cannot be combined with more than one output"):
        translator(vocabulary, "markup=html").nbest(["a"], n=2)
    with pytest.raises(T2TError, match="markup=html cannot be combined with forced beginnings"):
        translator(vocabulary, "markup=html").nbest(["a"], prefixes=["x"])

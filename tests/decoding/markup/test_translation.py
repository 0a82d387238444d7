"""Lines with markup through a translator: what it gets, and what comes of its outputs."""

import keras
import pytest

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translation, Translator, registry
from t2t_revival.decoding.markup import translation
from t2t_revival.decoding.markup.plain import describe_faults


def test_unbalanced_lines_are_named_once():
    lines = ["<b>a</b>", "<i>b", "c</p>", "<d>"]
    [fault] = describe_faults(lines, "html", 5)
    assert fault.startswith("line 6, and 2 more lines: tags without")
    assert describe_faults(lines[:2], "html")[0].startswith("line 2: tags without")
    assert describe_faults(lines[:1], "html") == []


def translator(vocabulary, asked):
    keras.utils.set_random_seed(1)
    hparams = HParams(num_hidden_layers=1, hidden_size=16, filter_size=16, num_heads=2, max_length=12)
    model = Transformer(hparams, vocabulary.size)
    return Translator(model, vocabulary, DecodeHParams.parse(f"extra_length=2,beam_size=2,{asked}"))


def identity(model, pairs):
    assert model.options.markup == ""
    return [[(number, number) for number in range(len(source.split()))] for source, _ in pairs]


@pytest.mark.slow
def test_completed_lines_stay(vocabulary, monkeypatch):
    monkeypatch.setattr(translation, "align", identity)
    seen = {}
    model, lines = translator(vocabulary, "markup=html"), ["the <b>dog</b>", "a <b>cat</b>"]
    found = model.nbest(lines, on_outputs=seen.update)
    assert [seen[0], seen[1]] == found
    kept = {0: [Translation("<b>kept</b>", 1.0)], 1: found[1]}
    assert model.nbest(lines, completed=kept) == [kept[0], kept[1]]


def test_refusals(vocabulary):
    with pytest.raises(T2TError, match="line 2: not valid Unicode"):
        translator(vocabulary, "markup=html").nbest(["a", "\ud800"])
    with pytest.raises(T2TError, match="n=2: markup has one output for each line"):
        translator(vocabulary, "markup=html").nbest(["a"], n=2)
    with pytest.raises(T2TError, match="markup has no forced beginnings"):
        translator(vocabulary, "markup=html").nbest(["a"], prefixes=["x"])
    parser = translator(vocabulary, "markup=html")
    parser.problem = registry.problem("parse_wsj")
    with pytest.raises(T2TError, match="here outputs are trees"):
        parser.nbest(["One."])

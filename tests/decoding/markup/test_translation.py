"""Lines with markup through a translator: what it gets, and what comes of its outputs."""

import keras
import pytest

from t2t_revival import DecodeHParams, HParams, T2TError, Transformer, Translation, Translator, registry
from t2t_revival.decoding.markup import translation
from t2t_revival.decoding.markup.plain import describe_faults
from t2t_revival.decoding.markup.translation import translate_with_markup


class Backwards:
    """Translates to the words in capitals, from the last to the first; remembers its lines."""

    def __init__(self):
        self.lines = []
        self.aligned = []

    def translate(self, lines, on_outputs):
        self.lines += lines
        found = {}
        for number, line in enumerate(lines):
            words = line.removeprefix("<2de> ").upper().split()
            found[number] = [Translation(" ".join(words[::-1]), -1.0 * bool(words))]
            on_outputs({number: found[number]})
        return list(found.values())

    def align(self, lines, outputs):
        self.aligned += lines
        pairs = []
        for line, output in zip(lines, outputs, strict=True):
            words, count = line.split(), len(output.split())
            first = len(words) - count
            pairs.append([(first + number, count - 1 - number) for number in range(count)])
        return pairs


def test_lines():
    fake, seen = Backwards(), {}
    lines = ["<b>one</b> two %s three", "plain text", "", "%s <br/>", "<2de> <i>vier</i> %d", "a &lt; b"]
    found = translate_with_markup(fake.translate, fake.align, lines, "html", ["<2de>"], seen.update)
    assert fake.lines == ["one two three", "plain text", "", "", "<2de> vier", "a < b"]
    assert [row[0].text for row in found] == [
        "THREE TWO %s <b>ONE</b>",
        "TEXT PLAIN",
        "",
        "%s <br/>",
        "<i>VIER</i> %d",
        "B &lt; A",
    ]
    assert seen == dict(enumerate(found))
    assert fake.aligned == ["one two three", "<2de> vier"]
    assert [row[0].score for row in found] == [-1.0, -1.0, 0.0, 0.0, -1.0, -1.0]


def test_an_empty_output_keeps_the_marks():
    found = translate_with_markup(
        lambda lines, collect: collect({0: [Translation("", -2.0)]}) or [[]], None, ["<b>a</b> %s"], "html"
    )
    assert found == [[Translation("<b></b> %s", -2.0)]]


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
@pytest.mark.parametrize(
    "more", ["", "sampling_method=random", "split_sentences=True", "mbr=chrf,candidates=4"]
)
def test_translators(vocabulary, monkeypatch, more):
    if more.startswith("split"):
        pytest.importorskip("sentencex")
    monkeypatch.setattr(translation, "align", identity)
    lines = ["The <b>dog</b> sees {x}.", "A cat runs.", "%s", "", "the\n<i>cat</i>. The dog."]
    marked = translator(vocabulary, f"markup=html,{more}").nbest(lines)
    texts = ["The dog sees.", "A cat runs.", "", "", "the cat. The dog."]
    plain = translator(vocabulary, more).nbest(texts, n=1)
    assert [row[0].score for row in marked] == [row[0].score for row in plain]
    assert marked[1] == plain[1]
    assert [row[0].text for row in marked[2:4]] == ["%s", ""]
    assert marked[0][0].text.replace("<b>", "").replace("</b>", "").replace("{x}", "").split() == (
        plain[0][0].text.split()
    )
    assert all(mark in marked[4][0].text for mark in ("<i>", "</i>"))


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

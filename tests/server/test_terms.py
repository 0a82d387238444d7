"""Terms of requests: outputs that are decoded once more, and terms that are named in the answer."""

import asyncio

from t2t_revival import T2TError
from t2t_revival.addons.server import terms
from t2t_revival.addons.server.translate import Options, translations
from t2t_revival.data.word_alignment import split_words
from t2t_revival.decoding.details import Details, Word
from t2t_revival.serving.signatures import NO_OUTPUT

LINKS = {  # of each output with the words of "The old dog sleeps."
    "Dackel schläft.": ((0, 0), (3, 1)),
    "Der Dackel schläft.": ((0, 0), (2, 1), (3, 2)),
    "Der alte Hund schläft.": ((0, 0), (1, 1), (2, 2), (3, 3)),
    "": (),
}
LINE, OTHER = "The old dog sleeps.", "We sleep."


def details_of(translator, pairs, tag):
    assert tag == "<de> "
    assert {source for source, _ in pairs} == {LINE}
    return [
        Details(
            (), tuple(Word(text[slice(*span)], *span, 0.0) for span in split_words(text)), (), LINKS[text]
        )
        for _, text in pairs
    ]


def check(monkeypatch, second, n=1):
    """Returns the answers for two lines, the constraints of each search, and what is unaligned."""
    monkeypatch.setattr(terms, "aligned", details_of)
    options, calls = Options(terms={"dog": "Dackel"}, tag="<de>", n=n), []
    padding = [""] * (n - 1)
    found = {
        "outputs": [[OTHER.encode()], [b"Dackel schl\xc3\xa4ft."]],
        "scores": [[-1.0], [-2.0]],
        "truncated": [False, False],
    }
    for texts, scores in zip(found["outputs"], found["scores"], strict=True):
        texts += [b""] * len(padding)
        scores += [NO_OUTPUT] * len(padding)

    async def translate(lines, constraints):
        assert lines == [LINE]
        calls.append((constraints[0].phrases, constraints[0].avoid))
        if isinstance(second, Exception) and len(calls) == 2:
            raise second
        text = second if len(calls) == 2 else "Der alte Hund schläft."
        return {
            "outputs": [[text.encode(), *[b""] * len(padding)]],
            "scores": [[-3.0, *[NO_OUTPUT] * len(padding)]],
            "truncated": [False],
        }

    async def in_thread(function):
        return function()

    work = terms.check_terms(options, None, [OTHER, LINE], found, translate, in_thread)
    columns, unaligned = asyncio.run(work)
    return [*translations([OTHER, LINE], columns)], calls, unaligned


def test_a_line_is_decoded_without_the_usual_word(monkeypatch):
    answers, calls, unaligned = check(monkeypatch, "Der Dackel schläft.", n=2)
    assert [(one.text, one.score, len(one.nbest)) for one in answers] == [
        (OTHER, -1.0, 1),
        ("Der Dackel schläft.", -3.0, 1),
    ]
    assert calls == [((), ()), (("Dackel",), ("Hund",))]
    assert unaligned == {}


def test_what_stays_unaligned_is_named(monkeypatch):
    for second in ("Dackel schläft.", T2TError("the vocabulary cannot spell 'Hund'")):
        answers, calls, unaligned = check(monkeypatch, second)
        assert [one.text for one in answers] == [OTHER, "Dackel schläft."]
        assert len(calls) == 2
        assert unaligned == {1: {"dog": "Dackel"}}

"""Terms in outputs: which are aligned, what another search avoids, and which output is kept."""

import json
from dataclasses import asdict

import pytest

from t2t_revival import DecodeHParams, LineConstraints, Terminology, Translation
from t2t_revival.data.vocabulary.spans import split_words
from t2t_revival.decoding.details import Details, Word
from t2t_revival.decoding.json_outputs import json_line
from t2t_revival.decoding.resumable import NO_HEADS, NO_WORDS, note_unaligned, unchecked
from t2t_revival.decoding.term_check import TermCheck, TermLine

DACKEL, KATZE = Terminology({"dog": "Dackel"}), Terminology({"dog": "Katze"})


def output(text, links):
    """An output with links of source words and its own, in Pharaoh's format."""
    words = tuple(Word(text[slice(*span)], *span, -1.0) for span in split_words(text))
    pairs = tuple(tuple(map(int, link.split("-"))) for link in links.split())
    return Translation(text, -1.0, details=Details((), words, (), pairs))


def line(terms, text, source=None, **more):
    constraints = terms.constraints(text)
    return TermLine(
        text, source or text, LineConstraints(constraints.phrases, terms=constraints.terms, **more)
    )


def unaligned(own, text, links):
    return own.check([output(text, links)])[0].unaligned


@pytest.mark.parametrize(
    ("terms", "source", "text", "links", "expected"),
    [
        (DACKEL, "The old dog sleeps.", "Der alte Dackel schläft.", "0-0 1-1 2-2 3-3", ()),
        (DACKEL, "The old dog sleeps.", "Dackel schläft.", "0-0 3-1", (("dog", "Dackel"),)),
        (
            KATZE,
            "The cat sees the dog.",
            "Die Katze sieht den Hund.",
            "0-0 1-1 2-2 3-3 4-4",
            (("dog", "Katze"),),
        ),
        (KATZE, "The cat sees the dog.", "Die Katze sieht die Katze.", "0-0 1-1 2-2 3-3 4-4", ()),
        (KATZE, "Dogs: dog dog", "Katze Katze Hunde", "1-0 1-1 0-2", (("dog", "Katze"),)),
        (KATZE, "the dog", "kein Wort", "0-0 1-1", ()),  # which `missing` tells
        (DACKEL, "the (dog)", "der („Dackel“-Hund)", "0-0 1-1", ()),
        (Terminology({"hot dog": "Wiener Wurst"}), "a hot dog", "die Wiener Wurst", "0-0 1-1 0-2", ()),
        (Terminology({"hot dog": "Wurst"}), "a  hot\u00a0dog or", "die Wurst oder", "0-0 1-1 2-2", ()),
        (Terminology({"dog": "狗"}), "the dog", "我爱狗", "0-0", ()),
    ],
)
def test_terms_that_are_not_aligned(terms, source, text, links, expected):
    assert unaligned(line(terms, source), text, links) == expected


def test_places_of_terms_are_those_of_the_models_input():
    own = line(DACKEL, "the dog's bone", source="the dog 's bone")
    assert unaligned(own, "der Knochen vom Dackel", "0-0 3-1 2-2 1-3") == ()
    assert unaligned(own, "der Dackel Knochen", "0-0 3-1 3-2") == (("dog", "Dackel"),)


def test_lines_have_terms_after_their_tag_and_across_line_ends():
    text = "the\nold dog"
    given = {0: KATZE.constraints("a cat"), 1: KATZE.constraints(text)}
    lines = TermCheck.of(given, ["a cat", text], ["<de> a cat", "<de> the old dog"], "<de>").lines
    assert [*lines] == [1]
    assert unaligned(lines[1], "die alte Katze", "0-0 1-1 2-2") == ()
    assert unaligned(lines[1], "die Katze Hund", "0-0 1-1 2-2") == (("dog", "Katze"),)


def test_the_usual_translation_is_avoided():
    own = line(DACKEL, "The dog sees the hound.")
    first = own.check([output("Dackel sieht den Hund.", "0-0 2-1 3-2 4-3")])[0]
    free = output("Der Hund, sieht den Köter.", "0-0 1-1 2-2 3-3 4-4")
    assert own.stricter(first, free) == LineConstraints(("Dackel",), ("Hund",), own.constraints.terms)
    also_for_others = output("Der Hund sieht den Hund.", "0-0 1-1 2-2 3-3 4-4")
    assert own.stricter(first, also_for_others) == own.constraints


def test_a_phrase_that_is_there_for_other_words_is_to_be_there_twice():
    own = line(KATZE, "The cat sees the dog.", avoid=("Pudel",))
    first = own.check([output("Die Katze sieht den Hund.", "0-0 1-1 2-2 3-3 4-4")])[0]
    stricter = own.stricter(first, first)
    assert stricter.phrases == ("Katze", "Katze")
    assert stricter.avoid == ("Pudel", "Hund")


def test_no_word_of_a_forced_phrase_is_avoided():
    own = line(Terminology({"dog": "Hund der Wache"}), "the dog")
    first = own.check([output("Hund der Wache der Hund", "0-0 0-1 0-2 0-3 1-4")])[0]
    assert first.unaligned
    own.stricter(first, output("der Hund", "0-0 1-1")).check()
    assert own.stricter(first, output("der Hund", "0-0 1-1")).avoid == ()


class Searches:
    """Stands for a model: its outputs of each kind of search, by index of the line."""

    def __init__(self, free, forced):
        self.free_outputs, self.forced_outputs, self.calls = free, forced, []

    def free(self, indices):
        self.calls.append(indices)
        return self.outputs({at: self.free_outputs[at] for at in indices})

    def forced(self, constraints):
        self.calls.append(constraints)
        return self.outputs({at: one for at, one in self.forced_outputs.items() if at in constraints})

    def check(self, lines, first):
        return TermCheck(lines)(self.outputs(first), self.free, self.forced)

    @staticmethod
    def outputs(found):
        return {at: [output(*one) for one in own] for at, own in found.items()}


OLD = line(DACKEL, "The old dog sleeps.")
ALIGNED, NOT_ALIGNED = ("Der Dackel schläft.", "0-0 2-1 3-2"), ("Dackel schläft.", "0-0 3-1")
FREE = ("Der alte Hund schläft.", "0-0 1-1 2-2 3-3")


def test_aligned_terms_need_no_other_search():
    searches = Searches({}, {})
    found = searches.check({1: OLD}, {1: [ALIGNED, NOT_ALIGNED]})
    assert searches.calls == []
    assert [one.unaligned for one in found[1]] == [(), (("dog", "Dackel"),)]


def test_the_output_in_which_the_term_is_aligned_is_kept():
    searches = Searches({1: [FREE], 2: [FREE], 3: [FREE]}, {1: [ALIGNED], 2: [NOT_ALIGNED]})
    first = {0: [ALIGNED], 1: [NOT_ALIGNED], 2: [("Dackel, er schläft.", "0-0")], 3: [NOT_ALIGNED]}
    found = searches.check(dict.fromkeys(range(4), OLD), first)
    avoided = LineConstraints(("Dackel",), ("Hund",), OLD.constraints.terms)
    assert searches.calls == [[1, 2, 3], dict.fromkeys((1, 2, 3), avoided)]
    kept = [found[at][0] for at in range(4)]
    assert [one.text for one in kept] == [ALIGNED[0], ALIGNED[0], "Dackel, er schläft.", NOT_ALIGNED[0]]
    assert [bool(one.unaligned) for one in kept] == [False, False, True, True]


def test_an_aligned_output_that_lacks_another_phrase_is_not_better():
    own = line(Terminology({"dog": "Dackel", "sleeps": "schläft"}), "The old dog sleeps.")
    searches = Searches({0: [FREE]}, {0: [("Der Dackel ruht.", "0-0 2-1 3-2")]})
    assert searches.check({0: own}, {0: [NOT_ALIGNED]})[0][0].text == NOT_ALIGNED[0]


def test_nothing_to_avoid_is_no_other_search():
    searches = Searches({0: [("Schläft.", "3-0")]}, {})
    assert searches.check({0: OLD}, {0: [NOT_ALIGNED]})[0][0].unaligned == (("dog", "Dackel"),)
    assert searches.calls == [[0]]


def test_that_nobody_checks_is_said_only_of_terms():
    terms, chinese = DACKEL.constraints("a dog"), Terminology({"dog": "狗"}).constraints("a dog")
    assert unchecked([None, LineConstraints(("Dackel",)), DACKEL.constraints("a cat")], NO_HEADS) == ""
    assert unchecked([None, terms], "") == ""
    assert unchecked([None, terms], NO_HEADS).endswith(NO_HEADS)
    assert unchecked([terms, chinese], "").endswith(NO_WORDS)


def test_reports():
    one = Translation("Dackel schläft.", -1.0, unaligned=(("dog", "Dackel"),))
    assert b'"unaligned": {"dog": "Dackel"}' in json_line([one], DecodeHParams())
    assert b"unaligned" not in json_line([Translation("a", -1.0)], DecodeHParams())
    assert Translation.from_json(json.loads(json.dumps(asdict(one)))) == one
    notes = []
    note_unaligned("in.en, line 3", one, notes.append)
    assert notes == ["warning: in.en, line 3: 'Dackel' is in the output, but seems not to translate 'dog'"]

"""Terms in outputs: which are aligned, what another search avoids, and which output is kept."""

import pytest

from t2t_revival import LineConstraints, Terminology, Translation
from t2t_revival.addons.lexical.constraints import checked
from t2t_revival.addons.lexical.term_check import TermCheck, TermLine
from t2t_revival.data.vocabulary.spans import split_words
from t2t_revival.decoding.details import Details, Word
from t2t_revival.decoding.lines.notes import NO_HEADS, NO_WORDS, unchecked

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


LINKED = [
    (DACKEL, "The old dog sleeps.", "Der alte Dackel schläft.", "0-0 1-1 2-2 3-3", ()),
    (DACKEL, "The old dog sleeps.", "Dackel schläft.", "0-0 3-1", (("dog", "Dackel"),)),
    (KATZE, "The cat sees the dog.", "Die Katze sieht den Hund.", "0-0 1-1 2-2 3-3 4-4", (("dog", "Katze"),)),
    (KATZE, "The cat sees the dog.", "Die Katze sieht die Katze.", "0-0 1-1 2-2 3-3 4-4", ()),
    (KATZE, "Dogs: dog dog", "Katze Katze Hunde", "1-0 1-1 0-2", (("dog", "Katze"),)),
    (KATZE, "the dog", "kein Wort", "0-0 1-1", ()),  # which `missing` tells
    (DACKEL, "the (dog)", "der („Dackel“-Hund)", "0-0 1-1", ()),
    (Terminology({"hot dog": "Wiener Wurst"}), "a hot dog", "die Wiener Wurst", "0-0 1-1 0-2", ()),
    (Terminology({"hot dog": "Wurst"}), "a  hot\u00a0dog or", "die Wurst oder", "0-0 1-1 2-2", ()),
    (Terminology({"dog": "狗"}), "the dog", "我爱狗", "0-0", ()),
]


@pytest.mark.parametrize(("terms", "source", "text", "links", "expected"), LINKED)
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
    checked(own.stricter(first, output("der Hund", "0-0 1-1")), 1)
    assert own.stricter(first, output("der Hund", "0-0 1-1")).avoid == ()


def test_that_nobody_checks_is_said_only_of_terms():
    terms, chinese = DACKEL.constraints("a dog"), Terminology({"dog": "狗"}).constraints("a dog")
    assert unchecked([None, LineConstraints(("Dackel",)), DACKEL.constraints("a cat")], NO_HEADS) == ""
    assert unchecked([None, terms], "") == ""
    assert unchecked([None, terms], NO_HEADS).endswith(NO_HEADS)
    assert unchecked([terms, chinese], "").endswith(NO_WORDS)

"""Unicode's normalization forms: examples of Unicode Standard Annex 15, and what must hold of any text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival.utils.unicode_forms import composed, form_of, main_form, mixed_note, normalized, not_in

PAIRS = [  # NFC and NFD, of the annex's figures
    ("\u00e9", "e\u0301"),
    ("\u1e69", "s\u0323\u0307"),
    ("\u1e0b\u0323", "d\u0323\u0307"),
    ("\uac00", "\u1100\u1161"),
    ("\uac01", "\u1100\u1161\u11a8"),
]
TEXTS = st.text(
    st.sampled_from("ae \u00e9\u0301\u0323\u0307\u1e69\u212b\uac00\u1100\u1161\u11a8\u0958\u0f71\u0f72")
)


@pytest.mark.parametrize(("nfc", "nfd"), PAIRS[:2] + PAIRS[3:])
def test_forms_of_lines(nfc, nfd):
    assert (form_of(nfc), form_of(nfd)) == ("nfc", "nfd")
    assert form_of(nfc + nfd) == "mixed"
    assert (normalized(nfd), normalized(nfc, "nfd"), normalized(nfd, "")) == (nfc, nfd, nfd)
    assert not_in("nfc", ["a", "日本", nfc, nfd, nfc + nfd]) == [nfd, nfc + nfd]
    assert form_of("a") == form_of("日本") == ""


@given(TEXTS)
def test_the_composed_text_and_the_places_of_its_characters(text):
    found, places = composed(text)
    assert found == unicodedata.normalize("NFC", text)
    assert (len(places), places[0], places[-1]) == (len(found) + 1, 0, len(text))
    assert list(places) == sorted(places)


@given(st.lists(st.sampled_from([*PAIRS, ("a", "a"), (" ", " ")])))
def test_each_composed_character_has_the_place_of_its_own_letter_and_marks(pairs):
    pairs = [pair for pair in pairs if pair != PAIRS[2]]  # two characters in NFC
    starts = [sum(len(nfd) for _, nfd in pairs[:number]) for number in range(len(pairs) + 1)]
    assert list(composed("".join(nfd for _, nfd in pairs))[1]) == starts


@pytest.mark.parametrize(
    ("lines", "form"),
    [
        ({}, "nfc"),
        ({"": 9}, "nfc"),
        ({"": 9, "nfc": 1}, "nfc"),
        ({"nfd": 1}, "nfd"),
        ({"nfc": 95, "nfd": 5}, "nfc"),
        ({"nfc": 94, "nfd": 6}, ""),
        ({"nfc": 1, "mixed": 1}, ""),
    ],
)
def test_the_form_of_most_lines_is_that_of_a_text(lines, form):
    assert main_form(lines) == form
    assert bool(mixed_note(lines)) == (form != "nfc")

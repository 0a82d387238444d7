"""Phrases as tokens: what their automata find is in the text, and the other way round."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.decoding.lexical_constraints import count
from t2t_revival.decoding.phrases import Spelling, automaton

TEXT = [
    f'the {noun} sees {number} houses. "Der {noun}", sagt er: nice U.S. 我爱狗 und 狗肉 क का.'
    for noun in ("dog", "dogs", "cat", "hot dog")
    for number in range(9)
]
PHRASES = ["dog", "hot dog", "the", "U.S.", '"Der', "er: nice", "狗", "我爱", "狗 und", "s", "9 9", "का"]


@pytest.fixture(scope="module", params=["sentencepiece", "subwords"])
def vocabulary(request, tmp_path_factory):
    if request.param == "subwords":
        return SubwordVocabulary.build_from_generator(TEXT, 120)
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 360)


def forms_runs(vocabulary):
    """Tokens after which no word follows in the same run of T2T's vocabularies, of which no text consists."""
    if not isinstance(vocabulary, SubwordVocabulary):
        return lambda token: True
    pieces = vocabulary.pieces
    return lambda token: pieces[token].removesuffix("_").isalnum() or pieces[token].endswith("_")


def occurrences(one, spelling, ids):
    """How often an automaton finds its phrase in ids before EOS."""
    state = found = 0
    for kind in one.classes_of(ids, spelling.classes):
        found += int(one.emits[state, kind])
        state = one.next_states[state, kind]
    return found + int(one.ended[state])


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(0, 30), max_size=12), st.sampled_from(PHRASES), st.integers(0, 3))
def test_what_an_automaton_finds_is_in_the_text(vocabulary, numbers, phrase, kind):
    """Random tokens, among them those of the phrase, never count more often than the text has it."""
    if phrase in ("狗 und", "का") and isinstance(vocabulary, SubwordVocabulary):
        return  # random tokens make runs of which no text consists, such as ";狗"
    spelling = Spelling(vocabulary)
    forms = spelling.forms(phrase)
    alphabet = sorted({token for form in forms for token in form.ids})
    pool = [*alphabet * 3, *filter(forms_runs(vocabulary), range(3, vocabulary.size, 7))]
    ids = [pool[number % len(pool)] for number in numbers]
    for form in (*forms[kind:], *forms[:kind]):
        ids += form.ids
    found = occurrences(automaton(forms, spelling), spelling, ids)
    assert found <= count(phrase, vocabulary.decode(ids))


def test_a_phrase_is_found_in_text_as_the_vocabulary_segments_it(vocabulary):
    spelling = Spelling(vocabulary)
    for phrase, context in product(PHRASES, ["{}", "{} cat", "cat {}", "cat {} cat {}", "cat {}."]):
        if phrase[-1] in ".\u093e" and context[-1] == ".":
            continue  # what is no letter is one run with the full stop
        text = context.format(phrase, phrase)
        found = occurrences(spelling.automaton(spelling.forms(phrase)), spelling, vocabulary.encode(text))
        if any("\u4e00" <= edge <= "\u9fff" for edge in (phrase[0], phrase[-1])):
            assert found <= count(phrase, text)  # whose pieces may go beyond the phrase
        else:
            assert found == count(phrase, text) == context.count("{}")


def test_a_part_of_a_word_is_none(vocabulary):
    spelling = Spelling(vocabulary)
    forms = spelling.forms("dog")
    one = automaton(forms, spelling)
    assert occurrences(one, spelling, vocabulary.encode("dogs hotdog the dogs")) == 0
    assert occurrences(one, spelling, vocabulary.encode("the dogs dog, dog")) == 2


def test_what_cannot_be_spelled_is_refused(vocabulary, monkeypatch):
    spelling = Spelling(vocabulary)
    with pytest.raises(T2TError, match="not valid Unicode"):
        spelling.forms("a\ud800")
    monkeypatch.setattr(type(vocabulary), "decode", lambda *_: "other")
    with pytest.raises(T2TError, match="cannot spell 'dog'"):
        spelling.forms("dog")

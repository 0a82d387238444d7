"""Terminologies, and inputs as JSON lines."""

import pytest

from t2t_revival import LineConstraints, T2TError, Terminology
from t2t_revival.addons.lexical.constraints import Term
from t2t_revival.addons.lexical.json_inputs import JsonLine, parse_json_lines

TERMS = Terminology(
    {
        "dog": "hund",
        "hot dog": "Hotdog",
        "IT": "Informatik",
        "house of cards": "Kartenhaus",
        "cards": "Karten",
    }
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a dog and a DOG", ["hund", "Hund"]),
        ("Dog: hot dog, hot-dog", ["Hund", "Hotdog", "hund"]),
        ("Hot dogs, doghouse, hotdog", []),
        ("IT is it", ["Informatik"]),
        ("house of cards of cards", ["Kartenhaus", "Karten"]),
        ("dog dog", ["hund", "hund"]),
        ("Hot dog", ["Hotdog"]),
        ("", []),
    ],
)
def test_terms_of_a_source(source, expected):
    found = TERMS.constraints(source)
    assert found == LineConstraints(tuple(expected), terms=found.terms)
    assert [term.phrase for term in found.terms] == expected
    assert [source[term.start : term.end] for term in found.terms] == [term.source for term in found.terms]


def test_any_white_space_may_stand_between_the_words_of_a_term():
    for space in ("  ", "\u00a0", "\u202f", "\t", " \u3000"):
        line = f"A hot{space}dog and a{space}house{space}of cards"
        first, second = TERMS.constraints(line).terms
        assert first == (f"hot{space}dog", "Hotdog", 2)
        assert second == (f"house{space}of cards", "Kartenhaus", line.index("house"))
        assert Terminology({f"hot{space}dog": "Hotdog"}).constraints("hot dog").phrases == ("Hotdog",)
    with pytest.raises(T2TError, match="line 2: line 1 translates 'hot dog' otherwise"):
        Terminology.parse(["hot dog\tHotdog", "hot  dog\tWurst"], "t")


def test_a_file_of_terms():
    lines = ["# comment", "", "dog\tHund", " hot dog \t Hotdog ", "dog\tHund"]
    assert Terminology.parse(lines, "terms").constraints("hot dog dog").phrases == ("Hotdog", "Hund")
    assert Terminology.parse([], "terms").constraints("dog") == LineConstraints()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dog", "terms, line 2: 'dog' is not two terms: write source term TAB target term"),
        ("dog\tHund\tchien", "terms, line 2: .* is not two terms"),
        ("\tHund", "terms, line 2: .* is not two terms"),
        ("dog\t ", "terms, line 2: .* is not two terms"),
        ("cat\tKater", "terms, line 2: line 1 translates 'cat' otherwise: keep one"),
    ],
)
def test_wrong_lines_of_terms(line, message):
    with pytest.raises(T2TError, match=message):
        Terminology.parse(["cat\tKatze", line], "terms")


def test_json_lines():
    lines = [
        '{"text": "the dog\\nsees"}',
        '{"text": "Dog", "constraints": ["Katze", "Hund"], "terms": {"dog": "Dackel"}, "avoid": ["Pudel"]}',
    ]
    first, second = parse_json_lines(lines, "in.jsonl")
    assert first == JsonLine("the dog\nsees")
    assert first.all_constraints(TERMS) == LineConstraints(("hund",), terms=(Term("dog", "hund", 4),))
    assert second.all_constraints(TERMS) == LineConstraints(
        ("Katze", "Hund", "Dackel"), ("Pudel",), (Term("Dog", "Dackel", 0),)
    )
    both = JsonLine("dog dog", ["hund"])
    assert both.all_constraints(TERMS) == LineConstraints(
        ("hund", "hund"), terms=(Term("dog", "hund", 0), Term("dog", "hund", 4))
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("the dog", "not JSON .*write {"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", 'no "text" that is a string'),
        ('{"text": 3}', 'no "text" that is a string'),
        ('{"text": "a", "constraint": []}', "did you mean constraints"),
        ('{"text": "a", "beam": 3}', "unknown key 'beam'; for all lines"),
        ('{"text": "a", "xyz": 3}', "unknown key 'xyz'; known: avoid, constraints, terms, text"),
        ('{"text": "a", "text": "b"}', "'text' is there twice"),
        ('{"text": "a", "constraints": "b"}', '"constraints" must be a list of strings'),
        ('{"text": "a", "avoid": [1]}', '"avoid" must be a list of strings'),
        ('{"text": "a", "terms": ["b"]}', '"terms" must be an object of strings'),
        ('{"text": "a", "terms": {"b": 1}}', '"terms" must be an object of strings'),
        ('{"text": "a", "terms": {"b": ""}}', 'a term in "terms" or its translation is empty'),
    ],
)
def test_wrong_json_lines_are_named(line, message):
    with pytest.raises(T2TError, match=f"^in.jsonl, line 5: .*{message}"):
        parse_json_lines(['{"text": "a"}', line], "in.jsonl", first_line=4)

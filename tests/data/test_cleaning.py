"""The rules of --clean: what each drops and keeps, duplicates, the sample, and faults."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data import cleaning
from t2t_revival.data.cleaning import RULES
from tests.support.line_corpus import translation, write_pairs

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "data.md"
CHINESE = "我们昨天在城里的旧书店买了三本关于历史的书"  # 21 characters
ENGLISH = "Yesterday we bought three books on history in the old bookshop in town"
DEV = [("first", "erste")]
PAIRS = [  # and the rule that drops them
    ("", "Hallo", "empty side"),
    ("Hello", " \u00a0\t", "empty side"),
    ("", "", "empty side"),
    ("Hello", "Hallo", None),
    ("The caf\ufffd is open", "Das Lokal ist offen", "broken text"),
    ("The caf\x8e is open", "Das Lokal ist offen", "broken text"),
    ("Das Lokal ist offen", "The caf\x00 is open", "broken text"),
    ("a tab\there", "ein Tabulator\thier", None),
    ("\u00ef\u00bb\u00bfHello there", "Hallo", "broken text"),
    ("Das ist „Spaß“, sagt sie: „hä“ …", "It is fun, she says", None),
    ("« Voilà », dit-il à\u00a0: « là »", "There, he says to her", None),
    ("A IRMÔ DA MANHÃ… E A MAÇû", "The sister of the morning", None),
    ("BLÅ… og RÅ\u2019 på 20 °C", "Blue and raw at 20 °C", None),
    ("AÐ„ „GUГ og ÞAÐ”", "God and that", None),
    ("ÂME ET FORÊT, ESPAÑA", "Soul and forest, Spain", None),
    ("same text", " same text ", "equal sides"),
    ("Same text", "same text", None),
    ("a" * 1001, "b" * 900, "long side"),
    ("a" * 900, "b" * 1001, "long side"),
    ("a" * 1000, "b" * 1000, None),
    ("a" * 31, "b" * 10, "uneven"),
    ("b" * 10, "a" * 31, "uneven"),
    ("a" * 33, "b" * 11, None),
    ("a" * 30, "b", None),
    (ENGLISH, CHINESE, None),
    (ENGLISH, CHINESE[:5], "uneven"),
    ("abc 123 45", "Hallo", "few letters"),
    ("Hello", "---", "few letters"),
    ("abc 123", "abc. 12", None),
    ("हिन्दी में", "in Hindi", None),
    ("เพื่อที่จะได้ไม่ต้อง", "in order not to have to", None),
]
WRONG_ENCODING = [
    (f"He says {character.encode().decode('cp1252')} and goes", "Er sagt das")
    for character in "ßüÜéàçñøł\u0159ž\u0438°«»\u2019\u201c\u2013…™€"
]


@pytest.fixture
def clean(subwords_file, tmp_path):
    """Makes cleaned data of pairs; returns its counts of train, the sample's lines and the kept pairs."""

    def make(pairs, folder="data"):
        corpus = write_pairs(tmp_path / f"{folder} corpus", {"train": pairs, "dev": DEV})
        problem = translation(corpus, vocab_file=subwords_file, vocab_size=0, clean=True)
        counts = problem.generate_data(tmp_path / folder).splits["train"]
        sample = (tmp_path / folder / "translate_ende.cleaned.txt").read_text(encoding="utf-8")
        return counts, sample.splitlines(), sorted(problem.open(tmp_path / folder).text("train"))

    return make


def test_each_rule_drops_what_it_says_and_nothing_else(clean):
    pairs = [*PAIRS, *((*pair, "broken text") for pair in WRONG_ENCODING)]
    counts, _, kept = clean([pair[:2] for pair in pairs])
    assert kept == sorted(pair[:2] for pair in pairs if pair[2] is None)
    rules = [rule for _, _, rule in pairs if rule]
    assert counts.cleaned == {rule: rules.count(rule) for rule in rules}


def test_the_first_of_equal_pairs_is_kept(clean):
    pairs = [("a", "x"), ("b", "x"), ("a", "x"), ("a", "y"), ("", "x"), ("a", "x"), ("", "x")]
    counts, _, kept = clean([*pairs, ("a\tb", "c"), ("a", "b\tc")])
    assert counts.cleaned == {"duplicate": 2, "empty side": 2}
    assert kept == sorted([("a", "x"), ("b", "x"), ("a", "y"), ("a\tb", "c"), ("a", "b\tc")])


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(["", "a", "b", "c", "a b", "1 2", "Ã¼ber"])] * 2)))
def test_it_finds_what_a_set_finds_and_a_second_time_nothing(subwords_file, pairs):
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "BLOCK", 3)

        def cleaned(name, rows):
            corpus = write_pairs(Path(folder, name), {"train": rows, "dev": DEV})
            problem = translation(corpus, vocab_file=subwords_file, vocab_size=0, clean=True)
            counts = problem.generate_data(Path(folder, f"{name} data")).splits["train"]
            return counts.cleaned, list(problem.open(Path(folder, f"{name} data")).text("train"))

        dropped, kept = cleaned("once", [("kept", "behalten"), *pairs])
        assert len(set(kept)) == len(kept)
        assert dropped.get("duplicate", 0) == sum(pair in kept for pair in pairs) + 1 - len(kept)
        again, the_same = cleaned("twice", kept)
        assert (again, sorted(the_same)) == ({}, sorted(kept))


def test_the_sample_has_the_first_pairs_of_each_rule(clean):
    pairs = [(f"{number}\tsame", f"{number}\tsame") for number in range(30)]
    _, lines, _ = clean([*pairs, ("Hello", "Hallo"), ("", "leer"), ("a" * 2000, "b")])
    assert lines[0] == "empty side\t\tleer"
    assert lines[1:-1] == [f"equal sides\t{number} same\t{number} same" for number in range(20)]
    assert lines[-1] == f"long side\t{'a' * 300}\tb"


def test_all_pairs_dropped_is_an_error_that_names_the_rules_and_leaves_nothing(clean, tmp_path):
    with pytest.raises(T2TError, match=r"--clean drops all pairs of train \(empty side 1, equal sides 2\)"):
        clean([("a", "a"), ("", "b"), ("c", "c")])
    assert not (tmp_path / "data").exists()


def test_the_guide_has_the_table_of_rules():
    rows = [f"| {rule.name} | {rule.drops} |" for rule in RULES]
    assert "\n".join(rows) in GUIDE.read_text(encoding="utf-8")

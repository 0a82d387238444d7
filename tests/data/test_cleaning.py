"""The rules of --clean: pairs that each drops and keeps, duplicates, the sample, and faults."""

import resource
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival.data import cleaning
from t2t_revival.data.cleaning import KEPT, RULES, apply_rules, count_dropped, rule_numbers, write_sample
from t2t_revival.data.sources import Source
from t2t_revival.errors import T2TError

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "data.md"
CHINESE = "我们昨天在城里的旧书店买了三本关于历史的书"  # 21 characters
ENGLISH = "Yesterday we bought three books on history in the old bookshop in town"


class Pairs(Source):
    """Pairs of train in memory."""

    name = "in memory"

    def __init__(self, pairs):
        self._pairs = pairs

    def splits(self):
        return ("train",)

    def count(self, split):
        return len(self._pairs)

    def pairs(self, split, start, stop):
        return iter(self._pairs[start:stop])


def dropped_by(pairs, folder):
    """Cleans pairs; returns for each the name of the rule that drops it, or `None`."""
    file = Path(folder, "rules")
    apply_rules(Pairs(pairs), len(pairs), file, lambda done, total: None)
    numbers = rule_numbers(file, 0, len(pairs))
    return [RULES[number - 1].name if number else None for number in numbers]


@pytest.mark.parametrize(
    ("source", "target", "rule"),
    [
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
    ],
)
def test_pairs_of_each_rule(source, target, rule, tmp_path):
    assert dropped_by([("first", "erste"), (source, target)], tmp_path) == [None, rule]


@pytest.mark.parametrize("character", "ßüÜéàçñøł\u0159ž\u0438°«»\u2019\u201c\u2013…™€")
def test_text_that_was_read_in_the_wrong_encoding(character, tmp_path):
    text = f"He says {character} and goes"
    pairs = [("He says", f"{text.encode().decode('cp1252')}"), (text, "Er sagt das")]
    assert dropped_by(pairs, tmp_path) == ["broken text", None]


def test_the_first_of_equal_pairs_is_kept(tmp_path):
    pairs = [("a", "x"), ("b", "x"), ("a", "x"), ("a", "y"), ("", "x"), ("a", "x"), ("", "x")]
    assert dropped_by(pairs, tmp_path) == [
        None,
        None,
        "duplicate",
        None,
        "empty side",
        "duplicate",
        "empty side",
    ]
    assert dropped_by([("a\tb", "c"), ("a", "b\tc")], tmp_path) == [None, None]


few_pairs = st.lists(
    st.tuples(*[st.sampled_from(["", "a", "b", "c", "a b", "1 2", "Ã¼ber"])] * 2), min_size=1
)


@settings(max_examples=15, deadline=None)
@given(few_pairs, st.integers(1, 5))
def test_parts_find_what_a_set_finds_and_a_second_time_finds_nothing(pairs, part):
    pairs = [("kept", "behalten"), *pairs]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "PART", part)
        patch.setattr(cleaning, "BLOCK", 3)
        rules = dropped_by(pairs, folder)
        kept = [pair for pair, rule in zip(pairs, rules, strict=True) if rule is None]
        assert set(dropped_by(kept, folder)) == {None}
    seen = set()
    for pair, rule in zip(pairs, rules, strict=True):
        assert (rule == "duplicate") == (pair in seen)
        if rule is None:
            seen.add(pair)


def test_progress_and_counts(tmp_path):
    pairs = [("a", "a"), ("", "b"), ("c", "c"), ("d", "e")] * 600
    calls = []
    apply_rules(Pairs(pairs), 2400, tmp_path / "rules", lambda *call: calls.append(call))
    assert calls == [(1000, 2400), (2000, 2400), (2400, 2400)]
    numbers = (tmp_path / "rules").read_bytes()
    assert count_dropped(numbers) == {"empty side": 600, "equal sides": 1200, "duplicate": 599}
    assert numbers.count(KEPT) == 1
    assert rule_numbers(tmp_path / "rules", 5, 9) == numbers[5:9]
    assert [path.name for path in tmp_path.iterdir()] == ["rules"]


def test_without_a_file_all_pairs_are_kept():
    assert rule_numbers(None, 3, 5) == bytes([KEPT, KEPT])


def test_all_pairs_dropped_is_an_error_that_names_the_rules(tmp_path):
    pairs = [("a", "a"), ("", "b"), ("c", "c")]
    with pytest.raises(
        T2TError, match=r"in memory: --clean drops all pairs of train \(empty side 1, equal sides 2\)"
    ):
        apply_rules(Pairs(pairs), 3, tmp_path / "rules", lambda done, total: None)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path):
    pairs = [(f"a{number}", f"b{number}") for number in range(300)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2399, before[1]))  # one byte less than the hashes have
    try:
        with pytest.raises(
            T2TError, match=r"cannot write hashes of pairs to .*: File too large; free disk space"
        ):
            apply_rules(Pairs(pairs), 300, tmp_path / "rules", lambda done, total: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_the_sample_has_the_first_pairs_of_each_rule(tmp_path):
    pairs = [(f"{number}\tsame", f"{number}\tsame") for number in range(30)]
    pairs += [("Hello", "Hallo"), ("", "leer"), ("a" * 2000, "b")]
    apply_rules(Pairs(pairs), 33, tmp_path / "rules", lambda done, total: None)
    write_sample(Pairs(pairs), tmp_path / "rules", tmp_path / "sample.txt")
    lines = (tmp_path / "sample.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "empty side\t\tleer"
    assert lines[1:-1] == [f"equal sides\t{number} same\t{number} same" for number in range(20)]
    assert lines[-1] == f"long side\t{'a' * 300}\tb"


def test_the_guide_has_the_table_of_rules():
    rows = [f"| {rule.name} | {rule.drops} |" for rule in RULES]
    assert "\n".join(rows) in GUIDE.read_text(encoding="utf-8")

"""Word alignments of a corpus by eflomal, and the links of both directions as one."""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.statistical_alignment import align_corpus, symmetrize
from tests.support.line_corpus import translation

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)
NOUNS = {"dog": "Hund", "cat": "Katze", "horse": "Pferd", "bird": "Vogel"}
WORDS = NOUNS | {"sees": "sieht", "finds": "findet", "today": "heute", "never": "nie"}


def test_eflomal_is_given_the_words_of_links(tmp_path, monkeypatch):
    class Aligner:
        def align(self, source, target, links_filename_fwd, links_filename_rev, quiet):
            assert [line.split() for line in source] == [["a", "dog"]]
            assert [line.split() for line in target] == [["bonjour", "chien_x"]]
            for name in (links_filename_fwd, links_filename_rev):
                Path(name).write_text("1-1\n")

    monkeypatch.setitem(sys.modules, "eflomal", SimpleNamespace(Aligner=Aligner))
    pairs = [("A dog", "Bonjour\u00a0, chien\u2028x")]
    assert [*align_corpus(pairs, tmp_path)] == ["1-1"]


@given(LINKS, LINKS)
def test_both_directions_as_one(forward, reverse):
    links = symmetrize(forward, reverse)
    assert forward & reverse <= links <= forward | reverse
    assert symmetrize(forward, forward) == forward
    for source, target in forward | reverse:
        assert any(source == link[0] for link in links) or any(target == link[1] for link in links)


def test_neighbours_are_added_and_then_what_is_left():
    forward, reverse = frozenset({(0, 0), (1, 1), (3, 5)}), frozenset({(0, 0), (2, 1)})
    assert symmetrize(forward, reverse) == {(0, 0), (1, 1), (2, 1), (3, 5)}
    both_taken = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 0)})
    assert symmetrize(*both_taken) == {(0, 0), (1, 1)}


def test_without_eflomal_nothing_is_begun(corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    with pytest.raises(T2TError, match="--make_alignments needs eflomal"):
        translation(corpus, make_alignments=True).generate_data(tmp_path / "data")
    translation(corpus).generate_data(tmp_path / "data")


@pytest.mark.slow
def test_a_dictionary_is_learned(tmp_path):
    pytest.importorskip("eflomal")
    pairs = [
        (
            f"{one.title()} {verb} {other}, {when}.",
            f'"{WORDS[when]}" {WORDS[verb]} {WORDS[one]} {WORDS[other]}!',
        )
        for (one, other), verb, when in itertools.product(
            itertools.permutations(NOUNS, 2), ("sees", "finds"), ("today", "never")
        )
    ] * 10
    lines = list(align_corpus([*pairs, ("", "x")], tmp_path))
    assert len(lines) == len(pairs) + 1
    assert lines[-1] == ""
    wanted = {"0-2", "1-1", "2-3", "3-0"}
    found = [len(wanted & set(line.split())) for line in lines[:-1]]
    assert sum(found) >= 0.9 * len(wanted) * len(pairs)
    assert not list(tmp_path.iterdir())

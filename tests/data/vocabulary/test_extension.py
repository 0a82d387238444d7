"""Vocabularies that grow: old ids stay, new pieces are those that the text needs."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary import open_vocabulary
from t2t_revival.data.vocabulary.extension import MIN_COUNT, extend, extends
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import TextEncoder

GENERAL = [
    f"the {a} {b} sees a house number {n}" for n, (a, b) in enumerate([("old", "dog"), ("big", "cat")] * 60)
]
DOMAIN = [f"die Patientin erhält Ibuprofen {n} und Żywność" for n in range(30)]


def general(folder: Path, kind: str) -> TextEncoder:
    path = folder / f"vocab.general.{kind}"
    if kind == "spm":
        return Vocabulary.train(GENERAL, path, 320)
    return SubwordVocabulary.build_from_generator(GENERAL, 120).store_to_file(path)


@pytest.fixture(scope="module", params=["spm", "subwords"])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[TextEncoder, TextEncoder]:
    """A vocabulary, and the same with the pieces of another text."""
    folder = tmp_path_factory.mktemp(request.param)
    old = general(folder, request.param)
    return old, extend(old, DOMAIN, folder / f"vocab.domain.{request.param}", old.size + 60)


def test_old_pieces_keep_their_ids(pair: tuple[TextEncoder, TextEncoder]) -> None:
    old, new = pair
    assert old.size < new.size <= old.size + 60
    assert new.pieces[: old.size] == old.pieces
    assert len(set(new.pieces)) == new.size
    assert extends(new, old)
    assert not extends(old, new)


def test_the_new_text_takes_fewer_pieces(pair: tuple[TextEncoder, TextEncoder]) -> None:
    old, new = pair
    counts = [sum(map(len, vocabulary.encode_batch(DOMAIN))) for vocabulary in pair]
    assert counts[1] < 0.5 * counts[0]
    used = Counter(piece for ids in new.encode_batch(DOMAIN) for piece in ids)
    assert max(used) >= old.size, "new pieces are used"
    assert "Ibuprofen" in new.pieces or "Ibuprofen_" in new.pieces or "▁Ibuprofen" in new.pieces


@settings(deadline=None, max_examples=60)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\n")))
def test_every_text_comes_back(pair: tuple[TextEncoder, TextEncoder], text: str) -> None:
    old, new = pair
    assert new.decode(new.encode(text)) == old.decode(old.encode(text))


def test_the_parts_of_a_new_piece_have_its_text(pair: tuple[TextEncoder, TextEncoder]) -> None:
    old, new = pair
    for token in range(old.size, new.size):
        parts = old.parts(new.pieces[token])
        assert parts
        assert all(0 < part < old.size for part in parts)
        if isinstance(old, Vocabulary):
            assert old.decode(parts) == new.decode([token])


def test_the_graph_has_the_same_ids(pair: tuple[TextEncoder, TextEncoder]) -> None:
    _, new = pair
    lines = [*DOMAIN[:5], *GENERAL[:5]]
    in_graph = new.graph.encode(lines)
    assert in_graph.to_list() == new.encode_batch(lines)
    assert [text.decode() for text in new.graph.decode(in_graph).numpy()] == lines


def test_sentencepiece_itself_reads_the_file(tmp_path: Path) -> None:
    old = general(tmp_path, "spm")
    new = extend(old, DOMAIN, tmp_path / "vocab.new.spm", old.size + 60)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(new.path))
    assert processor.get_piece_size() == new.size
    scores = [processor.get_score(piece) for piece in range(new.size)]
    added = scores[old.size :]
    assert added == sorted(added, reverse=True)
    assert max(added) < min(scores[: old.size])


def test_characters_come_first_and_then_the_most_frequent_merge(tmp_path: Path) -> None:
    """Counted by hand: x and y 40 times each, "xy" 30 times, "▁xy" 10 times of these, "yx" never alone."""
    old = general(tmp_path, "spm")
    lines = ["xyz"] * 20 + [" xy"] * 10 + ["x y"] * 10
    new = extend(old, lines, tmp_path / "vocab.new.spm")
    assert new.pieces[old.size :] == ["x", "y", "z", "xy", "xyz", "▁xy", "▁y"]


def test_what_is_rare_is_not_added(tmp_path: Path) -> None:
    old = general(tmp_path, "spm")
    rare = ["Quark"] * (MIN_COUNT - 1)
    with pytest.raises(T2TError, match=f"--update_vocab: no piece that .*spm lacks occurs {MIN_COUNT} times"):
        extend(old, rare, tmp_path / "vocab.new.spm")
    assert not (tmp_path / "vocab.new.spm").exists()


@pytest.mark.parametrize("kind", ["spm", "subwords"])
def test_text_that_it_knows_adds_nothing(tmp_path: Path, kind: str) -> None:
    old = general(tmp_path, kind)
    with pytest.raises(T2TError, match="leave it out"):
        extend(old, ["the"] * 20, tmp_path / "new")


@pytest.mark.parametrize("kind", ["spm", "subwords"])
def test_a_size_that_is_not_larger_is_refused(tmp_path: Path, kind: str) -> None:
    old = general(tmp_path, kind)
    with pytest.raises(T2TError, match=f"--vocab_size={old.size}: with --update_vocab it must be above"):
        extend(old, DOMAIN, tmp_path / "new", old.size)


def test_without_a_size_it_grows_by_a_quarter_at_most(tmp_path: Path) -> None:
    old = general(tmp_path, "spm")
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=7)) for _ in range(300)]
    new = extend(old, [" ".join(words)] * 12, tmp_path / "vocab.new.spm")
    assert new.size == old.size + old.size // 4


def test_one_of_another_kind_extends_nothing(tmp_path: Path) -> None:
    assert not extends(general(tmp_path, "subwords"), general(tmp_path, "spm"))
    assert extends(open_vocabulary(general(tmp_path, "spm").path), general(tmp_path, "spm"))

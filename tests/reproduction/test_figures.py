"""Figures 3 to 5: the paper's sentences, and the heads that are chosen."""

import numpy as np
import pytest

from t2t_revival.addons.attention.attention import Attention, AttentionWeights
from t2t_revival.reproduction import figures

QUERIES = ["The", "▁L", "aw", "▁will", ",", "▁but", "▁its", "▁app", "lication", "."]
TOKENS = len(QUERIES)


@pytest.fixture
def encoder() -> AttentionWeights:
    """Six layers, four heads; in layer 5, heads 2 and 4 look from "its" at "Law" and at "application"."""
    weights = np.full((6, 4, TOKENS, TOKENS), 1 / TOKENS, np.float32)
    weights[4, 1, 6] = np.eye(TOKENS)[2]
    weights[4, 3, 6] = np.eye(TOKENS)[7]
    weights[4, 0] = np.eye(TOKENS)
    return AttentionWeights("encoder", QUERIES, QUERIES, tuple(range(1, 7)), (1, 2, 3, 4), weights)


@pytest.fixture
def drawn(encoder, monkeypatch):
    """The attention drawn for a model with these weights, by figure."""
    drawn = {}

    def write(runs, name, attention, shown):
        drawn[name] = shown
        return []

    attention = Attention("", "", (encoder,))
    monkeypatch.setattr(figures, "_attention", lambda *_: (attention, encoder.select(5, None)))
    monkeypatch.setattr(figures, "_write", write)
    return drawn


def test_figure_4_shows_the_heads_that_resolve_its(drawn) -> None:
    figures.figure4(None, print)
    shown = drawn["figure4"]
    assert sorted(shown.heads) == [2, 4]
    assert shown.layers == (5,)
    others = [place for place in range(TOKENS) if place != 6]
    assert not shown.weights[:, :, others].any()
    assert shown.weights[:, :, 6].sum(-1) == pytest.approx(np.ones((1, 2)))


def test_figure_5_shows_heads_that_differ(drawn) -> None:
    figures.figure5(None, print)
    assert 1 in drawn["figure5"].heads
    assert drawn["figure5"].weights.shape == (1, 2, TOKENS, TOKENS)


@pytest.mark.parametrize(("word", "places"), [("Law", [1, 2]), ("its", [6]), ("application", [7, 8])])
def test_words_are_found_across_pieces(encoder, word, places) -> None:
    assert encoder.token_indices(word) == places
    subwords = [piece.replace("▁", "") for piece in QUERIES]
    ends = {0: "_", 2: "_", 3: "_", 4: "_", 5: "_", 6: "_"}
    t2t = [piece + ends.get(place, "") for place, piece in enumerate(subwords)]
    assert AttentionWeights("encoder", t2t, t2t, (1,), (1,), np.zeros(0)).token_indices(word) == places


def test_a_word_that_is_not_there_is_an_error(encoder) -> None:
    with pytest.raises(Exception, match="there is no word 'app'"):
        encoder.token_indices("app")


@pytest.mark.slow
@pytest.mark.nightly
def test_figures_of_a_trained_model(tiny_runs) -> None:
    said: list[str] = []
    for make in (figures.figure3, figures.figure4, figures.figure5):
        picture, page = make(tiny_runs, said.append)
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert "<html" in page.read_text()
    assert "base" in said[0]

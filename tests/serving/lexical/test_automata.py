"""Forms, automata and lengths of phrases in the graph are those that Python makes."""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf

from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.data.vocabulary.text_encoder import PAD
from t2t_revival.decoding.lexical_constraints import LineConstraints, units_of
from t2t_revival.decoding.lexical_tables import LineAutomata
from t2t_revival.decoding.phrases import OTHER_CLASSES, Spelling
from t2t_revival.serving.lexical.automata import automata_of
from t2t_revival.serving.lexical.forms import GraphSpelling, joined
from t2t_revival.serving.lexical.tables import LineTables

TEXT = [
    f"the {noun} sees {number} houses, (nicht) 犬猫 ."
    for noun in ("dog", "dogs", "cat")
    for number in range(9)
]
PHRASES = ["dog", "the dog", "dog dog", "(nicht)", "犬犬猫", "7", "houses,", "zoo"]


@pytest.fixture(scope="module", params=["sentencepiece", "subwords"])
def vocabulary(request, tmp_path_factory):
    if request.param == "subwords":
        return SubwordVocabulary.build_from_generator(TEXT, 90)
    return Vocabulary.train(TEXT, tmp_path_factory.mktemp("vocabulary") / "v.spm", 330)


def tokens_near(vocabulary, rng, length):
    """Random text of the phrases' words, in random segmentations."""
    words = rng.choice([*PHRASES, "dogs", "a", "-", ""], length).tolist()
    ids = [token for word in words for token in vocabulary.encode(rng.choice([f" {word}", word]))]
    pieces = [vocabulary.parts(piece) for piece in "".join(vocabulary.pieces[token] for token in ids)]
    return [*ids, *[token for piece in pieces for token in piece]]


def test_pieces_and_their_tokens(vocabulary):
    ids = [token for token in range(3, vocabulary.size) if "unused" not in vocabulary.pieces[token]]
    pieces = vocabulary.pieces_in_graph(tf.constant([ids]))
    assert [piece.decode() for piece in pieces.numpy()[0]] == [vocabulary.pieces[token] for token in ids]
    assert vocabulary.tokens_in_graph(pieces).numpy().tolist() == [ids]
    assert vocabulary.tokens_in_graph(tf.constant(["no piece"])).numpy().tolist() == [PAD]


def test_forms(vocabulary):
    spelling, graph = Spelling(vocabulary), GraphSpelling(vocabulary)
    forms = graph.forms(tf.constant([*PHRASES, ""]))
    assert graph.can_spell(tf.constant([*PHRASES, ""]), forms).numpy().all()
    assert not forms.ends.numpy()[-1].any()
    for row, phrase in enumerate(PHRASES):
        found = []
        for place in np.flatnonzero(forms.ends.numpy()[row]):
            ids, at_start, after_run, after, open_end = (
                getattr(forms, name).numpy()[row, place]
                for name in ("ids", "at_start", "after_run", "after", "open_end")
            )
            start = {-1: None, 0: False, 1: True}[int(at_start)]
            found.append((tuple(ids[ids > 0].tolist()), start, bool(after_run), int(after), bool(open_end)))
        expected = spelling.forms(phrase)
        assert found == [(f.ids, f.at_start, f.after_run, f.after, f.open_end) for f in expected]


@pytest.mark.parametrize("avoided", [False, True])
def test_automata(vocabulary, avoided):
    """Both count and lack the same after each token of random texts."""
    spelling, graph = Spelling(vocabulary), GraphSpelling(vocabulary)
    forms = graph.forms(tf.constant(PHRASES))
    forms = graph.lattices(forms) if avoided else forms
    alphabet = tf.tile(tf.range(2, vocabulary.size)[None], [len(PHRASES), 1])
    found = automata_of(forms, alphabet, tf.constant(spelling.classes), int(spelling.closing))
    found = type(found)(*(values.numpy() for values in found))
    rng = np.random.default_rng(1)
    for row, phrase in enumerate(PHRASES):
        own = spelling.forms(phrase)
        expected = spelling.automaton(tuple(map(spelling.lattice, own)) if avoided else own)
        if not avoided:
            assert found.costs[row] == expected.cost
        for _ in range(5):
            state = other = 0
            for token in tokens_near(vocabulary, rng, 8):
                assert found.ended[row, state] == expected.ended[other]
                if not avoided:
                    assert found.gains[row, state] == expected.gains[other]
                    assert found.next_tokens[row, state] == expected.next_tokens[other]
                (kind,) = expected.classes_of([token], spelling.classes)
                step = OTHER_CLASSES + token - 2
                assert found.emits[row, state, step] == expected.emits[other, kind]
                state, other = found.next_states[row, state, step], expected.next_states[other, kind]


def test_lengths_and_overlaps(vocabulary):
    spelling, graph = Spelling(vocabulary), GraphSpelling(vocabulary)
    rng = np.random.default_rng(2)
    lines = [tuple(rng.choice(PHRASES, 4).tolist()) for _ in range(6)]
    units = [units_of(LineConstraints(line), spelling) for line in lines]
    width = max(map(len, units))
    texts = [[unit.phrase for unit in row] + [""] * (width - len(row)) for row in units]
    required = np.array(
        [[Counter(line)[text] for text in row] for line, row in zip(lines, texts, strict=True)]
    )
    forms = graph.forms(tf.reshape(tf.constant(texts), [-1]))
    tables = LineTables(forms, len(lines), tf.constant(spelling.classes), int(spelling.closing))
    lengths = tables.lengths(tf.constant(required, tf.int32)).numpy()
    for row, line in enumerate(units):
        expected = LineAutomata(line, spelling)
        assert lengths[row] == expected.length
        np.testing.assert_array_equal(
            tables.overlaps.numpy()[row, : len(line), : len(line)], expected.overlaps
        )


def test_forms_of_different_sizes_are_joined(vocabulary):
    graph = GraphSpelling(vocabulary)
    short, long = (graph.forms(tf.constant([phrase])) for phrase in ("dog", "houses, dog dog (nicht)"))
    both = joined(short, graph.lattices(long), axis=0)
    assert both.ends.shape == (2, short.ends.shape[1])
    assert both.tokens.numpy()[0].max() == short.tokens.numpy()[0].max()
    assert (both.tokens.numpy()[0] == -1).sum() > (short.tokens.numpy()[0] == -1).sum()

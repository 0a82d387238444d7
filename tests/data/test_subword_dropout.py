"""Subword dropout: the same text in other tokens, with the probabilities of merges that are not made."""

import io
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import sample_corpus
from t2t_revival.data.examples import BLOCK, Block, Pairs, Side
from t2t_revival.data.subword_dropout import _random, pair_keys, sample
from t2t_revival.data.vocabulary import TextEncoder, Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.data.vocabulary.splits import Splits, merge_splits
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from t2t_revival.hparams import HParams

EOS = 1
ALMOST_1 = 1 - 1e-12
LINES = [sentence.german for sentence in islice(sample_corpus.generate("train", 1500), 1500)]
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(LINES),
        st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=40),
        st.text("▁ _\\u\ue000ein", max_size=12),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture(scope="module")
def piece_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    return Vocabulary.train(LINES, tmp_path_factory.mktemp("vocabulary") / "v.spm", 1000)


@pytest.fixture(scope="module", params=["pieces", "subtokens"])
def vocabulary(request: pytest.FixtureRequest, piece_vocabulary: Vocabulary) -> TextEncoder:
    if request.param == "pieces":
        return piece_vocabulary
    return SubwordVocabulary.build_from_generator(LINES[:100], 250)


def splits_of(vocabulary: TextEncoder) -> tuple[Splits, Splits]:
    return Vocabularies(vocabulary, vocabulary).splits()


def side_of(rows: list[list[int]]) -> Side:
    offsets = np.cumsum([0, *map(len, rows)])
    return Side(np.concatenate([np.array(row, np.int32) for row in rows]), offsets)


def pairs_of(rows: list[list[int]]) -> Pairs:
    return Pairs(side_of(rows), side_of(rows[::-1]))


def rows_of(side: Side) -> list[list[int]]:
    return [row.tolist() for row in np.split(side.ids, side.offsets[1:-1])]


def keys_of(count: int, epoch: int = 0, shard: int = 0) -> np.ndarray:
    shards = [Path("a"), Path("b")]
    return pair_keys([Block(shards[shard], [b""] * count, 0, epoch)], shards, 5)


def hparams(dropout: float, **changes: object) -> HParams:
    return HParams(subword_dropout=dropout, **changes)  # type: ignore[arg-type]


@settings(max_examples=15, deadline=None)
@given(texts=TEXTS, dropout=st.floats(0, ALMOST_1), epoch=st.integers(0, 100))
def test_the_text_is_the_same(vocabulary: TextEncoder, texts: list[str], dropout: float, epoch: int) -> None:
    pairs = pairs_of([[*vocabulary.encode(text), EOS] for text in texts])
    sampled = sample(pairs, keys_of(len(texts), epoch), splits_of(vocabulary), hparams(dropout))
    assert [vocabulary.decode(row) for row in rows_of(sampled.inputs)] == texts
    assert [vocabulary.decode(row) for row in rows_of(sampled.targets)] == texts[::-1]
    assert all(row[-1] == EOS and row.count(EOS) == 1 for side in sampled for row in rows_of(side))
    assert all(side.ids.dtype == np.int32 for side in sampled)


def test_without_dropout_nothing_changes(vocabulary: TextEncoder) -> None:
    pairs = pairs_of([[*vocabulary.encode(line), EOS] for line in LINES[:50]])
    sampled = sample(pairs, keys_of(50), splits_of(vocabulary), hparams(0.0))
    assert [rows_of(side) for side in sampled] == [rows_of(side) for side in pairs]


def test_with_all_merges_dropped_there_are_single_characters(vocabulary: TextEncoder) -> None:
    pairs = pairs_of([[*vocabulary.encode(line), EOS] for line in LINES[:50]])
    sampled = sample(pairs, keys_of(50), splits_of(vocabulary), hparams(ALMOST_1))
    pieces = {vocabulary.pieces[token] for token in sampled.inputs.ids if token != EOS}
    assert all(len(piece) == 1 or piece.startswith("<0x") for piece in pieces), "characters or their bytes"


def test_probabilities_are_those_of_dropped_merges() -> None:
    """At a step, all of the possible merges must be dropped: of `abab`, both `ab` first, then `abab`."""
    pieces = ["", "", "a", "b", "ab", "abab"]
    count, dropout = 40_000, 0.3
    pairs = pairs_of([[5]] * count)
    sampled = sample(pairs, keys_of(count), (merge_splits(pieces, range(6)),) * 2, hparams(dropout))
    stopped = dropout**2
    expected = {"5": (1 - stopped) * (1 - dropout), "4 4": (1 - stopped) * dropout, "2 3 2 3": stopped}
    for side in sampled:
        rows = [" ".join(map(str, row)) for row in rows_of(side)]
        assert set(rows) == set(expected)
        for row, probability in expected.items():
            deviation = (probability * (1 - probability) / count) ** 0.5
            assert rows.count(row) / count == pytest.approx(probability, abs=4 * deviation)


@pytest.mark.parametrize("dropout", [0.1, 0.3])
def test_there_are_about_as_many_tokens_as_in_sentencepieces_own_samples(
    piece_vocabulary: Vocabulary, dropout: float
) -> None:
    ids = piece_vocabulary.encode_batch(LINES)
    sentencepiece.set_random_generator_seed(1)
    theirs = piece_vocabulary._processor.encode(LINES, enable_sampling=True, alpha=dropout, nbest_size=-1)
    ours = sample(pairs_of(ids), keys_of(len(ids)), splits_of(piece_vocabulary), hparams(dropout))
    assert len(ours.inputs.ids) == pytest.approx(sum(map(len, theirs)), rel=0.1)


def test_segmentation_depends_on_seed_epoch_pair_and_side_alone(vocabulary: TextEncoder) -> None:
    rows = [[*vocabulary.encode(line), EOS] for line in (LINES * 2)[: BLOCK + 50]]
    splits, settings_ = splits_of(vocabulary), hparams(0.3)
    keys = keys_of(len(rows))
    pairs = Pairs(side_of(rows), side_of(rows))
    whole = sample(pairs, keys, splits, settings_)
    some = [7, 3, len(rows) - 1]
    few = sample(Pairs(*[side_of([rows[i] for i in some])] * 2), keys[some], splits, settings_)
    for all_rows, few_rows in zip(map(rows_of, whole), map(rows_of, few), strict=True):
        assert [all_rows[i] for i in some] == few_rows
    assert rows_of(whole.inputs) != rows_of(whole.targets)
    for other in (keys_of(len(rows), epoch=1), keys_of(len(rows), shard=1)):
        assert rows_of(sample(pairs, other, splits, settings_).inputs) != rows_of(whole.inputs)


@pytest.mark.parametrize(("side", "kept"), [("source", 1), ("target", 0)])
def test_one_side_alone(vocabulary: TextEncoder, side: str, kept: int) -> None:
    pairs = pairs_of([[*vocabulary.encode(line), EOS] for line in LINES[:20]])
    keys, splits = keys_of(20), splits_of(vocabulary)
    one = sample(pairs, keys, splits, hparams(0.3, subword_dropout_side=side))
    both = sample(pairs, keys, splits, hparams(0.3))
    assert rows_of(one[kept]) == rows_of(pairs[kept]) != rows_of(both[kept])
    assert rows_of(one[1 - kept]) == rows_of(both[1 - kept]) != rows_of(pairs[1 - kept])


def test_a_pair_that_would_be_too_long_keeps_its_segmentation(vocabulary: TextEncoder) -> None:
    rows = [[*vocabulary.encode(line), EOS] for line in LINES[:200]]
    pairs, keys, splits = pairs_of(rows), keys_of(200), splits_of(vocabulary)
    free = sample(pairs, keys, splits, hparams(0.2))
    most = int(np.median(np.maximum(free.inputs.lengths, free.targets.lengths)))
    bounded = sample(pairs, keys, splits, hparams(0.2, max_length=most))
    changed = 0
    for at, long in enumerate(np.maximum(free.inputs.lengths, free.targets.lengths) > most):
        expected = pairs if long else free
        changed += not long
        for side, other in zip(bounded, expected, strict=True):
            assert rows_of(side)[at] == rows_of(other)[at]
    assert 50 < changed < 150


def test_keys_are_those_of_the_places_in_shards() -> None:
    shards = [Path("a"), Path("b")]
    first, second = Block(shards[0], [b""] * 6, 0, 2), Block(shards[1], [b""] * 3, 4, 2)
    keys = pair_keys([first, second], shards, -7)
    assert keys.dtype == np.uint64
    assert len(set(keys.tolist())) == 9
    np.testing.assert_array_equal(pair_keys([second], shards, -7), keys[6:])
    np.testing.assert_array_equal(pair_keys([Block(shards[0], [b""] * 2, 3, 2)], shards, -7), keys[3:5])
    for seed, epoch in ((-6, 2), (-7, 3), (2, -7 % 2**63)):
        assert not np.isin(pair_keys([first._replace(epoch=epoch)], shards, seed), keys).any()


def test_random_numbers_are_splitmix64s() -> None:
    """The generator's first numbers for the state 1234567, as its reference implementation prints them."""
    numbers = _random(np.array([1234567], np.uint64), np.arange(5))
    assert numbers.tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_models_with_sentencepieces_own_settings(model_type: str, tmp_path: Path) -> None:
    """A space before each line, normalised text, unknown characters: decoding drops none of them twice."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES[:300]),
        model_writer=model,
        model_type=model_type,
        vocab_size=300,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    vocabulary = Vocabulary(tmp_path / "v.spm", model.getvalue())
    rows = [vocabulary.encode(text) for text in (*LINES[:50], "  zwei  Räume ", "Ein ☃ Hund")]
    sampled = sample(pairs_of(rows), keys_of(len(rows)), splits_of(vocabulary), hparams(0.5))
    assert list(map(vocabulary.decode, rows_of(sampled.inputs))) == list(map(vocabulary.decode, rows))
    assert len(sampled.inputs.ids) > 1.2 * sum(map(len, rows))


def test_each_side_is_split_by_its_own_vocabulary(piece_vocabulary: Vocabulary) -> None:
    targets = SubwordVocabulary.build_from_generator(LINES[:100], 250)
    both = Vocabularies(piece_vocabulary, targets)
    texts = LINES[:30]
    pairs = Pairs(*(side_of([each.encode(text) for text in texts]) for each in both))
    sampled = sample(pairs, keys_of(30), both.splits(), hparams(0.5))
    for vocabulary, before, after in zip(both, pairs, sampled, strict=True):
        assert rows_of(before) != rows_of(after)
        assert [vocabulary.decode(row) for row in rows_of(after)] == [
            vocabulary.decode(row) for row in rows_of(before)
        ]

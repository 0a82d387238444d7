"""Subword dropout: the same text in other tokens, with the probabilities of merges that are not made."""

import io

import pytest
import sentencepiece

from t2t_revival import HParams, registry, sample_corpus
from t2t_revival.data.vocabulary.subwords import SubwordVocabulary
from tests.support.data_kinds import first_batches, read_epochs, training_batches
from tests.support.line_corpus import translation, write_pairs

pytestmark = pytest.mark.slow
EOS = 1
ALMOST_1 = 1 - 1e-12
PAIRS = [*zip(*(sample_corpus.lines(f"train.{side}")[:1500] for side in ("en", "de")), strict=True)]
ODD = [
    ("\u2581 _\\u", "\ue000ein 日本"),
    ("  zwei  Räume ", "Ein ☃ Hund"),
    ("a\u2028b", "\t é"),
    ("the young dog sees an old house",) * 2,
]
HPARAMS = HParams(batch_size=2048, max_length=250)


def make(folder, pairs, **settings):
    """Makes data of pairs; returns a function that reads epochs of it."""
    corpus = write_pairs(folder / "corpus", {"train": pairs, "dev": pairs[:1]})
    problem = translation(corpus, **{"vocab_size": 0, **settings})
    problem.generate_data(folder / "data")
    return Data(problem, folder / "data")


class Data:
    """Epochs of the training pairs of a data_dir."""

    def __init__(self, problem, folder):
        self.problem, self.folder = problem, folder
        self.vocabularies = problem.open(folder).vocabularies

    def batches(self, dropout, *, start=None, seed=0, settings=(), **hparams):
        changed = HPARAMS.replace(subword_dropout=dropout, **hparams)
        more = {"start": start} if start else {}
        return training_batches(self.problem, self.folder, changed, seed=seed, **dict(settings), **more)

    def epochs(self, dropout, count=1, **how):
        return [sorted(epoch) for epoch in read_epochs(self.batches(dropout, **how), count)]

    def texts(self, epoch):
        return sorted(
            tuple(each.decode(ids) for each, ids in zip(self.vocabularies, pair, strict=True))
            for pair in epoch
        )


@pytest.fixture(scope="module", params=["pieces", "subtokens", "separate"])
def data(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "subtokens":
        text = [side for pair in PAIRS[:100] for side in pair]
        built = SubwordVocabulary.build_from_generator(text, 250).store_to_file(folder / "v.subwords")
        settings = {"vocab_file": built.path}
    else:
        settings = {"vocab_size": 600, "separate_vocabularies": request.param == "separate"}
    return make(folder, PAIRS[:300] + ODD * 2, **settings)


def test_the_same_texts_in_other_tokens_in_each_epoch(data):
    first, second = data.epochs(0.3, 2)
    (plain,) = data.epochs(0.0)
    assert data.texts(first) == data.texts(second) == data.texts(plain) == sorted(PAIRS[:300] + ODD * 2)
    assert len({str(epoch) for epoch in (first, second, plain)}) == 3
    assert all(ids.index(EOS) == len(ids) - 1 for pair in first for ids in pair)


def test_with_all_merges_dropped_there_are_single_characters(data):
    (epoch,) = data.epochs(ALMOST_1, max_length=1000)
    assert data.texts(epoch) == sorted(PAIRS[:300] + ODD * 2)
    for vocabulary, side in zip(data.vocabularies, zip(*epoch, strict=True), strict=True):
        pieces = {vocabulary.pieces[token] for ids in side for token in ids if token != EOS}
        assert all(len(piece) == 1 or piece.startswith("<0x") for piece in pieces), "or their bytes"


def test_segmentation_depends_on_seed_epoch_and_pair_alone(data):
    ways = [{}, {"chunk": 60}, {"replicas": 2}, {"pad_to_bucket": True}]
    found = [data.epochs(0.3, settings=settings.items()) for settings in ways]
    assert all(epochs == found[0] for epochs in found)
    assert data.epochs(0.3, seed=4) != found[0]
    of_dog = [pair for pair in found[0][0] if data.texts([pair]) == [ODD[-1]]]
    assert len({str(ids) for pair in of_dog for ids in pair}) > 2, "two pairs and their sides differ"


@pytest.mark.parametrize(("side", "kept"), [("source", 1), ("target", 0)])
@pytest.mark.parametrize("name", ["translate_ende", "translate_ende_rev"])
def test_one_side_alone(data, side, kept, name):
    data = Data(registry.problem(name), data.folder)
    plain, one = data.epochs(0.0)[0], data.epochs(0.3, subword_dropout_side=side)[0]
    sides = [sorted(pair[kept] for pair in epoch) for epoch in (plain, one)]
    others = [sorted(pair[1 - kept] for pair in epoch) for epoch in (plain, one)]
    assert sides[0] == sides[1]
    assert others[0] != others[1]


def test_a_pair_that_would_be_too_long_keeps_its_segmentation(data):
    """Whole texts are read in an epoch, whatever the bound, and batches have the new lengths."""
    (plain,) = data.epochs(0.0)
    longest = sorted(max(map(len, pair)) for pair in plain)
    bound = longest[len(longest) // 2]
    (epoch,) = data.epochs(0.3, max_length=bound)
    short = [pair for pair in plain if max(map(len, pair)) <= bound]
    assert data.texts(epoch) == data.texts(short)
    assert epoch != sorted(short)
    assert any(pair in epoch for pair in short)


def test_what_is_turned_on_or_off_begins_the_chunk_again(data):
    settings = {"chunk": 60}.items()
    plain = data.batches(0.0, settings=settings)
    first_batches(plain, 7)
    place = plain.position(7)
    resumed = data.batches(0.1, settings=settings, start=place)
    assert "(subword_dropout=0.0, not 0.1)" in resumed.note
    assert (resumed.position(0).chunk, resumed.position(0).batch) == (place.chunk, 0)


def test_probabilities_are_those_of_dropped_merges(tmp_path):
    """At a step, all of the possible merges must be dropped: of `abab`, both `ab` first, then `abab`."""
    tokens = ["<pad>_", "<EOS>_", "ab", "abab", *sorted("ab_\\u;0123456789pdEOS<>")]
    (tmp_path / "v.subwords").write_text("".join(f"'{token}'\n" for token in tokens))
    count, dropout = 20_000, 0.3
    data = make(tmp_path, [("abab", "abab")] * count, vocab_file=tmp_path / "v.subwords")
    (epoch,) = data.epochs(dropout)
    stopped = dropout**2
    expected = {
        "abab _": (1 - stopped) * (1 - dropout),
        "ab ab _": (1 - stopped) * dropout,
        "a b a b _": stopped,
    }
    for side in zip(*epoch, strict=True):
        rows = [" ".join(tokens[token] for token in ids[:-1]) for ids in side]
        assert set(rows) == set(expected)
        for row, probability in expected.items():
            deviation = (probability * (1 - probability) / count) ** 0.5
            assert rows.count(row) / count == pytest.approx(probability, abs=4 * deviation)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_models_with_sentencepieces_own_settings(model_type, tmp_path):
    """A space before each line, normalised text, unknown characters: decoding drops none of them twice."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(german for _, german in PAIRS[:300]),
        model_writer=model,
        model_type=model_type,
        vocab_size=300,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    (tmp_path / "v.spm").write_bytes(model.getvalue())
    data = make(tmp_path, [(german, german) for _, german in PAIRS[:50]] + ODD, vocab_file=tmp_path / "v.spm")
    plain, epoch = data.epochs(0.0)[0], data.epochs(0.5)[0]
    assert data.texts(epoch) == data.texts(plain)
    tokens = [sum(len(ids) for pair in pairs for ids in pair) for pairs in (plain, epoch)]
    assert tokens[1] > 1.2 * tokens[0]

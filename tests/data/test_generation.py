"""Generation of data: shards, metadata and vocabulary from a corpus of lines."""

import tempfile
import threading
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_revival import T2TError
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from tests.support.line_corpus import sentences, snapshot, translation, write_corpus, write_pairs

LINE = st.text(st.sampled_from("ab \t\u00a0日\u2028"), max_size=5)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=25))
def test_each_pair_with_text_on_both_sides_is_in_a_shard_once(subwords_file, pairs):
    kept = [("a", "b"), *(pair for pair in pairs if all(map(str.strip, pair)))]
    with tempfile.TemporaryDirectory() as folder:
        corpus = write_pairs(
            Path(folder, "corpus"), {split: [("a", "b"), *pairs] for split in ("train", "dev")}
        )
        problem = translation(corpus, vocab_file=subwords_file, vocab_size=0)
        counts = problem.generate_data(Path(folder, "data")).splits["train"]
        assert list(problem.open(Path(folder, "data")).text("dev")) == kept
        assert sorted(problem.open(Path(folder, "data")).text("train")) == sorted(kept)
    assert (counts.examples, counts.skipped) == (len(kept), 1 + len(pairs) - len(kept))
    assert len(counts.shard_bytes) == 10


def test_lengths_say_how_many_pairs_a_training_drops(corpus, tmp_path):
    problem = translation(corpus)
    train = problem.generate_data(tmp_path / "data").splits["train"]
    vocabulary = problem.open(tmp_path / "data").vocabularies.inputs
    longest = [
        max(len(vocabulary.encode(side)) + 1 for side in pair) for pair in sentences(300, seed="train")
    ]
    for max_length in (1, longest[0] - 1, longest[0], max(longest)):
        dropped = sum(count for length, count in train.lengths.items() if length > max_length)
        assert dropped == sum(length > max_length for length in longest)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_million_pairs_have_a_hundred_shards_as_in_t2t(subwords_file, tmp_path):
    corpus = write_pairs(tmp_path / "corpus", {"train": [("a", "b")] * 1_000_000, "dev": [("a", "b")]})
    made = translation(corpus, vocab_file=subwords_file, vocab_size=0).generate_data(tmp_path / "data")
    assert (made.splits["train"].examples, len(made.splits["train"].shard_bytes)) == (1_000_000, 100)
    assert made.splits["train"].lengths == {2 + 1: 1_000_000}


def test_a_split_without_a_whole_pair_is_an_error(corpus, tmp_path):
    (corpus / "dev.de").write_text("\n" * 20)
    with pytest.raises(T2TError, match="every pair of dev has an empty side"):
        translation(corpus).generate_data(tmp_path / "data")
    assert not (tmp_path / "data" / "translate_ende.meta.json").exists()


def test_a_vocabulary_too_large_for_the_text_is_an_error_only_if_asked_for(corpus, tmp_path):
    with pytest.raises(T2TError, match=r"--vocab_size=9000: .* --vocab_size=\d+ or less"):
        translation(corpus, vocab_size=9000).generate_data(tmp_path / "data")
    other = write_corpus(tmp_path / "other")
    made = translation(other, vocab_size=0).generate_data(tmp_path / "data")  # which is bound to nothing
    assert made.source == str(other)
    assert 330 < made.vocab_size < 9000
    assert made.vocab_file == f"vocab.translate_ende.{made.vocab_size}.spm"


def test_a_vocabulary_that_someone_has_put_there_is_used(corpus, tmp_path):
    theirs = Vocabulary.train(
        (two for _, two in sentences(50)), tmp_path / "vocab.translate_ende.330.spm", 330
    )
    assert translation(corpus).generate_data(tmp_path).vocab_fingerprint == theirs.fingerprint


def test_a_data_dir_that_cannot_be_written_is_named(corpus, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(T2TError, match=r"--data_dir=.*data: Not a directory; give another$"):
        translation(corpus).generate_data(tmp_path / "file" / "data")


def second_at(stage, corpus, data_dir):
    """Returns a progress that begins a second generation at a stage, in a thread, and the stages of that."""
    stages, threads = [], []

    def second():
        translation(corpus).generate_data(data_dir, progress=lambda now, *_: stages.append(now))

    def first(now, done, total):
        if now == stage and not threads:
            threads.append(threading.Thread(target=second))
            threads[0].start()
            while threads[0].is_alive() and not any("waiting for it" in each for each in stages):
                time.sleep(0.01)

    return stages, threads, first


@pytest.mark.parametrize("stage", ["reading", "vocabulary", "pairs"])
def test_of_two_at_once_one_makes_the_data_and_the_other_waits_and_takes_it(corpus, tmp_path, stage):
    data = tmp_path / "new" / "data"
    stages, threads, first = second_at(stage, corpus, data)
    made = translation(corpus).generate_data(data, progress=first)
    threads[0].join()
    assert stages == [f"{data}: another process is generating data there; waiting for it", "verifying"]
    assert translation(corpus).generate_data(data) == made
    assert not list(data.glob(".*"))


@pytest.mark.parametrize("stage", ["reading", "vocabulary", "pairs"])
def test_the_one_that_waits_goes_on_where_the_other_fails(corpus, tmp_path, stage):
    data = tmp_path / "new" / "data"
    stages, threads, first = second_at(stage, corpus, data)

    def failing(now, done, total):
        first(now, done, total)
        if threads:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        translation(corpus).generate_data(data, progress=failing)
    threads[0].join()
    assert "waiting for it" in stages[0]
    expected = translation(corpus).generate_data(tmp_path / "other")
    assert translation(corpus).generate_data(data) == expected
    assert snapshot(data) == snapshot(tmp_path / "other")


@pytest.mark.parametrize("name", ["../p", "a/b", "..", ""])
def test_files_stay_in_data_dir(corpus, tmp_path, name):
    problem = translation(corpus)
    problem.dataset_filename = lambda: name
    with pytest.raises(T2TError, match="not a valid file name"):
        problem.generate_data(tmp_path / "data")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format_version": 1}', '{"format_version": 99}'])
def test_corrupt_or_foreign_metadata_is_named(tmp_path, content):
    (tmp_path / "translate_ende.meta.json").write_text(content)
    with pytest.raises(T2TError, match=r"translate_ende\.meta\.json: (corrupt|written by another version)"):
        translation(None).open(tmp_path)


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (
            lambda shard: shard.unlink(),
            "translate_ende-train-00001-of-00010: missing; to make this shard again, run t2t-datagen",
        ),
        (lambda shard: shard.write_bytes(b"1234"), r"00001-of-00010: 4 bytes instead of \d+"),
    ],
)
def test_shards_that_are_not_those_of_the_metadata_are_named(corpus, tmp_path, harm, fault):
    translation(corpus).generate_data(tmp_path)
    (tmp_path / "translate_ende-train-00000-of-00010.bak").touch()
    harm(tmp_path / "translate_ende-train-00001-of-00010")
    with pytest.raises(T2TError, match=fault):
        translation(None).open(tmp_path).split("train")


def test_a_fingerprint_is_of_content_not_of_place(corpus, subwords_file, tmp_path):
    def fingerprint(folder, lines=None, **vocabulary):
        if lines:
            (corpus / "dev.de").write_text("\n".join(lines))
        problem = translation(corpus, **(vocabulary or {"vocab_file": subwords_file, "vocab_size": 0}))
        problem.generate_data(tmp_path / folder)
        return problem.open(tmp_path / folder).fingerprint("dev")

    known = fingerprint("one")
    assert len(known) == 8
    assert fingerprint("two") == known
    lines = (corpus / "dev.de").read_text().splitlines()
    others = (
        fingerprint("vocabulary", vocab_size=330),
        fingerprint("order", lines[::-1]),
        fingerprint("word", [*lines[:-1], "der Hund"]),
    )
    assert len({known, *others}) == 4


def in_form(folder, form):
    """A corpus whose targets are in a form; "mixed" has lines of both."""
    corpus = write_corpus(folder)
    for split in ("train", "dev"):
        path = corpus / f"{split}.de"
        lines = path.read_text(encoding="utf-8").replace("sieht", "h\u00f6rt").splitlines()
        forms = ["NFC", "NFD"] if form == "mixed" else [form.upper()]
        lines = [unicodedata.normalize(forms[at % len(forms)], line) for at, line in enumerate(lines)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return corpus


@pytest.mark.parametrize("form", ["nfc", "nfd", "mixed"])
def test_data_knows_the_unicode_form_of_its_text_and_can_be_brought_into_one(tmp_path, form):
    corpus, notes = in_form(tmp_path / "corpus", form), []
    problem = translation(corpus)
    train = problem.generate_data(tmp_path / "data", progress=lambda note, *_: notes.append(note)).splits[
        "train"
    ]
    assert train.source_forms == {"": 300}
    assert train.target_forms == ({"nfc": 150, "nfd": 150} if form == "mixed" else {form: 300})
    said = [note for note in notes if "Unicode" in note]
    assert len(said) == (form != "nfc")
    assert all(note.startswith(f"{corpus}, de: Unicode forms are ") for note in said)
    with pytest.raises(T2TError, match="made with normalize='', not nfc"):
        translation(corpus, normalize="nfc").generate_data(tmp_path / "data")

    composed = translation(corpus, normalize="nfc").generate_data(tmp_path / "composed")
    assert composed.splits["train"].target_forms == {"nfc": 300}
    expected = translation(in_form(tmp_path / "expected", "nfc"))
    expected.generate_data(tmp_path / "as_nfc")
    for split in ("train", "dev"):
        texts = [
            [*each.open(tmp_path / at).text(split)]
            for each, at in ((problem, "composed"), (expected, "as_nfc"))
        ]
        assert texts[0] == texts[1]
    assert translation(None).generate_data(tmp_path / "composed") == composed


def test_files_with_a_byte_order_mark_and_line_ends_of_windows_are_read_as_others(tmp_path):
    texts = {
        "train.en": "the dog\nthe cat\n" * 20,
        "train.de": "der Hund\ndie Katze\n" * 20,
        "dev.en": "the dog\n",
        "dev.de": "der Hund\n",
        "train.align": "0-0 1-1\n" * 40,
        "train.weights": "1.0\n0.5\n" * 20,
    }
    made = []
    for mark, end in (("", "\n"), ("\ufeff", "\r\n")):
        corpus = tmp_path / f"corpus {len(made)}"
        corpus.mkdir()
        for name, text in texts.items():
            (corpus / name).write_bytes((mark + text.replace("\n", end)).encode())
        data = corpus / "data"
        metadata = translation(corpus, vocab_size=280).generate_data(data)
        assert metadata.weighted
        assert metadata.aligned
        made.append({name: content for name, content in snapshot(data).items() if ".json" not in name})
    assert made[0] == made[1]

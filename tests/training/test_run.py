"""output_dir tells what it holds, and refuses another run."""

import dataclasses
from pathlib import Path

import pytest

from t2t_revival import registry
from t2t_revival.data.vocabulary import Vocabulary
from t2t_revival.errors import T2TError
from t2t_revival.training.run import FILE_NAME, Run, load_hparams, load_vocabulary, open_run


@pytest.fixture
def vocabulary(tmp_path: Path) -> Vocabulary:
    path = tmp_path / "vocab.translate_ende.300.spm"
    lines = ["the old dog sees a small cat", "der alte Hund sieht eine kleine Katze"] * 20
    return Vocabulary.train(lines, path, 300)


@pytest.fixture
def run(vocabulary: Vocabulary) -> Run:
    return Run(
        problem="translate_ende",
        hparams_set="tiny",
        data_dir="data",
        vocabulary=vocabulary.path.name,
        fingerprint=vocabulary.fingerprint,
        decode_hparams={"beam_size": 4},
    )


def test_everything_comes_back_from_output_dir_alone(
    tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    out, hparams = tmp_path / "out", registry.hparams("tiny", "train_steps=7")
    open_run(out, run, hparams, vocabulary.path)
    vocabulary.path.unlink()
    assert Run.load(out) == run
    assert load_hparams(out) == hparams
    assert load_vocabulary(out).fingerprint == run.fingerprint


def test_a_run_may_go_on_with_other_training_but_not_another_model(
    tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    out, hparams = tmp_path / "out", registry.hparams("tiny")
    open_run(out, run, hparams, vocabulary.path)
    open_run(out, run, hparams.replace(train_steps=9, batch_size=1024), vocabulary.path)
    assert load_hparams(out).train_steps == 9
    with pytest.raises(T2TError, match="hidden_size=128, not 64"):
        open_run(out, run, hparams.replace(hidden_size=64), vocabulary.path)


@pytest.mark.parametrize("field", ["problem", "hparams_set", "fingerprint"])
def test_another_run_is_refused(tmp_path: Path, run: Run, vocabulary: Vocabulary, field: str) -> None:
    out, hparams = tmp_path / "out", registry.hparams("tiny")
    open_run(out, run, hparams, vocabulary.path)
    with pytest.raises(T2TError, match="give another --output_dir"):
        open_run(out, dataclasses.replace(run, **{field: "other"}), hparams, vocabulary.path)
    assert Run.load(out) == run


def test_no_run_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(T2TError, match="t2t-trainer"):
        Run.load(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"problem": "x", "nonsense": 1}', "\x00"])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(T2TError, match=FILE_NAME):
        Run.load(tmp_path)


def test_a_replaced_vocabulary_is_found(tmp_path: Path, run: Run, vocabulary: Vocabulary) -> None:
    out = tmp_path / "out"
    open_run(out, run, registry.hparams("tiny"), vocabulary.path)
    Vocabulary.train(["something else entirely, of other words"] * 20, out / run.vocabulary, 280)
    with pytest.raises(T2TError, match="not the vocabulary"):
        load_vocabulary(out)

"""`t2t-trainer` without `--hparams_set`: settings that fit the corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from t2t_revival import registry
from t2t_revival.hparams import auto
from t2t_revival.hparams.auto import EVAL_FREQUENCY, FITS, MINUTES, fitted, vocab_sizes
from t2t_revival.model_folder import ModelFolder
from t2t_revival.problems.parse_wsj import ParseWsj
from t2t_revival.problems.translate_ende import TranslateEnde
from t2t_revival.training.trainer import Trainer
from tests.cli.trainer_command import train
from tests.support.commands import run
from tests.support.line_corpus import write_corpus

SMALL = "--hparams=num_hidden_layers=1,hidden_size=8,filter_size=8,num_heads=2"


@pytest.mark.parametrize("fit", FITS)
def test_each_size_has_its_own(fit) -> None:
    sizes = vocab_sizes(((2_000_000, 16_000),))
    assert next(size for bound, size in sizes if fit.pairs <= bound) == fit.pieces


@pytest.mark.parametrize(
    ("tokens", "updates", "channels", "dropout", "batch_size"),
    [
        (1_200_000, 0, 128, 0.1, 2048),
        (2_400_000, 0, 256, 0.0, 2048),
        (3_600_000, 0, 256, 0.1, 2048),
        (9_600_000, 0, 256, 0.2, 4096),
        (28_800_000, 0, 256, 0.3, 4096),
        (7_200_000, 200, 256, 0.0, 2048),
    ],
)
def test_longer_ones_are_larger_with_more_dropout(tokens, updates, channels, dropout, batch_size) -> None:
    hparams = fitted(30_000, 600_000, tokens, updates)
    assert (hparams.hidden_size, hparams.filter_size) == (channels, 4 * channels)
    assert (hparams.layer_prepostprocess_dropout, hparams.batch_size) == (dropout, batch_size)
    assert hparams.attention_dropout == hparams.relu_dropout == min(dropout, 0.1)


def test_more_text_is_not_trained_on_for_longer_than_it_helps() -> None:
    few, many = fitted(1000, 20_000), fitted(20_000, 400_000)
    assert few.train_steps == FITS[0].epochs * 20_000 // few.batch_size
    assert many.train_steps == FITS[1].epochs * 400_000 // many.batch_size
    for hparams in (few, many):
        assert hparams.learning_rate_warmup_steps <= hparams.train_steps // 5


class Own(TranslateEnde):
    def decode_hparams(self) -> dict[str, Any]:
        return {"alpha": 0.0}


@pytest.mark.parametrize(
    ("kind", "pairs", "alpha"),
    [(TranslateEnde, 1000, 1.0), (TranslateEnde, 2_000_000, 0.6), (Own, 1000, 0.0), (ParseWsj, 1000, 0.3)],
)
def test_its_models_decode_with_alpha_1_unless_the_problem_has_its_own(kind, pairs, alpha) -> None:
    metadata: Any = Mock(splits={"train": Mock(examples=pairs, lengths={20: pairs})})
    problem = kind()
    assert (problem.decode_hparams() | registry.usual_decoding(problem, metadata))["alpha"] == alpha


@pytest.mark.slow
def test_a_corpus_without_a_set(tmp_path: Path) -> None:
    """It says what it takes; the same command resumes."""
    corpus = write_corpus(tmp_path / "corpus", train=300, dev=10)
    folders = f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'out'}"
    command = "t2t-trainer", "--problem=translate_ende", f"--data_source={corpus}", *folders, SMALL
    done = run(*command, "--vocab_size=310", "--train_steps=2")
    assert "for 300 pairs: 1+1 layers, 8/8, 310 pieces, " in done.stderr
    assert "minutes" not in done.stderr
    folder = ModelFolder(tmp_path / "out")
    assert (folder.run.hparams_set, folder.run.decode_hparams["alpha"]) == ("auto", 1.0)
    assert (folder.hparams.optimizer, folder.hparams.pos) == ("muon", "rotary")
    done = run(*command, "--train_steps=3")
    assert "resuming from model.ckpt-2.npz" in done.stderr
    assert "for 300 pairs" not in done.stderr
    assert ModelFolder(tmp_path / "out").hparams == folder.hparams.of_length(3, falls=False)


@pytest.mark.slow
def test_half_an_hour_is_the_longest(tmp_path: Path) -> None:
    """300 pairs need less than that."""
    corpus = write_corpus(tmp_path / "corpus", train=300, dev=10)
    folders = f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'out'}"
    command = "t2t-trainer", "--problem=translate_ende", f"--data_source={corpus}", *folders, SMALL
    done = run(*command, "--vocab_size=310")
    assert f"{MINUTES:g} minutes at most (--train_minutes)" in done.stderr
    assert ModelFolder(tmp_path / "out").hparams.train_steps <= 1200
    assert (tmp_path / "out" / f"model.ckpt-{EVAL_FREQUENCY}.npz").exists()
    assert "the learning rate has fallen to 0" in done.stdout
    assert "next: t2t-decoder" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("bound", "channels"), [(50_000, 128), (20_000, 256)])
def test_a_slow_machine_gets_a_smaller_model(bound, channels, tmp_path, capsys, monkeypatch) -> None:
    """One that reads some 33,000 tokens, where the usual pace promised 72,000."""
    monkeypatch.setattr(Trainer, "_seconds_of_updates", lambda *_: (0.1, 1.0))
    monkeypatch.setattr(auto, "SIZES", (auto.Size(bound, 128, 2048), auto.SIZES[1]))
    corpus = write_corpus(tmp_path / "corpus", train=300, dev=10)
    flags = f"--data_source={corpus}", "--vocab_size=310", "--hparams_set=", "--train_minutes=0.3"
    assert train(tmp_path / "data", tmp_path / "out", *flags, hparams="num_hidden_layers=1") == 0
    said, hparams = capsys.readouterr().err, ModelFolder(tmp_path / "out").hparams
    assert ("hidden_size: 256 -> 128, filter_size: 1024 -> 512" in said) == (channels == 128)
    assert (hparams.hidden_size, hparams.filter_size, hparams.num_hidden_layers) == (
        channels,
        4 * channels,
        1,
    )
    assert hparams.train_steps <= 16


@pytest.mark.slow
def test_the_sample_has_the_set_of_demonstrations(tmp_path: Path, few_sample_sentences) -> None:
    few_sample_sentences(train=300, dev=8, test=8)
    folders = f"--data_dir={tmp_path / 'data'}", f"--output_dir={tmp_path / 'out'}"
    command = "t2t-trainer", "--problem=translate_ende", "--data_source=sample", *folders, "--train_steps=2"
    done = run(*command, "--vocab_size=330", SMALL)
    assert "for the sample corpus: the set tiny, 1+1 layers" in done.stderr

"""`t2t-datagen`, `t2t-trainer` and `t2t-eval` with several corpora."""

import csv

import pytest

from t2t_revival.cli import datagen
from t2t_revival.cli import eval as evaluation
from tests.cli import trainer_command
from tests.support.line_corpus import write_corpus

HPARAMS = "batch_size=256,num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2"


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "news", dev=6)
    write_corpus(tmp_path / "talks", train=60, dev=4)
    return tmp_path


def train(*flags, steps=4, data_source="news=news:1,talks=talks:3"):
    usual = "--vocab_size=330", "--local_eval_frequency=2", "--eval_bleu_sentences=3"
    made = f"--data_source={data_source}", *usual, *flags
    return trainer_command.train("data", "out", *made, hparams=f"{HPARAMS},train_steps={steps}")


def test_interrupted_corpora_are_named(corpora, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("t2t_revival.data.workers.write_shard", interrupt)
    flags = ["--problem=translate_ende", "--data_source=news=news:1", "--data_dir=data", "--vocab_size=330"]
    assert datagen.main(["t2t-datagen", *flags]) == 130
    said = "finished shards are kept, and listed in data/.translate_ende.unfinished"
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_dev_scores_by_corpus_and_their_means(corpora, capsys):
    assert train("--best_metric=loss/talks", "--eval_early_stopping_metric=loss/news") == 0
    capsys.readouterr()
    assert train("--best_metric=loss/talks", steps=6) == 0
    said = capsys.readouterr()
    assert "best checkpoint by loss/talks" in said.out
    with (corpora / "out" / "dev.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    for row in rows:
        for metric in ("loss", "bleu"):
            values = [float(row[f"{metric}/{corpus}"]) for corpus in ("news", "talks")]
            assert float(row[metric]) == pytest.approx(sum(values) / 2, rel=1e-4)
    assert evaluation.main(["t2t-eval", "--output_dir=out", "--eval_bleu_sentences=3"]) == 0
    table = capsys.readouterr().out.splitlines()
    each = [f"{name}/{corpus}" for name in ("loss", "bleu", "chrf") for corpus in ("news", "talks")]
    assert table[0].split()[-7:] == ["chrf", *each]
    measured = [line.split() for line in table if line.split()[0].isdigit()]
    scored = dict(zip(table[0].split(), measured[-1], strict=True))
    assert float(scored["loss"]) == pytest.approx(float(rows[-1]["loss"]), rel=1e-3)

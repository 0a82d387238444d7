"""`t2t-datagen`, `t2t-trainer` and `t2t-eval` with several corpora."""

import csv

import pytest

from t2t_revival.cli import datagen, trainer
from t2t_revival.cli import eval as evaluation
from tests.support.line_corpus import write_corpus

HPARAMS = "batch_size=256,num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2"


@pytest.fixture
def corpora(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "news", dev=6)
    write_corpus(tmp_path / "talks", train=60, dev=4)
    return tmp_path


def train(*flags, steps=4, data_source="news=news:1,talks=talks:3"):
    return trainer.main(
        [
            "t2t-trainer",
            "--problem=translate_ende",
            "--hparams_set=tiny",
            f"--hparams={HPARAMS},train_steps={steps}",
            f"--data_source={data_source}",
            "--data_dir=data",
            "--vocab_size=330",
            "--output_dir=out",
            "--local_eval_frequency=2",
            "--eval_bleu_sentences=3",
            *flags,
        ]
    )


@pytest.mark.parametrize(
    ("flag", "fault"),
    [
        ("--data_source=news=news:0,talks=talks:0", "all weights are 0: give a corpus a weight above 0"),
        ("--data_source=news=news,news=talks", "corpus 'news' is listed 2 times: name each once"),
        ("--data_source=news=news,web=web", "--data_source=web: no such folder"),
        ("--data_source=list.yaml", "--data_source=list.yaml: cannot be read (No such file or directory)"),
    ],
)
def test_a_faulty_list_is_one_line_and_nothing_is_made(corpora, capsys, flag, fault):
    assert datagen.main(["t2t-datagen", "--problem=translate_ende", flag, "--data_dir=data"]) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert fault in line
    assert not (corpora / "data").exists()


def test_a_home_of_no_user_is_one_line(corpora, capsys):
    flags = ["--problem=translate_ende", "--data_source=news=news", "--data_dir=~no_such_user/data"]
    assert datagen.main(["t2t-datagen", *flags]) == 1
    assert "a path begins with ~ and the name of no user" in capsys.readouterr().err


def test_interrupted_corpora_are_named(corpora, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("t2t_revival.data.workers.write_shard", interrupt)
    flags = ["--problem=translate_ende", "--data_source=news=news:1", "--data_dir=data", "--vocab_size=330"]
    assert datagen.main(["t2t-datagen", *flags]) == 130
    said = "finished shards are kept, and listed in data/.translate_ende.news.unfinished"
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["best_metric", "eval_early_stopping_metric"])
def test_metrics_of_a_corpus_are_checked_before_the_training(corpora, capsys, flag):
    assert train(f"--{flag}=blue/news") == 1
    assert f"--{flag}=blue/news: not a metric of translate_ende" in capsys.readouterr().err
    assert not (corpora / "data").exists()
    assert train(f"--{flag}=bleu/web") == 1
    assert f"--{flag}=bleu/web: no corpus 'web' has a dev split (news, talks)" in capsys.readouterr().err
    assert not (corpora / "data").exists()


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


@pytest.mark.slow
def test_other_weights_begin_the_epoch_again_and_say_so(corpora, capsys):
    assert train() == 0
    capsys.readouterr()
    assert train(steps=6, data_source="news=news:1,talks=talks:1") == 0
    assert (
        "batching has changed (mixture=news:1,talks:1 instead of news:1,talks:3)" in capsys.readouterr().err
    )

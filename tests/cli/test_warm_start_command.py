"""t2t-trainer --warm_start_from: a model is adapted to other text, with its own vocabulary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from t2t_revival.cli import trainer
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.training.checkpoints.directory import list_checkpoints, load_weights
from t2t_revival.training.run import Run, load_hparams, load_vocabulary
from tests.cli.test_trainer import SMALL, corpus, fails, models  # noqa: F401  fixtures
from tests.support.command_lines import last_of_each

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


@pytest.fixture(scope="module")
def general(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    folder = tmp_path_factory.mktemp("general")
    assert trainer.main(command(corpus, folder / "data", folder / "run", "--vocab_size=300")) == 0
    return folder / "run"


@pytest.fixture(scope="module")
def talks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other text than `corpus`."""
    folder = tmp_path_factory.mktemp("talks")
    for split, count in (("train", 100), ("dev", 10)):
        (folder / f"{split}.en").write_text("".join(f"we thank you {i} times\n" for i in range(count)))
        (folder / f"{split}.de").write_text("".join(f"wir danken Ihnen {i} mal\n" for i in range(count)))
    return folder


def command(source: Path, data: Path, out: Path, *more: str, hparams: str = SMALL) -> list[str]:
    flags = {
        "problem": "translate_ende",
        "hparams_set": "tiny",
        "data_source": source,
        "data_dir": data,
        "output_dir": out,
        "hparams": hparams,
        "eval_bleu_sentences": 0,
    }
    return last_of_each(["t2t-trainer", *(f"--{name}={value}" for name, value in flags.items()), *more])


def test_a_model_is_adapted_with_its_own_vocabulary(
    general: Path, talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "adapted"
    adapt = [f"--warm_start_from={general}", "--freeze=encoder/"]
    assert trainer.main(command(talks, tmp_path / "data", out, *adapt)) == 0
    said = capsys.readouterr().err
    newest = general / "model.ckpt-4.npz"
    assert f"starting with the weights of {newest} (step 4)\n" in said
    assert re.search("step 1/4 ", said)
    assert Run.load(out).fingerprint == Run.load(general).fingerprint
    assert load_hparams(out).freeze == "encoder/"
    before, after = (load_weights(list_checkpoints(run)[-1].path)[0] for run in (general, out))
    changed = {name for name, array in before.items() if (array != after[name]).any()}
    assert changed
    assert not any("encoder/layer" in name and "decoder/" not in name for name in changed)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--warm_start_partial"], "--warm_start_partial needs --warm_start_from"),
        (["--warm_start_from=nowhere"], "not the output_dir of a training"),
        (["--warm_start_from={general}", "--vocab_size=400"], "give --update_vocab"),
        (["--freeze=encoder/", "--hparams=freeze=embedding"], "are the same: give one of them"),
        (["--warm_start_from={general}", "--freeze=("], "is not a regular expression"),
        (["--warm_start_from={general}", "--freeze=."], "matches all weights"),
        (["--warm_start_from={general}/model.ckpt-9.npz"], "no checkpoint"),
    ],
)
def test_wrong_words(
    general: Path,
    talks: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    expected: str,
) -> None:
    given = [flag.format(general=general) for flag in flags]
    error = fails(command(talks, tmp_path / "data", tmp_path / "out", *given), capsys)
    assert expected in error
    assert not list_checkpoints(tmp_path / "out")


def test_data_of_another_vocabulary_is_refused(
    general: Path, talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    assert trainer.main(command(talks, data, tmp_path / "own", "--vocab_size=300")) == 0
    error = fails(command(talks, data, tmp_path / "out", f"--warm_start_from={general}"), capsys)
    assert f"{data} holds translate_ende made with" in error
    assert f"{general}/vocab.translate_ende.300.spm; give another --data_dir" in error


def test_another_architecture_is_refused(
    general: Path, talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, deeper = tmp_path / "data", SMALL.replace("num_hidden_layers=1", "num_hidden_layers=2")
    warm = f"--warm_start_from={general}"
    error = fails(command(talks, data, tmp_path / "out", warm, hparams=deeper), capsys)
    assert "encoder_layers=1, not 2; decoder_layers=1, not 2: change --hparams" in error
    assert not data.exists(), "it is refused before data is made"
    capsys.readouterr()
    partial = [warm, "--warm_start_partial"]
    assert trainer.main(command(talks, data, tmp_path / "out", *partial, hparams=deeper)) == 0
    said = capsys.readouterr().err
    assert re.search(r"\d+ of \d+ weights taken\nfresh: transformer/encoder/layer_1/", said)


def test_new_words_get_pieces_of_their_own(
    general: Path, talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, data = tmp_path / "out", tmp_path / "data"
    adapt = command(talks, data, out, f"--warm_start_from={general}", "--update_vocab")
    assert trainer.main(adapt) == 0
    said = capsys.readouterr().err
    old, new = load_vocabulary(general), load_vocabulary(out)
    assert f"(step 4), {new.size - old.size:,} new pieces\n" in said
    assert extends(new, old)
    assert "▁danken" in new.pieces
    assert re.fullmatch(rf"vocab\.translate_ende\.{new.size}\.spm", Run.load(out).vocabulary)
    before, after = (load_weights(list_checkpoints(run)[-1].path)[0] for run in (general, out))
    name = "model/transformer/target_embedding/embeddings"
    assert after[name].shape == (new.size, before[name].shape[1])
    assert trainer.main([*adapt, "--train_steps=5"]) == 0, "the same command resumes"


def test_a_vocabulary_to_update_must_be_named(
    talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = fails(command(talks, tmp_path / "data", tmp_path / "out", "--update_vocab"), capsys)
    assert "--update_vocab needs a vocabulary to add to" in error

"""t2t-trainer --warm_start_from: a model is adapted to other text, with its own vocabulary."""

import re

import pytest

from t2t_revival import registry
from t2t_revival.checkpoints.directory import list_checkpoints
from t2t_revival.checkpoints.file import StoredWeights
from t2t_revival.cli import trainer
from t2t_revival.data.vocabulary.extension import extends
from t2t_revival.model_folder import ModelFolder, Run
from tests.cli.trainer_command import SMALL, train
from tests.support.line_corpus import write_corpus

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("models")]


@pytest.fixture(scope="module")
def general(tmp_path_factory):
    folder = tmp_path_factory.mktemp("general")
    corpus = write_corpus(folder / "corpus", train=200, dev=10)
    assert train(folder / "data", folder / "run", f"--data_source={corpus}", "--vocab_size=310") == 0
    return folder / "run"


@pytest.fixture(scope="module")
def talks(tmp_path_factory):
    """The flag of other text than that of `general`."""
    folder = tmp_path_factory.mktemp("talks")
    for split, count in (("train", 100), ("dev", 10)):
        (folder / f"{split}.en").write_text("".join(f"we thank you {i} times\n" for i in range(count)))
        (folder / f"{split}.de").write_text("".join(f"wir danken Ihnen {i} mal\n" for i in range(count)))
    return f"--data_source={folder}"


def test_a_model_is_adapted_with_its_own_vocabulary(general, talks, tmp_path, capsys):
    out = tmp_path / "adapted"
    assert train(tmp_path / "data", out, talks, f"--warm_start_from={general}", "--freeze=encoder/") == 0
    said = capsys.readouterr().err
    newest = general / "model.ckpt-4.npz"
    assert f"starting with the weights of {newest} (step 4)\n" in said
    assert re.search("step 1/4 ", said)
    assert Run.load(out).fingerprint == Run.load(general).fingerprint
    assert ModelFolder(out).hparams.freeze == "encoder/"
    before, after = (StoredWeights(list_checkpoints(run)[-1].path) for run in (general, out))
    changed = {name for name, array in before.items() if (array != after[name]).any()}
    assert changed
    assert not any("encoder/layer" in name and "decoder/" not in name for name in changed)


def test_without_a_set_it_is_that_model(general, talks, tmp_path):
    """Hyperparameters of the training are those of the set; --hparams changes both."""
    flags = ["--problem=translate_ende", talks, f"--data_dir={tmp_path / 'data'}", "--train_steps=1"]
    warm = [f"--warm_start_from={general}", "--eval_bleu_sentences=0", "--hparams=learning_rate_constant=0.5"]
    assert trainer.main(["t2t-trainer", *flags, *warm, f"--output_dir={tmp_path / 'out'}"]) == 0
    adapted, before = ModelFolder(tmp_path / "out"), ModelFolder(general)
    assert adapted.run.hparams_set == before.run.hparams_set == "tiny"
    assert adapted.hparams.architecture() == before.hparams.architecture()
    assert adapted.hparams.filter_size != registry.hparams("tiny").filter_size
    assert adapted.hparams.learning_rate_constant == 0.5
    assert adapted.hparams.batch_size == registry.hparams("tiny").batch_size


def test_of_another_architecture_what_fits_is_taken(general, talks, tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "out"
    deeper = SMALL.replace("num_hidden_layers=1", "num_hidden_layers=2")
    flags = [talks, f"--warm_start_from={general}"]
    assert train(data, out, *flags, "--warm_start_partial", hparams=deeper) == 0
    said = capsys.readouterr().err
    assert re.search(r"\d+ of \d+ weights taken\nfresh: transformer/encoder/layer_1/", said)


def test_new_words_get_pieces_of_their_own(general, talks, tmp_path, capsys):
    out, data = tmp_path / "out", tmp_path / "data"
    adapt = [data, out, talks, f"--warm_start_from={general}", "--update_vocab"]
    assert train(*adapt) == 0
    said = capsys.readouterr().err
    old, new = ModelFolder(general).vocabularies.inputs, ModelFolder(out).vocabularies.inputs
    assert f"(step 4), {new.size - old.size:,} new pieces\n" in said
    assert extends(new, old)
    assert "▁danken" in new.pieces
    assert re.fullmatch(rf"vocab\.translate_ende\.{new.size}\.spm", Run.load(out).vocabulary)
    before, after = (StoredWeights(list_checkpoints(run)[-1].path) for run in (general, out))
    name = "model/transformer/target_embedding/embeddings"
    assert after[name].shape == (new.size, before[name].shape[1])
    assert train(*adapt, "--train_steps=5") == 0, "the same command resumes"

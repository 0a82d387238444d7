"""`t2t-eval`: each checkpoint is scored once; corrupt ones are named."""

import csv
import shutil
import sys

import numpy as np
import pytest

from t2t_revival import Transformer, Translator
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.cli import eval as eval_command
from t2t_revival.evaluation import split_scores
from t2t_revival.metrics.bleu import sacrebleu_score
from t2t_revival.model_folder import ModelFolder
from tests.cli.conftest import failure


@pytest.fixture
def scored(monkeypatch):
    """Replaces scores by functions of the step, without a model; names of the scored checkpoints."""
    names = []

    class Scores:
        def __init__(self, output_dir, data, split, decoded_sentences, num_parallel_batches, load_decoder):
            self.decoded = decoded_sentences

        def __call__(self, path):
            checkpoints.verify(path)
            names.append(f"{path.parent.name}/{path.name}")
            step = int(checkpoints.NAME.fullmatch(path.name)[1])
            scores = {"loss": 10.0 / step, "perplexity": 2.0, "accuracy": 0.5}
            if not self.decoded:
                return scores, []
            return {**scores, "bleu": float(step), "chrf": 50.0}, [f"output {n} of {step}" for n in range(5)]

    monkeypatch.setattr(split_scores, "CheckpointScores", Scores)
    return names


def run(out, *more):
    return eval_command.main(["t2t-eval", f"--output_dir={out}", *map(str, more)])


def table(out, split="dev"):
    with (out / f"eval-{split}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def steps(text):
    return [
        int(line.split()[0]) for line in text.splitlines() if line[:1] == " " and line.split()[0].isdigit()
    ]


@pytest.mark.slow
def test_scores_are_those_of_the_model(out, capsys, write_checkpoint):
    """The second checkpoint's loss and accuracy by NumPy from its logits, its BLEU from its translations."""
    write_checkpoint(out, 9)
    assert run(out, "--problem=translate_ende", "--hparams_set=tiny") == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["step", "loss", "perplexity", "accuracy", "bleu", "chrf"]
    assert steps(text) == [7, 9]
    row = {name: float(table(out)[1][name]) for name in ("loss", "perplexity", "accuracy", "bleu")}

    vocabulary, hparams = ModelFolder(out).vocabularies.inputs, ModelFolder(out).hparams
    model = Transformer(hparams, vocabulary.size)
    checkpoints.restore_weights(model, out / "model.ckpt-9.npz")
    pairs = list(ModelFolder(out).find_data().references("dev"))
    log_probabilities, right = [], []
    for source, target in pairs:
        source_ids, target_ids = (np.array([[*vocabulary.encode(text), 1]]) for text in (source, target))
        logits = np.asarray(model({"inputs": source_ids, "targets": target_ids}), np.float64)[0]
        logits -= logits.max(axis=-1, keepdims=True)
        chosen = logits[np.arange(len(logits)), target_ids[0]] - np.log(np.exp(logits).sum(axis=-1))
        log_probabilities += list(chosen)
        right += list(logits.argmax(axis=-1) == target_ids[0])
    assert row["loss"] == pytest.approx(-np.mean(log_probabilities), rel=1e-4)
    assert row["perplexity"] == pytest.approx(np.exp(-np.mean(log_probabilities)), rel=1e-3)
    assert row["accuracy"] == pytest.approx(np.mean(right), abs=1e-6)
    outputs = Translator.load(out, str(out / "model.ckpt-9.npz")).translate([source for source, _ in pairs])
    expected = sacrebleu_score(outputs, [target for _, target in pairs]).score
    assert row["bleu"] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_table_picture_and_best(out, scored, capsys, write_checkpoint):
    write_checkpoint(out, 12)
    checkpoints.write_average(checkpoints.list_checkpoints(out), out / "averaged")
    assert run(out) == 0
    assert scored == ["out/model.ckpt-7.npz", "out/model.ckpt-12.npz", "averaged/model.ckpt-12.npz"]
    shown = capsys.readouterr()
    assert "scoring model.ckpt-7.npz, 3 to go\n" in shown.err
    assert "scoring model.ckpt-12.npz, 2 to go, about" in shown.err
    assert "scoring averaged/model.ckpt-12.npz, 1 to go, about" in shown.err
    lines = shown.out.splitlines()
    assert lines[1].split() == ["7", "1.429", "2", "0.5", "7", "50"]
    assert lines[3].split()[-1] == "average"
    assert f"table    {out / 'eval-dev.csv'}" in lines
    assert (out / "eval-dev.png").read_bytes().startswith(b"\x89PNG")
    assert "best BLEU: step 12, 12.00" in lines
    next_command = f"next: t2t-decoder --output_dir={out} --checkpoint={out / 'model.ckpt-12.npz'}"
    assert lines[-1].startswith(next_command)
    assert [row["checkpoint"] for row in table(out)] == [
        "model.ckpt-7.npz",
        "model.ckpt-12.npz",
        "averaged/model.ckpt-12.npz",
    ]


def test_without_matplotlib_there_is_a_table_alone(out, scored, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run(out) == 0
    assert "picture eval-dev.png needs matplotlib" in capsys.readouterr().err
    assert table(out)
    assert not (out / "eval-dev.png").exists()


def test_checkpoints_that_the_training_removes_are_skipped_and_not_recommended(
    out, scored, capsys, monkeypatch, write_checkpoint
):
    write_checkpoint(out, 8)
    score = split_scores.CheckpointScores.__call__

    def removed(scores, path):
        if path.name == "model.ckpt-8.npz":
            path.unlink()
        found = score(scores, path)
        path.unlink()
        return found

    monkeypatch.setattr(split_scores.CheckpointScores, "__call__", removed)
    assert run(out) == 0
    captured = capsys.readouterr()
    assert "step 8: skipped, since the training has removed its checkpoint" in captured.err
    assert "model.ckpt-7.npz was deleted by the training: t2t-trainer keeps more with" in captured.out
    assert f"next: t2t-decoder --output_dir={out}\n" in captured.out


def test_other_ways_of_measuring_have_rows_of_their_own(out, scored, capsys):
    assert run(out) == 0
    assert run(out, "--eval_bleu_sentences=0") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("lowest loss: step 7, 1.429") for line in lines)
    assert run(out, "--eval_use_test_set") == 0
    assert [row["bleu"] for row in table(out)] == ["7", ""]
    assert [row["bleu"] for row in table(out, "test")] == ["7"]
    assert run(out) == 0
    assert len(scored) == 3


def test_interrupted_it_keeps_what_it_has(out, scored, monkeypatch, write_checkpoint, capsys):
    write_checkpoint(out, 8)
    measure = split_scores.CheckpointScores.__call__

    def interrupted(self, path):
        if path.name == "model.ckpt-8.npz":
            raise KeyboardInterrupt
        return measure(self, path)

    monkeypatch.setattr(split_scores.CheckpointScores, "__call__", interrupted)
    assert run(out) == 130
    assert [row["step"] for row in table(out)] == ["7"]
    monkeypatch.setattr(split_scores.CheckpointScores, "__call__", measure)
    assert run(out) == 0
    assert scored == ["out/model.ckpt-7.npz", "out/model.ckpt-8.npz"]


def test_corrupt_checkpoints_are_named_and_skipped(out, scored, capsys, write_checkpoint):
    write_checkpoint(out, 8)
    path = out / "model.ckpt-8.npz"
    path.write_bytes(path.read_bytes()[:1000])
    assert run(out) == 0
    captured = capsys.readouterr()
    assert f"warning: {path}: corrupt checkpoint" in captured.err
    assert "skipped" in captured.err
    assert steps(captured.out) == [7]
    (out / "model.ckpt-7.npz").unlink()
    assert "no valid checkpoint in" in failure(capsys, run(out))
    assert "corrupt checkpoint" in failure(capsys, run(out, f"--checkpoint={path}"))


def test_one_checkpoint_or_a_folder_of_them(out, scored, tmp_path, capsys, write_checkpoint):
    for step in (8, 9):
        write_checkpoint(out, step)
    assert run(out, f"--checkpoint={out / 'model.ckpt-8'}") == 0
    shutil.copytree(out, tmp_path / "copy")
    assert run(out, f"--checkpoint={tmp_path / 'copy'}", "--eval_timeout_mins=0") == 0
    assert [name for name in scored if name.startswith("copy")] == [
        f"copy/model.ckpt-{s}.npz" for s in (7, 8, 9)
    ]
    assert table(out)[0]["checkpoint"] == "../copy/model.ckpt-7.npz"
    assert f"--checkpoint={tmp_path / 'copy' / 'model.ckpt-9.npz'}" in capsys.readouterr().out


@pytest.mark.slow
def test_each_checkpoint_is_decoded_in_the_precision_and_its_loss_is_in_float32(
    out, capsys, write_checkpoint
):
    write_checkpoint(out, 9)
    command = ["t2t-eval", f"--output_dir={out}"]
    assert eval_command.main([*command, "--precision=bfloat16"]) == 0
    pairs = list(ModelFolder(out).find_data().references("dev"))
    for step in (7, 9):
        translator = Translator.load(out, str(out / f"model.ckpt-{step}.npz"), precision="bfloat16")
        (outputs,) = (out / "eval-dev").glob(f"{step}-*.txt")
        assert outputs.read_text(encoding="utf-8") == "".join(
            f"{line}\n" for line in translator.translate([source for source, _ in pairs])
        )
    assert eval_command.main([*command, "--eval_bleu_sentences=0"]) == 0
    assert capsys.readouterr().err.count("scoring ") == 4, "in float32, it is another evaluation"
    with (out / "eval-dev.csv").open(newline="") as file:
        losses = [(row["step"], row["loss"]) for row in csv.DictReader(file)]
    assert len(losses) == 4
    assert len(set(losses)) == 2

"""A training that starts with the weights of another one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import MODEL
from t2t_revival.checkpoints.selection import keep_best
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.model_folder import ModelFolder, Run
from t2t_revival.training.model import build_model
from t2t_revival.training.run_config import WarmStart
from tests.support.copy_shards import HPARAMS, VOCAB


def save_run(folder: Path, problem: str = "translate_ende", fingerprint: str = "a") -> Run:
    run = Run(problem, "tiny", "data", "vocab.spm", fingerprint, {})
    run.save(folder)
    return run


def test_all_differences_of_the_architecture_are_named(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "model.ckpt-1.npz", {f"{MODEL}w": np.zeros(3, "f")}, {"step": 1})
    save_run(tmp_path)
    HPARAMS.save(tmp_path)
    start, other = WarmStart.open(tmp_path), HPARAMS.replace(num_heads=4, filter_size=80)
    start.check("translate_enfr", HPARAMS.replace(layer_prepostprocess_dropout=0.5))
    with pytest.raises(T2TError, match="that model has filter_size=64, not 80; num_heads=2, not 4: change"):
        start.check("translate_ende", other)
    WarmStart.open(tmp_path, partial=True).check("translate_ende", other)
    with pytest.raises(T2TError, match="a model of translate_ende cannot become one of parse_wsj"):
        start.check("parse_wsj", HPARAMS)


def test_what_fits_is_taken_and_the_rest_is_listed(tmp_path: Path) -> None:
    small, wide = (
        build_model(HPARAMS.replace(filter_size=size, num_encoder_layers=layers), VOCAB)
        for size, layers in ((64, 2), (80, 1))
    )
    for model in (small, wide):
        model({"inputs": np.ones((1, 2), int), "targets": np.ones((1, 2), int)})
    path = tmp_path / "model.ckpt-5.npz"
    checkpoints.save(path, checkpoints.model_arrays(small), {"step": 5})
    save_run(tmp_path)
    notes = WarmStart.open(path, partial=True).assign_to(wide)
    fresh = [weight.path for weight in wide.weights if 80 in weight.shape]
    assert notes[1] == f"{len(wide.weights) - len(fresh)} of {len(wide.weights)} weights taken"
    assert notes[2] == "fresh: " + ", ".join(fresh)
    gone = [weight.path for weight in small.weights if weight.path not in {own.path for own in wide.weights}]
    assert all("encoder/layer_1" in path for path in gone)
    assert notes[3].startswith("not used: ")
    assert notes[3].endswith(f" and {len(gone) + len(fresh) - 8} more"), "of weights alone"
    attention = wide.encoder.layers[0].self_attention.output_kernel
    same = [weight for weight in small.weights if weight.path == attention.path]
    np.testing.assert_array_equal(attention, same[0])


def test_nothing_that_fits(tmp_path: Path) -> None:
    checkpoints.save(tmp_path / "model.ckpt-5.npz", {f"{MODEL}w": np.zeros(3, "f")}, {"step": 5})
    save_run(tmp_path)
    with pytest.raises(T2TError, match="no weight fits this model"):
        WarmStart.open(tmp_path, partial=True).assign_to(build_model(HPARAMS, VOCAB))


def test_the_next_is_taken_where_the_other_training_removes_the_first(tmp_path: Path) -> None:
    model = build_model(HPARAMS, VOCAB)
    model({"inputs": np.ones((1, 2), int), "targets": np.ones((1, 2), int)})
    first, second = (tmp_path / f"model.ckpt-{step}.npz" for step in (5, 6))
    checkpoints.save(first, checkpoints.model_arrays(model), {"step": 5})
    save_run(tmp_path)
    start, given = WarmStart.open(tmp_path), WarmStart.open(first)
    first.rename(second)
    notes = start.assign_to(model)
    assert notes[0] == f"{first} was removed meanwhile: the next one is used"
    assert notes[1] == f"starting with the weights of {second} (step 5)"
    with pytest.raises(T2TError, match=f"no checkpoint {first}"):
        given.assign_to(model)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(tmp_path: Path, value: float) -> None:
    arrays = {f"{MODEL}transformer/w": np.float32([1, value])}
    checkpoints.save(tmp_path / "model.ckpt-5.npz", arrays, {"step": 5})
    save_run(tmp_path)
    with pytest.raises(T2TError, match=r"model\.ckpt-5\.npz: transformer/w is not finite"):
        WarmStart.open(tmp_path).assign_to(None)


def test_folders_and_files_name_a_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2):
        checkpoints.save(
            tmp_path / checkpoints.file_name(step), {f"{MODEL}w": np.zeros(3, "f")}, {"step": step}
        )
        keep_best(tmp_path, {1: 1.0, 2: 2.0}, "loss", 2)
    checkpoints.write_average(checkpoints.list_checkpoints(tmp_path)[:1], tmp_path / "averaged")
    save_run(tmp_path)
    for given, expected in (
        (".", "model.ckpt-2.npz"),
        ("model.ckpt-1.npz", "model.ckpt-1.npz"),
        ("model.ckpt-1", "model.ckpt-1.npz"),
        ("best", "best/model.ckpt-1.npz"),
        ("best/model.ckpt-2.npz", "best/model.ckpt-2.npz"),
        ("averaged", "averaged/model.ckpt-1.npz"),
    ):
        opened = WarmStart.open(tmp_path / given)
        assert (opened.folder.path, opened.checkpoint.path) == (tmp_path, tmp_path / expected)


class Named:
    """The part of a vocabulary that a warm start asks for."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces, self.size, self.content, self.path = pieces, len(pieces), pieces, None

    def parts(self, piece: str) -> list[int]:
        return [self.pieces.index(character) for character in piece]


def separate(*sides: list[str]) -> Vocabularies:
    return Vocabularies(*map(Named, sides))  # type: ignore[arg-type]


def shared(pieces: list[str]) -> Vocabularies:
    return Vocabularies(*[Named(pieces)] * 2)  # type: ignore[list-item]


def test_new_pieces_of_two_vocabularies_go_to_their_own_embedding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = ["<pad>", "</s>", "a", "b"], ["<pad>", "</s>", "x", "y", "z"]
    old = build_model(HPARAMS.replace(softmax_bias=True), 4, target_vocab_size=5)
    new = build_model(HPARAMS.replace(softmax_bias=True), 5, target_vocab_size=7)
    old.target_embedding.softmax_bias.assign([0, 0, 1, 2, 4])
    checkpoints.save(tmp_path / "model.ckpt-1.npz", checkpoints.model_arrays(old), {"step": 1})
    save_run(tmp_path)
    monkeypatch.setattr(ModelFolder, "vocabularies", separate(source, target))
    run = Run("translate_ende", "tiny", "data", "vocab.spm", "b", {}, "target.spm", "c")
    start = WarmStart.open(tmp_path).prepared_for(run, separate([*source, "ab"], [*target, "xy", "zz"]))
    assert start.assign_to(new)[0].endswith("(step 1), 3 new pieces")
    for name, sizes in (("source_embedding", (4, 5)), ("target_embedding", (5, 7))):
        before, after = (np.array(getattr(model, name).embeddings) for model in (old, new))
        assert (len(before), len(after)) == sizes
        np.testing.assert_array_equal(after[: len(before)], before)
        np.testing.assert_allclose(after[len(before)], (before[2] + before[3]) / 2, atol=1e-7)
    np.testing.assert_allclose(new.target_embedding.softmax_bias, [0, 0, 1, 2, 4, 1.5, 4])
    with pytest.raises(T2TError, match="that model has another vocabulary"):
        WarmStart.open(tmp_path).prepared_for(run, separate(target, source))
    fault = "that model has another vocabulary than the data in data: give another --data_dir"
    with pytest.raises(T2TError, match=fault):
        WarmStart.open(tmp_path).prepared_for(run, shared(source))

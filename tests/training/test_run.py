"""Files of an output_dir: another run is rejected, and a training that has nothing left to do."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import T2TError, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.training.run import (
    FILE_NAME,
    Run,
    check_place,
    check_same,
    check_unfinished,
    load_vocabularies,
    plan_run,
    save_run,
)

ROWS = "step,target_tokens,seconds,loss\n4,1,1,3.0\n"


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


@pytest.fixture
def two(tmp_path: Path, run: Run, vocabulary: Vocabulary) -> tuple[Run, list[Path]]:
    """The run of a model with two vocabularies, and these."""
    chinese = Vocabulary.train(["老狗看见一只小猫"] * 20, tmp_path / "vocab.translate_ende.zh.270.spm", 270)
    own = {"target_vocabulary": chinese.path.name, "target_fingerprint": chinese.fingerprint}
    return dataclasses.replace(run, **own), [vocabulary.path, chinese.path]


def test_both_vocabularies_are_copied_and_loaded(tmp_path: Path, two: tuple[Run, list[Path]]) -> None:
    run, paths = two
    save_run(tmp_path / "out", run, registry.hparams("tiny"), *paths)
    vocabularies = load_vocabularies(tmp_path / "out")
    assert Run.load(tmp_path / "out") == run
    assert [each.fingerprint for each in vocabularies] == run.fingerprints
    assert run.vocabulary_files(tmp_path / "out") == [tmp_path / "out" / path.name for path in paths]
    (tmp_path / "out" / run.target_vocabulary).write_bytes(paths[0].read_bytes())
    with pytest.raises(
        T2TError, match=r"\.zh\.270\.spm: not the vocabulary that this model was trained with"
    ):
        load_vocabularies(tmp_path / "out")


def test_in_the_other_direction_the_datas_inputs_are_the_models_targets(two: tuple[Run, list[Path]]) -> None:
    run, _ = two
    reverse = dataclasses.replace(run, problem="translate_ende_rev")
    assert [*run.vocabularies] == [run.vocabulary, run.target_vocabulary]
    assert [*reverse.vocabularies] == [run.target_vocabulary, run.vocabulary]
    assert reverse.fingerprints == run.fingerprints


def test_another_vocabulary_is_refused(tmp_path: Path, two: tuple[Run, list[Path]]) -> None:
    run, paths = two
    save_run(tmp_path / "out", run, registry.hparams("tiny"), *paths)
    check_same(tmp_path / "out", run, registry.hparams("tiny"))
    files = ",".join(str(tmp_path / "out" / path.name) for path in paths)
    fault = f"another vocabulary: give another --output_dir, .* --vocab_file={files} "
    none = {"target_vocabulary": "", "target_fingerprint": ""}
    for changes in ({"fingerprint": "other"}, {"target_fingerprint": "other"}, none):
        with pytest.raises(T2TError, match=fault):
            check_same(tmp_path / "out", dataclasses.replace(run, **changes), registry.hparams("tiny"))


def test_a_resumed_run_keeps_its_way_of_decoding(tmp_path: Path, run: Run, vocabulary: Vocabulary) -> None:
    """An imported model keeps T2T's extra_length, for example."""
    problem = registry.problem("translate_ende")
    both = Vocabularies(vocabulary, vocabulary)
    problem.vocabularies = lambda data_dir: both  # type: ignore[attr-defined]
    new = plan_run(problem, "tiny", tmp_path / "data", tmp_path / "out")
    assert new.decode_hparams == {"beam_size": 4, "alpha": 0.6, "extra_length": 50}
    imported = dataclasses.replace(run, data_dir="", decode_hparams={"extra_length": 100})
    save_run(tmp_path / "out", imported, registry.hparams("tiny"), vocabulary.path)
    resumed = plan_run(problem, "tiny", tmp_path / "data", tmp_path / "out")
    assert resumed == dataclasses.replace(new, decode_hparams={"extra_length": 100})


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("hidden_size", 128, 64),
        ("attention_window", 0, 64),
        ("attention_window", 64, 32),
        ("decoder_self_attention", "attention", "ssru"),
        ("deterministic_attention", False, True),
        ("freeze", "encoder", ""),
        ("lora_rank", 2, 0),
    ],
)
def test_a_run_may_go_on_with_other_training_but_not_another_model(
    name: str, old: object, new: object, tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    hparams, changed = (registry.hparams("tiny").replace(**{name: value}) for value in (old, new))
    for before, now, stored in ((hparams, changed, old), (changed, hparams, new)):
        save_run(tmp_path, run, before, vocabulary.path)
        check_same(tmp_path, run, before.replace(train_steps=9, batch_size=1024, max_length=99))
        with pytest.raises(T2TError, match=f"{name}='?{stored}'?, not .*: give another --output_dir"):
            check_same(tmp_path, run, now)


def test_max_length_belongs_to_the_model_where_positions_are_learned(
    tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    hparams = registry.hparams("table3_e_learned")
    save_run(tmp_path, run, hparams, vocabulary.path)
    with pytest.raises(T2TError, match="max_length=256, not 128"):
        check_same(tmp_path, run, hparams.replace(max_length=128))


def test_another_problem_or_set_is_refused_before_anything_is_done(
    tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    check_place(tmp_path, "anything", "at_all")
    save_run(tmp_path, run, registry.hparams("tiny"), vocabulary.path)
    check_place(tmp_path, run.problem, run.hparams_set)
    for problem, hparams_set in (("translate_enfr", "tiny"), ("translate_ende", "big")):
        with pytest.raises(T2TError, match="give another --output_dir"):
            check_place(tmp_path, problem, hparams_set)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"problem": "x", "nonsense": 1}', "\x00"])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE_NAME).write_text(content)
    with pytest.raises(T2TError, match=FILE_NAME):
        Run.load(tmp_path)


@pytest.fixture
def finished(tmp_path):
    """An output_dir at step 4, with its evaluation."""
    for step in (2, 4):
        arrays = {"model/transformer/w": np.ones(3, np.float32)}
        checkpoints.save(tmp_path / checkpoints.file_name(step), arrays, {"step": step})
    (tmp_path / "dev.csv").write_text(ROWS)
    return tmp_path


def test_something_is_left(finished, tmp_path):
    check_unfinished(finished, 5, 2)
    check_unfinished(tmp_path / "nothing there", 4, 2)
    (finished / "dev.csv").unlink()
    check_unfinished(finished, 4, 2)


def test_a_corrupt_checkpoint_is_left_to_the_training(finished):
    path = finished / "model.ckpt-4.npz"
    path.write_bytes(path.read_bytes()[:-30])
    check_unfinished(finished, 4, 2)

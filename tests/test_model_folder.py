"""`ModelFolder`: another run is refused, a training with nothing left to do, and a second trainer."""

import dataclasses
import errno
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from t2t_revival import Data, HParams, T2TError, registry
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.data.config import Metadata
from t2t_revival.data.vocabulary import Vocabularies
from t2t_revival.data.vocabulary.sentencepiece import Vocabulary
from t2t_revival.model_folder import LOCK_FILE, ModelFolder, Run

HOLD = """
import sys
from pathlib import Path
from t2t_revival.model_folder import ModelFolder
with ModelFolder(Path(sys.argv[1])).lock():
    print("held", flush=True)
    sys.stdin.read()
"""
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


def prepare(path: Path, run: Run, hparams: HParams) -> None:
    ModelFolder(path).prepare(run.problem, run.hparams_set, hparams)


@pytest.fixture
def two(tmp_path: Path, run: Run, vocabulary: Vocabulary) -> tuple[Run, list[Path]]:
    """The run of a model with two vocabularies, and these."""
    chinese = Vocabulary.train(["老狗看见一只小猫"] * 20, tmp_path / "vocab.translate_ende.zh.270.spm", 270)
    own = {"target_vocabulary": chinese.path.name, "target_fingerprint": chinese.fingerprint}
    return dataclasses.replace(run, **own), [vocabulary.path, chinese.path]


def test_both_vocabularies_are_copied_and_loaded(tmp_path: Path, two: tuple[Run, list[Path]]) -> None:
    run, paths = two
    ModelFolder(tmp_path / "out").save(run, registry.hparams("tiny"), *paths)
    folder = ModelFolder(tmp_path / "out")
    assert folder.run == run
    assert [each.fingerprint for each in folder.vocabularies] == run.fingerprints
    assert folder.vocabulary_files == [folder.path / path.name for path in paths]
    (tmp_path / "out" / run.target_vocabulary).write_bytes(paths[0].read_bytes())
    with pytest.raises(T2TError, match=r"\.zh\.270\.spm: not the vocabulary that"):
        assert ModelFolder(tmp_path / "out").vocabularies


def test_in_the_other_direction_the_datas_inputs_are_the_models_targets(two: tuple[Run, list[Path]]) -> None:
    run, _ = two
    reverse = dataclasses.replace(run, problem="translate_ende_rev")
    assert [*run.vocabularies] == [run.vocabulary, run.target_vocabulary]
    assert [*reverse.vocabularies] == [run.target_vocabulary, run.vocabulary]
    assert reverse.fingerprints == run.fingerprints


def test_another_vocabulary_is_refused(tmp_path: Path, two: tuple[Run, list[Path]]) -> None:
    run, paths = two
    folder = ModelFolder(tmp_path / "out")
    folder.save(run, registry.hparams("tiny"), *paths)
    folder.check_vocabularies(run)
    files = ",".join(str(tmp_path / "out" / path.name) for path in paths)
    fault = f"another vocabulary: give another --output_dir, .* --vocab_file={files} "
    none = {"target_vocabulary": "", "target_fingerprint": ""}
    for changes in ({"fingerprint": "other"}, {"target_fingerprint": "other"}, none):
        with pytest.raises(T2TError, match=fault):
            folder.check_vocabularies(dataclasses.replace(run, **changes))


def test_a_resumed_run_keeps_its_way_of_decoding(tmp_path: Path, run: Run, vocabulary: Vocabulary) -> None:
    """An imported model keeps T2T's extra_length, for example."""
    problem = registry.problem("translate_ende")
    metadata = Metadata("translate_ende", "sample", "en", "de", {})
    data = Data(problem, tmp_path / "data", metadata, Vocabularies(vocabulary, vocabulary))
    new = ModelFolder(tmp_path / "out").plan_run(data, "tiny")
    assert new.decode_hparams == {"beam_size": 4, "alpha": 0.6, "extra_length": 50}
    imported = dataclasses.replace(run, data_dir="", decode_hparams={"extra_length": 100})
    ModelFolder(tmp_path / "out").save(imported, registry.hparams("tiny"), vocabulary.path)
    resumed = ModelFolder(tmp_path / "out").plan_run(data, "tiny")
    assert resumed == dataclasses.replace(new, decode_hparams={"extra_length": 100})


def test_max_length_belongs_to_the_model_where_positions_are_learned(
    tmp_path: Path, run: Run, vocabulary: Vocabulary
) -> None:
    hparams = registry.hparams("table3_e_learned")
    ModelFolder(tmp_path).save(run, hparams, vocabulary.path)
    with pytest.raises(T2TError, match="max_length=256, not 128"):
        prepare(tmp_path, run, hparams.replace(max_length=128))


@pytest.fixture
def finished(tmp_path):
    """An output_dir at step 4, with its evaluation."""
    for step in (2, 4):
        arrays = {"model/transformer/w": np.ones(3, np.float32)}
        checkpoints.save(tmp_path / checkpoints.file_name(step), arrays, {"step": step})
    (tmp_path / "dev.csv").write_text(ROWS)
    return tmp_path


def test_something_is_left(finished, tmp_path):
    ModelFolder(finished).check_unfinished(5, 2)
    ModelFolder(tmp_path / "nothing there").check_unfinished(4, 2)
    (finished / "dev.csv").unlink()
    ModelFolder(finished).check_unfinished(4, 2)


def test_a_corrupt_checkpoint_is_left_to_the_training(finished):
    path = finished / "model.ckpt-4.npz"
    path.write_bytes(path.read_bytes()[:-30])
    ModelFolder(finished).check_unfinished(4, 2)


@pytest.fixture
def holder(tmp_path: Path):
    """Another process that trains in tmp_path / "out"."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_trainer_is_refused_until_the_first_is_killed(
    holder: subprocess.Popen, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with pytest.raises(T2TError, match=f"{out} is in use by another t2t-trainer"), ModelFolder(out).lock():
        pass
    with pytest.raises(T2TError, match="another t2t-trainer"):
        ModelFolder(out).prepare("translate_ende", "tiny", HParams())
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (out / LOCK_FILE).exists(), "a file that is left over locks nobody out"
    ModelFolder(out).check_free()
    with ModelFolder(out).lock():
        (out / "something").touch()
    ModelFolder(out).prepare("translate_ende", "tiny", HParams())


def test_a_folder_that_stays_empty_goes_again_unless_it_was_there(tmp_path: Path) -> None:
    with ModelFolder(tmp_path / "a" / "b").lock():
        assert (tmp_path / "a" / "b").is_dir()
    assert not (tmp_path / "a").exists()
    with ModelFolder(tmp_path).lock():
        pass
    assert tmp_path.is_dir()


def test_no_lock_file_where_nothing_was_trained(tmp_path: Path) -> None:
    ModelFolder(tmp_path).check_free()
    ModelFolder(tmp_path / "nowhere").check_free()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("number", "passes"), [(errno.ENOLCK, True), (errno.EIO, False)])
def test_a_file_system_without_locks_refuses_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, passes: bool
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    if passes:
        with ModelFolder(tmp_path).lock():
            return
    with pytest.raises(OSError, match="no locks"), ModelFolder(tmp_path).lock():
        pass


def test_workers_that_look_at_the_same_time_do_not_refuse_each_other(tmp_path: Path) -> None:
    with ModelFolder(tmp_path).lock():
        pass
    with (tmp_path / LOCK_FILE).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as `check_free` of another worker
        ModelFolder(tmp_path).check_free()

"""Checkpoints: whole or absent, verified, and rejected if they are of another model."""

import errno
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_revival import T2TError
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.checkpoints.file import CorruptCheckpointError, weights_of
from t2t_revival.checkpoints.selection import select_checkpoint


def write(folder: Path, step: int, value: float = 0.0) -> Path:
    path = folder / checkpoints.file_name(step)
    arrays = {
        "model/transformer/w": np.full((2, 3), value, np.float32),
        "optimizer/m": np.zeros(3, np.float32),
    }
    checkpoints.save(path, arrays, {"step": step})
    return path


class Variable:
    """The part of a Keras variable that `assign` uses."""

    def __init__(self, path: str, shape: tuple[int, ...]) -> None:
        self.path, self.shape, self.value = path, shape, None

    def assign(self, value: np.ndarray) -> None:
        self.value = value


def test_what_a_killed_training_left_is_removed(tmp_path: Path) -> None:
    write(tmp_path, 1)
    (tmp_path / "best").mkdir()
    for name in (".model.ckpt-2.npz.tmp", "best/.model.ckpt-1.npz.tmp"):
        (tmp_path / name).touch()
    checkpoints.remove_unfinished(tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["model.ckpt-1.npz"]


def test_listed_by_step_not_by_name(tmp_path: Path) -> None:
    for step in (9, 100, 20):
        write(tmp_path, step)
    (tmp_path / "model.ckpt-5.npz.part").touch()
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [9, 20, 100]
    checkpoints.prune(tmp_path, 0)
    assert len(checkpoints.list_checkpoints(tmp_path)) == 3
    checkpoints.prune(tmp_path, 2)
    assert [c.step for c in checkpoints.list_checkpoints(tmp_path)] == [20, 100]


def test_a_checkpoint_that_somebody_else_removes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step, 1.0)
    found = checkpoints.list_checkpoints(tmp_path)
    found[0].path.unlink()
    monkeypatch.setattr(checkpoints, "list_checkpoints", lambda folder: found)
    checkpoints.prune(tmp_path, 1)
    assert [path.name for path in tmp_path.glob("model*")] == ["model.ckpt-3.npz"]


@pytest.mark.slow
def test_every_flipped_bit_is_found_or_harmless(tmp_path: Path) -> None:
    path = write(tmp_path, 1, 1.0)
    content, before = path.read_bytes(), checkpoints.load(path)
    found = 0
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            arrays, meta = checkpoints.load(path)
        except T2TError as error:
            found += str(path) in str(error)
        else:  # a bit that carries nothing, such as a file time inside the zip
            assert meta == before[1]
            assert arrays.keys() == before[0].keys()
            assert all((arrays[name] == array).all() for name, array in before[0].items())
    assert found > 5 * len(content)


def test_a_file_that_numpy_wrote_needs_no_checksums(tmp_path: Path) -> None:
    path, weights = tmp_path / "model.ckpt-1.npz", np.ones((2, 3), np.float32)
    meta = np.frombuffer(b'{"format": 1, "step": 1}', np.uint8)
    np.savez(path, **{"meta": meta, "model/transformer/w": weights})
    arrays, found = checkpoints.load(path)
    assert found["step"] == 1
    np.testing.assert_array_equal(arrays["model/transformer/w"], weights)


@pytest.mark.parametrize("change", ["renamed", "removed", "added"])
def test_another_set_of_arrays_is_damage(tmp_path: Path, change: str) -> None:
    path = write(tmp_path, 1)
    with np.load(path) as file:
        arrays = dict(file)
    weights = arrays.pop("model/transformer/w")
    changed = {"renamed": {"model/transformer/v": weights}, "removed": {}, "added": {"model/x": weights}}
    np.savez(path, **arrays, **changed[change])
    with pytest.raises(CorruptCheckpointError, match="not those that were written"):
        checkpoints.load(path)


class Malicious:
    """An object whose pickle runs code when it is read."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple:
        return Path.touch, (self.mark,)


@pytest.mark.parametrize("name", ["meta", "model/transformer/w"])
def test_a_pickle_is_not_loaded(tmp_path: Path, name: str) -> None:
    path, mark = tmp_path / "model.ckpt-1.npz", tmp_path / "ran"
    meta = np.frombuffer(b'{"format": 1, "step": 1}', np.uint8)
    np.savez(path, **{"meta": meta, name: np.array([Malicious(mark)], dtype=object)})
    with pytest.raises(CorruptCheckpointError, match="pickle"):
        checkpoints.load(path)
    assert not mark.exists()
    with np.load(path, allow_pickle=True) as file:
        assert file[name] is not None
    assert mark.exists(), "the file does harm where pickles are read"


def named(*variables: Variable) -> dict[str, Variable]:
    return {variable.path: variable for variable in variables}


def test_another_model_is_refused_with_name_and_shape(tmp_path: Path) -> None:
    arrays, _ = checkpoints.load(write(tmp_path, 1))
    fits, other = Variable("transformer/w", (2, 3)), Variable("transformer/w", (2, 4))
    with pytest.raises(
        T2TError, match=r"of another model, with model/transformer/w=\[2, 3\], not \[2, 4\]: give"
    ):
        checkpoints.assign(named(other), arrays, checkpoints.MODEL, tmp_path)
    with pytest.raises(T2TError, match=r"transformer/v=None, not \[1\]"):
        checkpoints.assign(named(fits, Variable("transformer/v", (1,))), arrays, checkpoints.MODEL, tmp_path)
    more = {**arrays, "model/transformer/extra": np.zeros(2, np.float32)}
    with pytest.raises(T2TError, match=r"transformer/extra=\[2\], not None"):
        checkpoints.assign(named(fits), more, checkpoints.MODEL, tmp_path)
    assert fits.value is None, "a refused checkpoint must change nothing"


@pytest.mark.parametrize("name", ["model/transformer/w", "model/transformer/v"])
def test_average_of_different_models_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, 1)
    other = tmp_path / checkpoints.file_name(2)
    checkpoints.save(other, {name: np.zeros((4,), np.float32)}, {"step": 2})
    with pytest.raises(T2TError, match="different models"):
        checkpoints.write_average(checkpoints.list_checkpoints(tmp_path), tmp_path / "averaged")


def test_no_training_goes_on_from_an_average(tmp_path: Path) -> None:
    write(tmp_path, 1)
    averaged = checkpoints.write_average(checkpoints.list_checkpoints(tmp_path), tmp_path / "averaged")
    with pytest.raises(T2TError, match="training cannot resume from an average"):
        checkpoints.restore(None, averaged)


def test_a_fingerprint_is_of_the_weights_alone(tmp_path: Path) -> None:
    first, same, other = write(tmp_path, 1, 2.5), write(tmp_path, 2, 2.5), write(tmp_path, 3, 2.25)
    assert weights_of(first) == weights_of(same) != weights_of(other)
    other.write_bytes(other.read_bytes()[:-30])
    with pytest.raises(CorruptCheckpointError):
        weights_of(other)


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def test_a_damaged_one_is_left_out_named_and_not_touched(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        write(tmp_path, step)
    checkpoints.write_average(checkpoints.list_checkpoints(tmp_path), tmp_path / "averaged")
    paths = [tmp_path / "averaged" / "model.ckpt-3.npz", tmp_path / "model.ckpt-3.npz"]
    for path in paths:
        damage(path)
    named: list[Path] = []
    assert select_checkpoint(tmp_path, None, lambda error: named.append(error.path)).step == 2
    assert named == paths
    assert all(path.exists() for path in paths)
    with pytest.warns(UserWarning, match=r"ckpt-3.npz: corrupt checkpoint .*, ignored: the one before it"):
        select_checkpoint(tmp_path)
    whole = checkpoints.first_valid(checkpoints.list_checkpoints(tmp_path), 5, lambda error: None)
    assert [checkpoint.step for checkpoint in whole] == [1, 2]


def test_beside_a_training_that_removes_what_is_looked_at(tmp_path: Path, monkeypatch) -> None:
    verify, looked_at = checkpoints.verify, []

    def removed_once(path: Path, prefixes: tuple[str, ...]) -> dict:
        looked_at.append(path)
        if len(looked_at) == 1:
            write(tmp_path, 2)
            path.unlink()
        return verify(path, prefixes)

    monkeypatch.setattr(checkpoints, "verify", removed_once)
    gone, said = write(tmp_path, 1), []
    assert select_checkpoint(tmp_path, None, lambda error: said.append(error.path)).step == 2
    assert said == [gone]
    assert looked_at == [gone, tmp_path / "model.ckpt-2.npz"]


def test_a_given_one_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, 1)
    damage(write(tmp_path, 2))
    with pytest.raises(CorruptCheckpointError, match=r"ckpt-2.npz: corrupt checkpoint"):
        select_checkpoint(tmp_path, str(tmp_path / "model.ckpt-2"))


@pytest.mark.parametrize(("number", "damage"), [(errno.EIO, True), (errno.EACCES, False)])
def test_what_may_not_be_read_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, damage: bool
) -> None:
    path = write(tmp_path, 1)

    def refuse(*_: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(T2TError, match=str(path)) as error:
        checkpoints.load(path)
    assert isinstance(error.value, CorruptCheckpointError) == damage


def test_what_is_set_aside_is_kept_and_not_listed(tmp_path: Path) -> None:
    names = [checkpoints.quarantine(write(tmp_path, 1, value)).name for value in (1.0, 2.0)]
    assert names == ["model.ckpt-1.npz.damaged", "model.ckpt-1.npz.damaged-1"]
    assert not checkpoints.list_checkpoints(tmp_path)
    for name, value in zip(names, (1.0, 2.0), strict=True):
        assert checkpoints.load(tmp_path / name)[0]["model/transformer/w"][0, 0] == value


def test_two_weights_of_one_path_are_refused() -> None:
    model = SimpleNamespace(variables=[Variable("transformer/w", (3,))] * 2)
    checkpoints.check_paths(model)  # the weight is one, named twice
    model.variables.append(Variable("transformer/w", (3,)))
    with pytest.raises(T2TError, match="two variables have the path transformer/w"):
        checkpoints.check_paths(model)

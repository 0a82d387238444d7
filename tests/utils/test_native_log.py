"""Messages of C++ libraries on stderr: chatter is dropped, all else is passed on."""

import os

import pytest

from t2t_revival.utils.native_log import LEVEL, quiet

CHATTER = [
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n",
    b"I0000 00:00:1795297507.646830    7525 port.cc:153] oneDNN custom operations are on.\n",
    b"2024-05-01 12:00:00.123456: I tensorflow/core/platform/cpu_feature_guard.cc:210] optimized\n",
    b"To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow\n",
    b"E0000 00:00:1795297734.3 9604 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error\n",
    b"normalizer.cc(51) LOG(INFO) precompiled_charsmap is empty. use identity normalization.\n",
]
ERRORS = [
    b"E0000 00:00:1795297734.3 9604 gpu_device.cc:52] out of memory\n",
    b"sentencepiece_processor.cc(9) LOG(ERROR) no model\n",
    b"a warning of Python's\n",
]


def write() -> None:
    for line in (*CHATTER[:3], *ERRORS, *CHATTER[3:]):
        os.write(2, line)


def fail() -> None:
    write()
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("level", "shown"), [(None, ERRORS), ("2", ERRORS), ("1", CHATTER + ERRORS), ("0", CHATTER + ERRORS)]
)
def test_chatter_is_dropped_unless_it_is_asked_for(level, shown, capfd, monkeypatch):
    monkeypatch.delenv(LEVEL, raising=False)
    if level:
        monkeypatch.setenv(LEVEL, level)
    with quiet():
        write()
    os.write(2, b"afterwards\n")
    lines = capfd.readouterr().err.encode().splitlines(keepends=True)
    assert lines[-1] == b"afterwards\n"
    assert sorted(lines[:-1]) == sorted(shown)


def test_nothing_is_dropped_before_an_exception(capfd, monkeypatch):
    monkeypatch.setenv(LEVEL, "2")
    with pytest.raises(ZeroDivisionError), quiet():
        fail()
    assert sorted(capfd.readouterr().err.encode().splitlines(keepends=True)) == sorted(CHATTER + ERRORS)

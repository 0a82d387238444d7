"""Signals and early stopping, without a training."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from t2t_revival import RunConfig
from t2t_revival.training.engines.tensorflow_engine import TensorFlowEngine
from t2t_revival.training.stopping import EarlyStopping, Stopping


@pytest.fixture
def stopping(tmp_path: Path) -> Stopping:
    config = RunConfig(tmp_path, strategy="default", patience=5)
    return Stopping(EarlyStopping(config, []), TensorFlowEngine(config))


def test_early_stopping_remembers_earlier_sessions(tmp_path: Path) -> None:
    config = RunConfig(tmp_path, patience=20)
    history = [{"step": 10.0, "loss": 1.0}, {"step": 20.0, "loss": 1.2}]
    assert not EarlyStopping(config, history).should_stop(25, {"loss": 1.1})
    assert EarlyStopping(config, history).should_stop(30, {"loss": 1.1})
    assert not EarlyStopping(config, history).should_stop(30, {"loss": 0.9})


def test_the_first_signal_stops_after_the_update_and_the_second_at_once(stopping: Stopping) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping.handle_signals():
        assert not stopping.agree_to_stop()
        signal.raise_signal(signal.SIGTERM)
        assert stopping.agree_to_stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert stopping.reason == "SIGTERM"
    assert signal.getsignal(signal.SIGTERM) == before


def test_signals_of_a_terminal_that_is_gone_count_once(stopping: Stopping) -> None:
    """The kernel, the shell and the session manager each send one, SIGHUP before SIGTERM."""
    with stopping.handle_signals():
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert stopping.agree_to_stop()
    assert stopping.reason == "SIGTERM"


def test_a_hangup_is_a_reason_unless_it_is_ignored(stopping: Stopping) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping.handle_signals():
            signal.raise_signal(signal.SIGHUP)
            assert not stopping.agree_to_stop()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with stopping.handle_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert stopping.agree_to_stop()
    assert stopping.reason == "SIGHUP"


def test_a_signal_before_early_stopping_is_the_reason(stopping: Stopping) -> None:
    stopping.on_scores(1, {"loss": 1.0})
    assert not stopping.agree_to_stop()
    with stopping.handle_signals():
        signal.raise_signal(signal.SIGINT)
    stopping.on_scores(6, {"loss": 1.0})
    assert stopping.agree_to_stop()
    assert stopping.reason == "SIGINT"

"""Scores for TensorBoard."""

from pathlib import Path

import pytest

from t2t_revival.utils.score_events import ScoreEvents


@pytest.mark.slow
def test_tensorboard_reads_the_events(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for step, score in ((100, 12.5), (200, 25.0)):
        events = ScoreEvents(tmp_path / "events")
        events.add(step, 1e9 + step, {"BLEU_cased": score, "BLEU_uncased": 2 * score})
        events.close()
    found = EventAccumulator(str(tmp_path / "events")).Reload()
    for tag, factor in (("BLEU_cased", 1), ("BLEU_uncased", 2)):
        points = [(event.wall_time, event.step, event.value) for event in found.Scalars(tag)]
        assert points == [(1e9 + 100, 100, 12.5 * factor), (1e9 + 200, 200, 25.0 * factor)]

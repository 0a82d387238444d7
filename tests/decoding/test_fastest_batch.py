"""`batch_size=auto`."""

import pytest

from t2t_revival import HParams, T2TError, Transformer, Translator
from t2t_revival.checkpoints import directory as checkpoints
from t2t_revival.decoding.lines import fastest_batch
from t2t_revival.decoding.options import DecodeHParams
from t2t_revival.errors import OutOfMemoryError
from t2t_revival.model_folder import ModelFolder, Run


@pytest.mark.parametrize(
    ("fixed", "room", "expected"),
    [(0.0, 10**9, 2048), (0.02, 10**9, 8192), (4.0, 10**9, 32_768), (2.0, 10_000, 8192), (9.0, 10**9, 2048)],
)
def test_larger_batches_are_tried_while_they_are_faster(monkeypatch, fixed, room, expected):
    """A device takes `fixed` seconds for a batch, and 1 ms for a line."""
    clock, notes = [0.0], []
    monkeypatch.setattr(fastest_batch.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(fastest_batch, "random_lines", lambda translator, count: [""] * count)

    class Device:
        def __init__(self, size):
            self.size = size

        def translate(self, lines):
            if self.size > room:
                raise OutOfMemoryError("too large")
            clock[0] += fixed + len(lines) / 1000

    assert fastest_batch.fastest_batch_size(Device, notes.append) == expected
    assert notes[0].startswith(f"batch_size=auto: {expected}, with ")


def test_a_loaded_model_measures_it(tmp_path, vocabulary, monkeypatch):
    monkeypatch.setattr(fastest_batch, "SIZES", (256, 512))
    hparams = HParams(num_hidden_layers=1, hidden_size=8, filter_size=8, num_heads=2, max_length=40)
    run = Run("translate_ende", "tiny", "", vocabulary.path.name, vocabulary.fingerprint, {})
    ModelFolder(tmp_path / "out").save(run, hparams, vocabulary.path)
    arrays = checkpoints.model_arrays(Transformer(hparams, vocabulary.size))
    checkpoints.save(tmp_path / "out" / "model.ckpt-1.npz", arrays, {"step": 1})
    translator = Translator.load(tmp_path / "out", decode_hparams="batch_size=auto,extra_length=3")
    assert translator.options.batch_size in (256, 512)
    with pytest.raises(T2TError, match="batch_size=auto is for models that are loaded: give a number"):
        Translator(translator.model, vocabulary, DecodeHParams.parse("batch_size=auto"))

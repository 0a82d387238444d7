"""Records of what an export was made of, and the line that says that its training has gone on."""

from types import SimpleNamespace

import numpy as np
import pytest

from t2t_revival.checkpoints import file
from t2t_revival.checkpoints.directory import file_name, list_checkpoints
from t2t_revival.serving.export_origin import FILE_NAME, newer_note, save_origin


@pytest.fixture
def exported(tmp_path):
    """An output_dir with a checkpoint of step 4, and an export of it."""
    out, version = tmp_path / "out", tmp_path / "export" / "1"
    out.mkdir()
    version.mkdir(parents=True)
    (out / "run.json").write_text("{}")
    save(out, 4)
    save_origin(SimpleNamespace(checkpoint=list_checkpoints(out)[-1], more_checkpoints=()), version)
    return out, version


def save(out, step):
    file.save(out / file_name(step), {"model/weight": np.full(3, step, np.float32)}, {"step": step})


def test_a_training_that_has_gone_on_is_noted(exported):
    out, version = exported
    assert newer_note(version) == ""
    save(out, 6)
    assert newer_note(version) == (
        f"note: {version} was exported at step 4 of {out}, which is at step 6 now: export it again with "
        "t2t-exporter for the newer weights"
    )


def test_without_the_training_or_the_record_nothing_is_said(exported):
    out, version = exported
    out.rename(out.with_name("elsewhere"))
    assert newer_note(version) == ""
    (version / FILE_NAME).write_text("corrupt")
    assert newer_note(version) == ""
    (version / FILE_NAME).unlink()
    assert newer_note(version) == ""
    save_origin(SimpleNamespace(checkpoint=None), version)
    assert not (version / FILE_NAME).exists()

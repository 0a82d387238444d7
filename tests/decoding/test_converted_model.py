"""A conversion that fails; tests/decoding/test_ctranslate2_engine.py has those that succeed."""

import errno

import pytest

from t2t_revival import T2TError
from t2t_revival.decoding.converted_model import FOLDER, open_converted


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            r"^cannot write a temporary folder: No space left on device; .*TMPDIR",
        ),
        (T2TError("no"), "^no$"),
    ],
)
def test_it_is_named_and_leaves_nothing(error, message, tmp_path):
    def convert(folder):
        folder.mkdir()
        raise error

    with pytest.raises(T2TError, match=message):
        open_converted(
            tmp_path / "model.ckpt-7.npz", {"weights": "1a2b3c4d"}, convert, str, lambda note: None
        )
    assert not list((tmp_path / FOLDER).iterdir())

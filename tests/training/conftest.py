"""Fixtures of the tests of training."""

from pathlib import Path

import pytest

from tests.support import copy_task


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A copy task."""
    return copy_task.write_shards(tmp_path_factory.mktemp("copy"), shards=2, examples=300)

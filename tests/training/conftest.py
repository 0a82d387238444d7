"""Fixtures of the tests of training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import copy_shards, copy_task


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A copy task."""
    return copy_shards.write_shards(tmp_path_factory.mktemp("copy"), shards=2, examples=300)


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy task in one file."""
    return copy_shards.write_shards(tmp_path_factory.mktemp("copy"), shards=1, examples=300)[0]


@pytest.fixture(scope="module")
def models() -> Iterator[dict[Any, Any]]:
    """Models that trainings of a module share; see `shared_models`."""
    with copy_task.shared_models() as models:
        yield models

"""Memory of steps under JAX, and the largest batch that fits, by the compiler's estimate."""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.support.backend_process import run_with_backend

pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.timeout(1200),  # `big` is compiled, by one core
    pytest.mark.skipif(not find_spec("jax"), reason="needs JAX"),
]

ROOT = Path(__file__).parents[3]
TOKENS = 6000  # of an update
BIG = 210_000_000  # weights of `big`, about; each has a gradient and two moments, and one sum of gradients


@pytest.fixture(scope="module")
def answer() -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.check_jax_memory"]
    own = {"PYTHONPATH": os.fspath(ROOT), "JAX_ENABLE_COMPILATION_CACHE": "false"}
    done = run_with_backend(command, "jax", **own)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("size", "micro_batches"), [(1024, 6), (2048, 3), (4096, 2), (6000, 1)])
def test_the_largest_batch_that_fits_is_taken(answer: dict[str, Any], size: int, micro_batches: int) -> None:
    """90% of the memory hold a step of that size, and of no larger one; equal parts make up an update."""
    assert answer["fits"][str(size)] == [TOKENS // micro_batches, TOKENS, micro_batches]


def test_larger_batches_need_more(answer: dict[str, Any]) -> None:
    needed = list(answer["needed"].values())
    assert needed == sorted(needed)
    assert needed[-1] > 1.5 * needed[0]


def test_where_nothing_fits_the_way_out_is_named(answer: dict[str, Any]) -> None:
    assert answer["too small"].startswith("batch_size=auto: a batch of 1,024 tokens needs more than")
    assert "--precision=mixed_bfloat16" in answer["too small"]


def test_with_plenty_of_memory_an_update_is_one_batch(answer: dict[str, Any]) -> None:
    assert answer["plenty"] == [TOKENS, TOKENS, 1]
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert answer["machine"] == pages


def test_big_is_compiled_at_full_size(answer: dict[str, Any]) -> None:
    """Without computing anything: at least weights, gradients and moments, and less than a large GPU has."""
    assert 4 * 4 * BIG < answer["big"] < 40e9

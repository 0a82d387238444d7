"""Batches of lines of several requests."""

import asyncio

import pytest

from t2t_revival import T2TError
from t2t_revival.addons.server.batching import Batcher, BatchLimits, QueueFullError
from t2t_revival.addons.server.metrics import Metrics
from t2t_revival.serving.signatures import DEFAULT, WITH_OPTIONS


def run(limits, scenario):
    """Runs `scenario(batcher)` with a batcher."""

    async def main():
        async with Batcher(limits, Metrics()) as batcher:
            return await scenario(batcher)

    return asyncio.run(main())


def texts(found):
    return [row[0].decode() for row in found["outputs"]]


async def begin(batcher, model, lines, **options):
    """Begins a request; returns its task when its lines are in the queue."""
    columns = {"inputs": lines, **{name: [value] * len(lines) for name, value in options.items()}}
    before = batcher.lines
    task = asyncio.create_task(batcher.translate(model, WITH_OPTIONS if options else DEFAULT, columns))
    while batcher.lines == before and not task.done():
        await asyncio.sleep(0)
    return task


async def until(condition):
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never became true")


async def keep_busy(batcher, model, **options):
    """Begins a request of one line, for which the model works until its gate is set."""
    model.gate.clear()
    task = await begin(batcher, model, ["a"], **options)
    await until(lambda: model.batches)
    return task


ONE = BatchLimits(parallel=1)


def test_lines_come_back_in_their_order(capitals):
    lines = [f"{'x' * (n % 7)} {n}" for n in range(100)]
    found = run(
        BatchLimits(max_lines=8), lambda batcher: batcher.translate(capitals, DEFAULT, {"inputs": lines})
    )
    assert texts(found) == [line.upper() for line in lines]
    assert max(map(len, capitals.batches)) == 8


def test_the_oldest_line_is_first_and_lines_of_its_length_are_with_it(capitals):
    async def scenario(batcher):
        first = await keep_busy(batcher, capitals)
        rest = await begin(
            batcher, capitals, ["four", "a very long line of text", "five5", "7777777", "six666"]
        )
        capitals.gate.set()
        await first
        return texts(await rest)

    run(BatchLimits(max_lines=3, parallel=1), scenario)
    assert capitals.batches[1:] == [["four", "five5", "six666"], ["7777777", "a very long line of text"]]


def test_a_batch_holds_as_many_characters_as_it_may(capitals):
    lines = ["x" * 60, "y" * 50, "z" * 10]
    run(
        BatchLimits(max_characters=120, parallel=1),
        lambda b: b.translate(capitals, DEFAULT, {"inputs": lines}),
    )
    assert [*map(len, capitals.batches)] == [2, 1]
    capitals.batches.clear()
    lines = ["x" * 500]
    run(BatchLimits(max_characters=120), lambda b: b.translate(capitals, DEFAULT, {"inputs": lines}))
    assert capitals.batches == [lines]


def test_options_are_those_of_the_line_and_answers_as_wide_as_alone(capitals):
    async def scenario(batcher):
        first = await keep_busy(batcher, capitals, n=1)
        narrow, wide = await begin(batcher, capitals, ["b"], n=1), await begin(batcher, capitals, ["c"], n=3)
        plain = await begin(batcher, capitals, ["d"])
        capitals.gate.set()
        return [(await task)["outputs"] for task in (first, narrow, wide, plain)]

    assert run(ONE, scenario) == [[[b"A"]], [[b"B"]], [[b"C", b"?", b"??"]], [[b"D"]]]
    assert capitals.batches == [["a"], ["b", "c"], ["d"]]  # another signature is another batch


def test_a_faulty_request_fails_alone(capitals):
    async def scenario(batcher):
        first = await keep_busy(batcher, capitals)
        tasks = [await begin(batcher, capitals, lines) for lines in (["b"], ["fault", "c"], ["d"])]
        capitals.gate.set()
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    before, fault, after = run(ONE, scenario)
    assert texts(before) == ["B"]
    assert texts(after) == ["D"]
    assert isinstance(fault, T2TError)
    assert str(fault) == "capitals: a fault"


def test_lines_of_a_cancelled_request_leave_the_queue(capitals):
    async def scenario(batcher):
        first = await keep_busy(batcher, capitals)
        gone, stays = await begin(batcher, capitals, ["b"] * 50), await begin(batcher, capitals, ["c"])
        assert batcher.requests(capitals) == 3
        gone.cancel()
        await until(lambda: batcher.lines == 2)
        capitals.gate.set()
        await asyncio.gather(first, stays)
        assert batcher.lines == 0 or await until(lambda: batcher.lines == 0) is None
        return batcher.requests(capitals)

    assert run(ONE, scenario) == 0
    assert capitals.batches == [["a"], ["c"]]


def test_a_full_queue(capitals):
    async def scenario(batcher):
        capitals.gate.clear()
        first = await begin(batcher, capitals, ["a"] * 3)
        with pytest.raises(QueueFullError, match="the queue has 3 of 4 lines"):
            await batcher.translate(capitals, DEFAULT, {"inputs": ["b", "c"]})
        last = await begin(batcher, capitals, ["d"])
        capitals.gate.set()
        return texts(await first) + texts(await last)

    assert run(BatchLimits(max_queue=4, parallel=1), scenario) == ["A", "A", "A", "D"]


def test_a_line_waits_for_others_only_while_the_model_is_busy(capitals):
    limits = BatchLimits(max_wait=5, parallel=2)

    async def scenario(batcher):
        loop = asyncio.get_running_loop()
        started = loop.time()
        await batcher.translate(capitals, DEFAULT, {"inputs": ["alone"]})
        alone = loop.time() - started
        capitals.gate.clear()
        first = await begin(batcher, capitals, ["a"])
        await until(lambda: len(capitals.batches) == 2)
        second, third = await begin(batcher, capitals, ["b"]), await begin(batcher, capitals, ["c"])
        await asyncio.sleep(0.05)
        waiting = len(capitals.batches) == 2
        capitals.gate.set()
        await asyncio.gather(first, second, third)
        return alone, waiting

    alone, waiting = run(limits, scenario)
    assert alone < 1
    assert waiting
    assert capitals.batches[2] == ["b", "c"]

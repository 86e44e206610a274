import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable

import pytest

from redline.ops.stream import deferred_signals, drain, follow_callback


def test_reports_come_out_in_order() -> None:
    def work(report: Callable[[int], None]) -> None:
        for number in range(5):
            report(number)

    assert list(follow_callback(work)) == [0, 1, 2, 3, 4]


def test_an_error_of_the_work_is_raised_to_the_caller() -> None:
    def work(report: Callable[[int], None]) -> None:
        report(1)
        raise OSError("disk gone")

    source = follow_callback(work)
    assert next(source) == 1
    with pytest.raises(OSError, match="disk gone"):
        next(source)


def test_work_ends_when_nobody_listens_any_more() -> None:
    steps = []

    def work(report: Callable[[int], None]) -> None:
        for number in range(100_000):
            steps.append(number)
            report(number)
            time.sleep(0.001)

    source = follow_callback(work)
    assert next(source) == 0
    source.close()
    assert len(steps) < 1000


async def count(limit: int) -> AsyncIterator[int]:
    for number in range(limit):
        await asyncio.sleep(0)
        yield number


def test_an_asynchronous_sequence_is_drained_step_by_step() -> None:
    with asyncio.Runner() as runner:
        assert list(drain(runner, count(4))) == [0, 1, 2, 3]


def test_ctrl_c_waits_for_the_end_of_the_block_and_is_not_lost() -> None:
    after_the_signal = []

    def work() -> None:
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            after_the_signal.append("reached")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert after_the_signal == ["reached"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

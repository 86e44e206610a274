"""Turns asynchronous sequences and callbacks into plain sequences, so that operations read from top to bottom."""

import asyncio
import queue
import signal
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")

_END: Final = object()


def drain(runner: asyncio.Runner, source: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items of `source`, run step by step on `runner`; Ctrl-C stops the step that is under way."""
    while True:
        item = runner.run(_next(source))
        if item is _END:
            return
        yield item  # type: ignore[misc]


async def _next(source: AsyncIterator[T]) -> T | object:
    return await anext(source, _END)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Hold back Ctrl-C and SIGTERM until the block is over; then they take effect.

    For the moment between starting a process and having it on record. Does nothing outside the main thread, where
    Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    earlier = {number: signal.signal(number, lambda got, _frame: caught.append(got)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if caught:
        signal.raise_signal(signal.Signals(caught[0]))


class _Cancelled(Exception):  # noqa: N818 -- it reports no error
    """Ends the worker at its next report, because nobody listens any more."""


def follow_callback(work: Callable[[Callable[[T], None]], object]) -> Generator[T, None, None]:
    """Run `work` in a thread and yield what it reports; its error is raised here.

    When the caller stops listening (Ctrl-C), the work ends at its next report, and only then is control given back.
    """
    reports: queue.SimpleQueue[T | BaseException | object] = queue.SimpleQueue()
    cancelled = threading.Event()

    def report(item: T) -> None:
        if cancelled.is_set():
            raise _Cancelled
        reports.put(item)

    def run() -> None:
        try:
            work(report)
        except _Cancelled:
            pass
        except BaseException as error:
            reports.put(error)
        finally:
            reports.put(_END)

    thread = threading.Thread(target=run, name="redline-work")
    thread.start()
    try:
        while (item := reports.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item  # type: ignore[misc]
    finally:
        cancelled.set()
        thread.join()

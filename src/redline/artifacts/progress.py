"""What a long file operation says while it runs, and how fast it goes."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_WINDOW_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class FileProgress:
    """Bytes done of a step; `total_bytes` is None while it is unknown, `rate_bytes_s` until there is a rate."""

    artifact: str
    step: str
    done_bytes: int
    total_bytes: int | None
    rate_bytes_s: float | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds until the step is done at the present rate, or None where nobody can say."""
        if not self.rate_bytes_s or self.total_bytes is None:
            return None
        return max(0, self.total_bytes - self.done_bytes) / self.rate_bytes_s


Report = Callable[[FileProgress], None]


def ignore(_progress: FileProgress) -> None:
    """Report nothing."""


class Meter:
    """The rate of a transfer over its last ten seconds; bytes that were there before it began do not count."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, done_bytes: int) -> float | None:
        """Take a reading and return bytes a second, or None before a tenth of a second has passed."""
        now = self._clock()
        if self._seen and done_bytes < self._seen[-1][1]:
            self._seen.clear()  # a file began anew
        self._seen.append((now, done_bytes))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _WINDOW_S:
            self._seen.popleft()
        (began, first), (ended, last) = self._seen[0], self._seen[-1]
        return (last - first) / (ended - began) if ended - began >= 0.1 else None

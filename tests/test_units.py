import pytest

from redline.units import format_bytes, format_gib, format_seconds


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (9_960, "10 kB"), (77_571_136, "78 MB"), (1_200_000_000, "1.2 GB"),
     (999_999, "1.0 MB"), (5 * 10**15, "5000 TB")],
)  # fmt: skip
def test_bytes_are_in_the_units_disks_are_sold_in(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_memory_is_in_binary_units() -> None:
    assert format_gib(24 * 2**30) == "24.0 GiB"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.94, "0.9 s"), (9.99, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"),
     (273_600, "3 d 4 h")],
)  # fmt: skip
def test_durations_are_read_at_a_glance(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text

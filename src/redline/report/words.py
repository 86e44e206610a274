"""Numbers and lists as a reader takes them in. Plain text; renderers escape it for their own form."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from redline.stats.interval import Estimate
from redline.units import GIB, format_gib

_GPU_FACT: Final = re.compile(r"(.+?) (\d{6,})")


def join(words: Iterable[str], last: str = "and") -> str:
    """Return a list in prose: 'a', 'a and b', 'a, b and c'."""
    items = list(words)
    return f"{', '.join(items[:-1])} {last} {items[-1]}" if len(items) > 1 else "".join(items)


def count(number: int, word: str, plural: str | None = None) -> str:
    """Return a number with its word: '1 check', '3 checks'."""
    return f"{number} {word if number == 1 else plural or word + 's'}"


def capital(words: str) -> str:
    """Return words as a sentence begins; abbreviations keep their letters."""
    return words[:1].upper() + words[1:]


def rate(value: float) -> str:
    """Return a rate with three significant digits: '231', '84.1', '3.72'."""
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def seconds(value: float) -> str:
    """Return a short duration: '72 ms', '0.21 s', '5.7 s', '43 s'."""
    if value < 0.0995:
        return f"{value * 1000:.0f} ms"
    return f"{value:.2f} s" if value < 0.995 else f"{value:.1f} s" if value < 9.95 else f"{value:.0f} s"


def spread(estimate: Estimate) -> str:
    """Return the interval after a mean: ' (82.0 to 86.2)'; nothing where one value gives none."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f" ({rate(max(0.0, estimate.low))} to {rate(estimate.high)})"


def relative_width(estimate: Estimate | None) -> float | None:
    """Return half the interval over the mean; None where there is no interval."""
    if estimate is None or estimate.half_width is None or not estimate.mean:
        return None
    return estimate.half_width / estimate.mean


def percent(share: float) -> str:
    """Return a share: '0.4 %', '12 %'."""
    return f"{share * 100:.1f} %" if share < 0.0995 else f"{share * 100:.0f} %"


def tokens(number: int) -> str:
    """Return a context length: '8,192'."""
    return f"{number:,}"


def short_tokens(number: int) -> str:
    """Return a context length as tables and axes write it: 8192 is '8K', 262144 '262K', 200000 '200K'."""
    if number >= 1000:
        return f"{number / 1024:.0f}K" if number % 1024 == 0 and number < 131_072 else f"{number / 1000:.0f}K"
    return str(number)


def day(timestamp: str) -> str:
    """Return the day of an ISO time: '29 November 2026'; the text itself where it is none."""
    moment = parse_time(timestamp)
    return f"{moment.day} {moment:%B %Y}" if moment else timestamp


def clock(timestamp: str) -> str:
    """Return an ISO time as '2026-11-29 19:52 UTC'; the text itself where it is none."""
    moment = parse_time(timestamp)
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC") if moment else timestamp


def parse_time(timestamp: str) -> datetime | None:
    """Return an ISO time, UTC where it names no zone; None where it is none."""
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def rig_words(rig: Any) -> str:
    """Return the rig of a manifest in a phrase: '2 CPUs (Intel Xeon), 24 GiB of memory, no GPU'."""
    gpus = gpu_words(rig.get("gpus"))
    number = rig.get("cpus")
    known = isinstance(number, int) and number > 0  # what others hand in may say anything
    cpus = f"{count(number, 'CPU')} ({cpu_name(rig.get('cpu_model'))})" if known else ""
    memory = f"{rig['memory_gib']} GiB of memory" if rig.get("memory_gib") else ""
    parts = [gpus or "no GPU", cpus, memory] if gpus else [cpus, memory, "no GPU" if cpus else ""]
    system = "WSL2" if rig.get("wsl") else ""
    return ", ".join(part for part in (*parts, system) if part) or "a rig that was not recorded"


def gpu_words(text: Any) -> str:
    """Return the GPUs of a fingerprint, 'NAME BYTES, NAME BYTES', as '2x NAME (24 GiB)'; '' for none."""
    names: list[str] = []
    for part in str(text or "").split(", "):
        found = _GPU_FACT.fullmatch(part)
        if found:
            names.append(
                f"{found[1].removeprefix('NVIDIA ').removeprefix('GeForce ')} ({round(int(found[2]) / GIB)} GiB)"
            )
        elif part:
            names.append(part)
    return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))


def cpu_name(text: Any) -> str:
    """Return a processor's name without trademark signs."""
    return re.sub(r"\s+", " ", re.sub(r"\((?:R|TM)\)|\bCPU\b|@.*", "", str(text or "unknown"))).strip()


def memory(size_bytes: int) -> str:
    """Return memory: '390 MiB' below one GiB, else '23.4 GiB'."""
    return f"{size_bytes / 2**20:.0f} MiB" if size_bytes < GIB else format_gib(size_bytes)


def most(items: Sequence[str], shown: int) -> str:
    """Return the first items and how many more there are: 'a, b and 3 more'."""
    if len(items) <= shown:
        return join(items)
    return f"{', '.join(items[:shown])} and {len(items) - shown} more"

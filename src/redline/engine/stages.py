"""The stages of a boot as data: `data/stages.yaml`, by engine and version. Knows no process and no time."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.engine.launch_plan import StagePattern

_DATA: Final = Path(__file__).parent / "data" / "stages.yaml"


@cache
def _load() -> dict[str, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loaded: dict[str, Any] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return loaded


def stages_of(engine: str, version: str | None = None) -> tuple[StagePattern, ...]:
    """Return what an engine's log says about its boot, in order; of the newest known version when none is given.

    An engine that is not known has no stages: its boot is only starting, and then ready.
    """
    ranges = _load().get(engine, [])
    reached = [entry for entry in ranges if version is None or _parts(entry["from_version"]) <= _parts(version)]
    if not reached:
        return ()
    return tuple(
        StagePattern(stage=item["stage"], text=item["text"], progress=item.get("progress", ""))
        for item in reached[-1]["stages"]
    )


def _parts(version: str) -> tuple[int, ...]:
    """Return a version's leading numbers; a build name such as `b11549` is its number."""
    numbers = []
    for part in version.lstrip("vb").split("."):
        digits = "".join(character for character in part if character.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)

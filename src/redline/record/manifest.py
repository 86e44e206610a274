"""What a run was made with: enough to say whether two runs may be compared, and what differs when they may not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

MANIFEST_SCHEMA: Final = 1

# Raised when a measured quantity changes its meaning; runs of different numbers are not comparable.
DEFINITIONS_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class FieldRecord:
    """One resolved field of the tier, with the origin that set it."""

    value: str | int | float | bool | None
    origin: str


@dataclass(frozen=True, slots=True)
class RunManifest:
    """The conditions of a run. `slug` is None for an endpoint that redline did not start."""

    schema_version: int
    run_id: str
    command: str
    started_at: str
    redline_version: str
    definitions_version: int
    url: str | None
    slug: str | None = None
    server_id: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    driver_version: str | None = None
    argv: tuple[str, ...] = ()
    resolved: Mapping[str, FieldRecord] = field(default_factory=dict)
    artifacts: Mapping[str, str] = field(default_factory=dict)
    rig: Mapping[str, str | int | None] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    seeds: Mapping[str, int] = field(default_factory=dict)

"""A second server of the same tier that drafts nothing, beside the one under proof and only for as long.

Made from the settings that the first one was started with, its depth 0 and its port a free one.
"""

import socket
from collections.abc import Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from redline.catalog.fields import TIER_FIELDS
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.launch.state import ServerRecord
from redline.ops.events import Event, RunSaved
from redline.ops.prepare import UpRequest
from redline.ops.server_events import Started
from redline.ops.up import up
from redline.settings import Layers, Settings, Sourced

_USER: Final = ("cli:", "env:", ".env:", "config:")


def settings_of(settings: Settings, conditions: Mapping[str, Any], **knobs: str) -> Settings:
    """Return settings under which a tier resolves as it did for a server, but for the knobs that are given."""
    found: dict[str, Sourced[str]] = {}
    for name, row in (conditions.get("resolved") or {}).items():
        spec = TIER_FIELDS.get(name)
        if spec and spec.knob and str(row["origin"]).startswith(_USER) and row["value"] is not None:
            found[spec.knob] = Sourced(str(row["value"]), str(row["origin"]))
    found |= {name: Sourced(value, f"cli:{name}") for name, value in knobs.items()}
    kept = {name: value for name, value in settings.layers.environ.items() if name not in _tier_names()}
    layers = Layers(cli=found, environ=kept, dotenv={}, config=settings.layers.config)
    return replace(settings, layers=layers)


def _tier_names() -> frozenset[str]:
    return frozenset(word for spec in TIER_FIELDS.values() if spec.knob for word in (spec.knob, *spec.aliases))


def free_port() -> int:
    """Return a port of this machine that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_reference(
    catalog: Catalog, settings: Settings, slug: str | None, conditions: Mapping[str, Any]
) -> Generator[Event, None, tuple[Path, ServerRecord]]:
    """Yield the steps of starting the reference beside its tier, and return its folder and record.

    Raises:
        UsageError: the server is none of redline's.
        GuardRefusal: there is no room for both.
        EngineStartError: it did not come up.
    """
    if slug is None:
        raise UsageError(
            "--reference starts a second server of the tier, and this server was not started by redline.",
            next_step="Serve the same weights without drafting yourself, and give --reference-url.",
        )
    plain = settings_of(settings, conditions, SPEC_N="0", PORT=str(free_port()))
    started: ServerRecord | None = None
    for event in up(catalog, plain, UpRequest(slug=slug, beside=True, measure=False)):
        if isinstance(event, Started):
            started = event.server
        if not isinstance(event, RunSaved):
            yield event
    assert started is not None, "a free port has no server that could be rejoined"
    return settings.servers_dir / started.server_id, started

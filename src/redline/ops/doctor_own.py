"""What is redline's own, for `doctor`: folders and disk, settings and tokens, ports, the catalogue, servers."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.errors import RedlineError
from redline.launch.server import running_servers
from redline.launch.state import scan_servers
from redline.launch.stop import find_orphans
from redline.ops.health import Diagnosis, Health
from redline.rig.ports import find_port_holder
from redline.settings import Layers, Settings
from redline.units import format_bytes

_LITTLE_BYTES: Final = 500_000_000
_SHORT_TOKEN: Final = 30


def look_at_own(settings: Settings) -> Iterator[Diagnosis]:
    """Yield what is found of redline's own things."""
    yield _models_dir(settings.models_dir)
    yield _state_dir(settings.state_dir)
    yield from _secrets(settings)
    try:
        catalog = load_catalog(settings.user_catalog_dir)
    except RedlineError as error:
        yield Diagnosis("catalogue", Health.BAD, "; ".join(error.details) or error.message, error.next_step or "")
        return
    words = f"{len(catalog.tiers)} tiers of {len(catalog.models)} model(s)"
    yield Diagnosis("catalogue", Health.OK, words)
    yield from _servers(settings)
    yield from _ports(catalog, settings)


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _models_dir(path: Path) -> Diagnosis:
    there = _existing(path)
    if not there.is_dir() or not os.access(there, os.W_OK):
        return Diagnosis("models", Health.BAD, f"{path} cannot be written", "Set MODEL_DIR to a folder you can write.")
    free = shutil.disk_usage(there).free
    words = f"{path}, {format_bytes(free)} free"
    if free < _LITTLE_BYTES:
        return Diagnosis("models", Health.WARN, words, "Free some space, or set MODEL_DIR to another disk.")
    if str(there).startswith("/mnt/") and len(there.parts) > 2 and len(there.parts[2]) == 1:
        fix = "Keep models inside WSL2's own disk: reading through /mnt takes minutes longer."
        return Diagnosis("models", Health.WARN, f"{words}, on a disk of Windows", fix)
    return Diagnosis("models", Health.OK, words)


def _state_dir(path: Path) -> Diagnosis:
    there = _existing(path)
    if not there.is_dir() or not os.access(there, os.W_OK):
        fix = "Set XDG_STATE_HOME to a folder you can write."
        return Diagnosis("state", Health.BAD, f"{path} cannot be written", fix)
    free = shutil.disk_usage(there).free
    if free < _LITTLE_BYTES:
        return Diagnosis(
            "state", Health.WARN, f"{path}, {format_bytes(free)} free", "Logs and records will be lost: free some."
        )
    return Diagnosis("state", Health.OK, f"{path}, {format_bytes(free)} free")


def _secrets(settings: Settings) -> Iterator[Diagnosis]:
    path = settings.config_file
    secret = any(name in settings.layers.config for name in ("hf_token", "redline_api_key"))
    if not path.exists():
        yield Diagnosis("config", Health.OK, f"no {path}; defaults are used")
    elif secret and path.stat().st_mode & 0o077:
        yield Diagnosis("config", Health.BAD, f"{path} holds a secret and others may read it", f"chmod 600 {path}")
    else:
        yield Diagnosis("config", Health.OK, str(path))
    token = settings.layers.get("HF_TOKEN")
    if token is None:
        yield Diagnosis(
            "token", Health.OK, "no HF_TOKEN; only gated repositories need one: redline config set HF_TOKEN"
        )
    elif not token.value.startswith("hf_") or len(token.value) < _SHORT_TOKEN:
        fix = "Copy it again from the hub's settings, then: redline config set HF_TOKEN"
        yield Diagnosis("token", Health.WARN, f"HF_TOKEN ({token.origin}) does not look like one", fix)
    else:
        yield Diagnosis("token", Health.OK, f"HF_TOKEN is set ({token.origin})")


def _servers(settings: Settings) -> Iterator[Diagnosis]:
    for _, record in running_servers(settings.servers_dir):
        words = f"{record.slug} {record.state.value} at {record.url}"
        if record.lost_log_bytes:
            fix = "Free space on the disk of the state folder."
            yield Diagnosis("server", Health.WARN, f"{words}; {record.lost_log_bytes} bytes of its log were lost", fix)
        else:
            yield Diagnosis("server", Health.OK, words)
    for orphan in find_orphans(settings.servers_dir):
        words = f"{orphan.describe()} of {orphan.record.slug} outlived its supervisor"
        yield Diagnosis("server", Health.BAD, words, f"redline down {orphan.record.server_id}")
    for item in scan_servers(settings.servers_dir)[1]:
        fix = f"Nothing uses it; remove it when you do not need it: rm -r {item.folder}"
        yield Diagnosis("server", Health.WARN, f"{item.folder} is left out: {item.why}", fix)


def _ports(catalog: Catalog, settings: Settings) -> Iterator[Diagnosis]:
    own = {record.port for _, record in running_servers(settings.servers_dir)}
    own |= {orphan.record.port for orphan in find_orphans(settings.servers_dir)}
    ports = {resolve(catalog, slug, Layers()).port.value: slug for slug in catalog.tiers}
    taken = []
    for port, slug in sorted(ports.items()):
        if port not in own and (holder := find_port_holder("127.0.0.1", port)) is not None:
            taken.append((port, slug, holder.describe()))
    for port, slug, who in taken:
        fix = f"Stop that program, or serve the tier elsewhere: redline up {slug} --port N"
        yield Diagnosis("ports", Health.WARN, f"{port}, the port of {slug}, is held by {who}", fix)
    if not taken:
        yield Diagnosis("ports", Health.OK, f"all {len(ports)} ports of the tiers are free or ours")

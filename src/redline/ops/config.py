"""The config file: what stands in it, and changing it. Secrets go in and never come out."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redline.errors import UsageError
from redline.record.files import make_dir, write_atomic
from redline.settings import SETTINGS_KNOBS, Layers, Settings, Sourced, parse_config


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting and where its value comes from. `value` is None where it has its default, and for every secret."""

    name: str
    doc: str
    secret: bool
    value: str | None
    origin: str | None


def known_settings() -> dict[str, tuple[str, bool]]:
    """Return name -> meaning and whether it is secret, of everything a config file may hold."""
    from redline.catalog.fields import TIER_FIELDS

    found = {knob.name: (knob.doc, knob.secret) for knob in SETTINGS_KNOBS}
    for spec in TIER_FIELDS.values():
        for name in (spec.knob, *spec.aliases) if spec.knob is not None else ():
            found.setdefault(name, (spec.doc, False))
    return found


def list_settings(settings: Settings, *, everything: bool) -> tuple[SettingRow, ...]:
    """Return the settings that have a value, or all; each with the layer that gave it."""
    rows = []
    for name, (doc, secret) in known_settings().items():
        found = settings.layers.get(name)
        if found is None and not everything:
            continue
        shown = None if found is None or secret else found.value
        rows.append(SettingRow(name, doc, secret, shown, found.origin if found else None))
    return tuple(rows)


def is_secret(name: str) -> bool:
    """Whether a setting is secret.

    Raises:
        UsageError: there is no such setting; names near ones.
    """
    known = known_settings()
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=3)
        raise UsageError(
            f"There is no setting {name}.",
            next_step=f"Nearest: {', '.join(near)}." if near else f"Names: {', '.join(sorted(known))}.",
        )
    return known[name][1]


def set_value(settings: Settings, name: str, value: str | None) -> Path:
    """Write a setting into the config file, or take it out with None, and return the file.

    Raises:
        UsageError: no such setting, or a value it cannot have.
        AccessError, DiskSpaceError: the file cannot be written.
    """
    import tomli_w

    is_secret(name)
    if value is not None:
        _check(name, value)
    path = settings.config_file
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        data = {}
    # The same spelling in any case is the same setting; the file's keys are in lower case.
    data = {key: item for key, item in data.items() if key.lower() != name.lower()}
    if value is not None:
        data[name.lower()] = value
    text = tomli_w.dumps(data)
    parse_config(text, str(path))
    make_dir(path.parent)
    write_atomic(path, text, mode=0o600)
    return path


def _check(name: str, value: str) -> None:
    from redline.catalog.fields import TIER_FIELDS
    from redline.catalog.knobs import read_override

    if not value.strip():
        raise UsageError(f"{name} cannot be empty.", next_step=f"`redline config unset {name}` takes it out.")
    for spec in TIER_FIELDS.values():
        if name in (spec.knob, *spec.aliases):
            read_override(spec, Layers(cli={name: Sourced(value, "cli:config set")}))

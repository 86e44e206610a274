"""The published JSON Schema: imports every room, so that each has declared its payloads, and renders the files."""

import importlib
import json
import pkgutil
from collections.abc import Mapping
from typing import Final

import redline
from redline.record.schema import schema_files

# Front ends declare no payloads; `redline.__main__` runs the command line on import.
_NOT_ROOMS: Final = ("redline.cli", "redline.cockpit", "redline.fake", "redline.__main__")


def published_schemas() -> Mapping[str, str]:
    """Return file name -> text of `docs/schema/`, the same on every machine."""
    for module in pkgutil.walk_packages(redline.__path__, "redline."):
        if not module.name.startswith(_NOT_ROOMS):
            importlib.import_module(module.name)
    return {name: json.dumps(schema, indent=2) + "\n" for name, schema in schema_files().items()}

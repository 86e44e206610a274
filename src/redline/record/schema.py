"""The JSON Schema of manifests and events, made from the dataclasses that write them."""

from collections.abc import Mapping
from typing import Any, Final

from redline.record.codec import adapter
from redline.record.event import EVENT_SCHEMA, registered_kinds
from redline.record.manifest import MANIFEST_SCHEMA, RunManifest

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_files() -> Mapping[str, Any]:
    """Return file name -> schema. What is published covers the payloads of the modules that are imported."""
    return {
        f"manifest.v{MANIFEST_SCHEMA}.json": _manifest(),
        f"event.v{EVENT_SCHEMA}.json": _event(),
    }


def _manifest() -> dict[str, Any]:
    schema: dict[str, Any] = adapter(RunManifest).json_schema(schema_generator=_generator())
    schema["properties"]["schema_version"] = {"const": MANIFEST_SCHEMA}
    return {"$schema": _DIALECT, **schema, "title": "manifest.json of a run"}


def _event() -> dict[str, Any]:
    """Return the schema of one line of `events.jsonl`: the envelope, and a branch for each kind of payload."""
    from pydantic import TypeAdapter

    # Payloads of tests and plug-ins share the register; what is published is redline's own.
    own = {kind: found for kind, found in registered_kinds().items() if found[0].__module__.startswith("redline.")}
    kinds = dict(sorted(own.items()))
    refs, definitions = TypeAdapter.json_schemas(
        [(kind, "validation", adapter(cls)) for kind, (cls, _) in kinds.items()], schema_generator=_generator()
    )
    branches = [
        {
            "properties": {
                "kind": {"const": kind},
                "payload_version": {"const": version},
                "payload": refs[(kind, "validation")],
            }
        }
        for kind, (_, version) in kinds.items()
    ]
    return {
        "$schema": _DIALECT,
        "title": "one line of events.jsonl",
        "type": "object",
        "properties": {
            "schema_version": {"const": EVENT_SCHEMA},
            "seq": {"type": "integer", "minimum": 0, "description": "Position in the file, from 0."},
            "time": {"type": "string", "format": "date-time", "description": "Wall clock, UTC."},
            "mono_ns": {"type": "integer", "description": "Monotonic clock of the machine, nanoseconds."},
            "kind": {"enum": list(kinds)},
            "payload_version": {"type": "integer", "minimum": 1},
            "payload": {"type": "object"},
        },
        "required": ["schema_version", "seq", "time", "mono_ns", "kind", "payload_version", "payload"],
        "additionalProperties": False,
        "oneOf": branches,
        **definitions,
    }


def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Leaves out the titles that only repeat a field's name."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return Untitled

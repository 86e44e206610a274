"""What differs between two manifests, and in which respect."""

from typing import Any

import pytest

from redline.record.differences import Respect, differences
from redline.record.manifest import FieldRecord, RunManifest


def manifest(**fields: Any) -> RunManifest:
    base: dict[str, Any] = {
        "run_id": "r",
        "command": "bench",
        "started_at": "2026-11-29T00:00:00+00:00",
        "redline_version": "0.1.0",
        "definitions_version": 1,
        "url": "http://127.0.0.1:8120",
        "slug": "llamacpp/x-cpu-fast",
        "engine": "llamacpp",
        "engine_version": "1",
        "rig": {"cpus": 2, "digest": "a"},
        "argv": ("python", "--ctx", "8192", "--port", "8120"),
        "resolved": {"spec_n": FieldRecord(0, "rule:none"), "port": FieldRecord(8120, "rule:port")},
    }
    return RunManifest(schema_version=1, **(base | fields))


def found(**fields: Any) -> list[tuple[Respect, str, str | None, str | None]]:
    return [(item.respect, item.field, item.a, item.b) for item in differences(manifest(), manifest(**fields))]


def test_a_repeat_differs_in_nothing() -> None:
    other = {
        "run_id": "other",
        "command": "up",
        "started_at": "2027-01-01T00:00:00+00:00",
        "url": "http://127.0.0.1:9999",
        "server_id": "s",
        "argv": ("/elsewhere/python", "--ctx", "8192", "--port", "9999"),
        "resolved": {"spec_n": FieldRecord(0, "cli:--spec-n"), "port": FieldRecord(9999, "cli:--port")},
    }
    assert found(**other) == []


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"definitions_version": 2}, (Respect.MEANING, "definitions", "1", "2")),
        ({"seeds": {"prompts": 1}}, (Respect.WORKLOAD, "seed prompts", None, "1")),
        ({"rig": {"cpus": 8, "digest": "b"}}, (Respect.RIG, "cpus", "2", "8")),
        ({"engine_version": "2"}, (Respect.ENGINE, "engine version", "1", "2")),
        ({"slug": "llamacpp/x-cpu-max"}, (Respect.TIER, "slug", "llamacpp/x-cpu-fast", "llamacpp/x-cpu-max")),
        ({"resolved": {"spec_n": FieldRecord(7, "r:x")}}, (Respect.TIER, "spec_n", "0", "7")),
        ({"overrides": ("--ignore-vram",)}, (Respect.TIER, "overrides", None, "--ignore-vram")),
        ({"redline_version": "0.2.0"}, (Respect.REDLINE, "redline", "0.1.0", "0.2.0")),
        ({"argv": ("python", "--ctx", "4096")}, (Respect.COMMAND_LINE, "--ctx", "8192", "4096")),
    ],
)
def test_each_respect(fields: dict[str, Any], expected: tuple[object, ...]) -> None:
    assert found(**fields) == [expected]


def test_another_engine_is_another_tier() -> None:
    assert {respect for respect, *_ in found(engine="vllm", engine_version="0.33.0")} == {Respect.TIER}


def test_what_one_side_does_not_know_is_no_difference() -> None:
    assert found(resolved={}, argv=()) == []

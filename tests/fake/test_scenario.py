"""Scenario files: all readable, all complete, each another fault."""

import dataclasses
from typing import Any

import pytest

from redline.fake.boot import boot_script, messages
from redline.fake.scenario import Scenario, load_scenario, scenario_names, with_settings
from redline.fake.typed_yaml import DataError, parse_typed

NAMES = scenario_names()


def _without_numbers(value: Any, usual: Any) -> Any:
    """Which values differ from a healthy engine's; of numbers only that they do."""
    if isinstance(value, dict):
        return {key: _without_numbers(item, (usual or {}).get(key)) for key, item in value.items()}
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return ("changed" if value != usual else "usual") if is_number else value


def test_there_are_scenarios_of_every_kind() -> None:
    kinds = {load_scenario(name).kind for name in NAMES}
    assert kinds == {"healthy", "start", "stop", "traffic", "transport"}
    starts = [name for name in NAMES if load_scenario(name).kind in ("start", "stop", "transport")]
    assert len(starts) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_a_scenario_says_what_it_is(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.title
    assert scenario.about.strip().endswith(".")
    assert scenario.expect.strip().endswith((".", ")"))
    assert scenario.fault


def test_no_two_scenarios_differ_in_a_number_only() -> None:
    seen: dict[str, str] = {}
    plain = dataclasses.asdict(Scenario(title="", about="", kind="healthy", fault="", expect=""))
    for name in NAMES:
        data = dataclasses.asdict(load_scenario(name))
        for words in ("title", "about", "expect", "fault", "kind", "sources", "dialects"):
            del data[words]
        key = repr(_without_numbers(data, plain))
        assert key not in seen, f"{name} plays the same as {seen.get(key)}, with other numbers"
        seen[key] = name


@pytest.mark.parametrize("name", NAMES)
def test_phases_and_messages_exist_for_every_dialect(name: str) -> None:
    scenario = load_scenario(name)
    for dialect in scenario.dialects:
        phases = {phase.name for phase in boot_script(dialect).phases}
        fault = scenario.boot.fault
        if fault is not None:
            assert fault.phase in phases
            assert not fault.message or messages(fault.message, dialect)
        if scenario.boot.slow_phase is not None:
            assert scenario.boot.slow_phase in phases
        if scenario.depth is not None and scenario.depth.message:
            assert messages(scenario.depth.message, dialect)


def test_every_log_line_names_its_source() -> None:
    for dialect in ("vllm", "llamacpp"):
        for phase in boot_script(dialect).phases:
            assert all(line.source for line in phase.lines)


def test_an_unknown_key_is_an_error_with_its_line() -> None:
    text = "title: x\nabout: y\nkind: start\nfault: z\nexpect: w\nspeed:\n  stepp_s: 1.0\n"
    with pytest.raises(DataError, match=r"test.yaml:7: speed: there is no key 'stepp_s'"):
        parse_typed(Scenario, text, "test.yaml")


def test_a_key_given_twice_is_an_error() -> None:
    with pytest.raises(DataError, match=r"test.yaml:2: key 'title' is given twice"):
        parse_typed(Scenario, "title: x\ntitle: y\n", "test.yaml")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("speed.step_s", "expected field=value"),
        ("speed.stride_s=1", "there is no field 'stride_s'"),
        ("speed.step_s=fast", "expected float"),
        ("depth.above_tokens=5", "this scenario has no depth"),
        ("wire.body=json", "expected one of"),
    ],
)
def test_a_setting_that_cannot_be_made(setting: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        with_settings(load_scenario("healthy"), [setting])


def test_a_setting_changes_one_value() -> None:
    changed = with_settings(load_scenario("healthy"), ["drafter.acceptance=0.25", "wire.body=html", "model.slots=9"])
    assert changed.drafter is not None
    assert (changed.drafter.acceptance, changed.drafter.depth) == (0.25, 3)
    assert (changed.wire.body, changed.model.slots) == ("html", 9)


def test_a_wrong_name_gets_near_ones() -> None:
    with pytest.raises(DataError, match="Nearest: healthy"):
        load_scenario("helthy")

"""What the command says about scenarios."""

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from redline.fake.command import main
from redline.fake.scenario import load_scenario, scenario_names


def test_the_list_names_every_scenario_by_kind(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["--list"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in scenario_names())
    assert text == snapshot


def test_a_description_says_what_differs(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert main(["slow-at-depth", "--describe"]) == 0
    assert capsys.readouterr().out == snapshot


def test_both_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(scenario_names())
    assert main(["oom-kv-pool", "--describe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["boot"]["fault"]["message"] == "oom_kv"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["healthy", "--set", "x=1"], ["missing.yaml"]])
def test_what_does_not_exist_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith("error")


def test_the_page_about_it_names_every_scenario() -> None:
    page = (Path(__file__).parents[2] / "docs" / "fake-engine.md").read_text(encoding="utf-8")
    for name in scenario_names():
        scenario = load_scenario(name)
        row = f"| `{name}` | {scenario.kind} | {scenario.title} | {', '.join(scenario.dialects)} | "
        assert row + " ".join(scenario.expect.split()) + " |" in page, f"docs/fake-engine.md is behind on {name}"

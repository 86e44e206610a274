"""What the command says about scenarios."""

import json

import pytest
from syrupy.assertion import SnapshotAssertion

from redline.fake.command import main
from redline.fake.scenario import scenario_names


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

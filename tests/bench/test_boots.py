"""Samples are told apart by the boot they were measured on."""

import pytest
from tests.report.records import make_record, sample

from redline.bench.boots import boot_id_of, boots_of, values_by_prompt
from redline.launch.outcome import ServerStarted
from redline.workload.prompts import PromptClass

PROSE = sample(PromptClass.PROSE, 0, 50.0)


def test_runs_against_one_server_are_one_boot() -> None:
    records = [
        make_record([PROSE], run_id=name, server_id=server) for name, server in (("a", "s"), ("b", "s"), ("c", "t"))
    ]
    assert [(boot.boot_id, len(boot.samples)) for boot in boots_of(records)] == [("s", 2), ("t", 1)]


def test_the_run_that_started_a_server_is_of_that_boot() -> None:
    started = ServerStarted(server_id="s", ready_s=1.0, memory_bytes=1)
    assert boot_id_of(make_record([started], server_id=None)) == "s"


def test_an_endpoint_is_one_boot_however_many_runs() -> None:
    records = [make_record([PROSE], run_id=name, server_id=None, slug=None) for name in "abc"]
    assert [boot.boot_id for boot in boots_of(records)] == ["unmanaged http://127.0.0.1:8120"]


def test_runs_without_samples_make_no_boot() -> None:
    assert boots_of([make_record()]) == ()


def test_values_are_by_prompt_and_of_one_regime() -> None:
    samples = [
        sample(PromptClass.PROSE, 0, 10.0),
        sample(PromptClass.PROSE, 0, 40.0),
        sample(PromptClass.PROSE, 1, None),
        sample(PromptClass.CODE, 2, 50.0),
        sample(PromptClass.PROSE, 3, 50.0, regime="up-1"),
    ]
    assert values_by_prompt(samples, "decode_tok_s", "quick-1", "prose") == pytest.approx({0: 20.0})

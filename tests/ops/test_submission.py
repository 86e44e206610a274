"""Submissions: true ones become evidence, and what cannot be is refused with its reason."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from tests.report.records import check, make_record, sample

from redline.catalog.load import load_catalog
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.checks.suites import Suite, suite_checks
from redline.errors import AccessError, UsageError
from redline.launch.outcome import ServerStarted
from redline.ops.evidence import import_submission, read_submission
from redline.ops.plausible import judge
from redline.record.codec import from_json, jsonable
from redline.record.manifest import FieldRecord
from redline.record.reading import RunRecord
from redline.report.submission import Submission, digest_of, make_submission
from redline.settings import Layers
from redline.workload.prompts import PromptClass

CPU, GPU = "llamacpp/smollm2-135m-cpu-superfast", "vllm/qwen38-27b-dual-ultrafast"
TODAY = date(2026, 12, 1)
RIG = {
    "gpus": "NVIDIA GeForce RTX 3090 25769803776, NVIDIA GeForce RTX 3090 25769803776",
    "memory_gib": 64,
    "digest": "d",
}


def runs(catalog: Catalog, slug: str = GPU, rate: float = 200.0, boots: int = 3, **fields: Any) -> list[RunRecord]:
    """Return runs of the tier as it is shipped, on the pinned engine, with every check of the full suite."""
    tier = resolve(catalog, slug, Layers())
    resolved = {
        name: FieldRecord(jsonable(getattr(tier, name).value), getattr(tier, name).origin)
        for name in ("artifact", "drafter", "spec_n", "kv_cache_dtype", "max_model_len")
    }
    conditions = {
        "slug": slug,
        "engine": tier.key.engine,
        "engine_version": tier.engine_version.value,
        "rig": RIG,
        "resolved": resolved,
    } | fields
    records = []
    for boot in range(boots):
        payloads: list[object] = [ServerStarted(server_id=f"b{boot}", ready_s=30.0 + boot, memory_bytes=1)]
        payloads += [check(one.id) for one in suite_checks(Suite.FULL)]
        for kind in (PromptClass.PROSE, PromptClass.CODE):
            payloads += [
                sample(kind, n, rate + boot + n, drafts=20, draft_tokens=140, accepted_tokens=110) for n in range(3)
            ]
        records.append(make_record(payloads, run_id=f"r{boot}", server_id=f"b{boot}", **conditions))
    return records


@pytest.fixture
def submission(catalog: Catalog) -> Submission:
    return make_submission(runs(catalog), made_at="2026-11-30T00:00:00+00:00")


def signed(submission: Submission, **changes: Any) -> Submission:
    """Return an edited submission with the id that belongs to it: an honest fool's, not a forger's."""
    edited = replace(submission, **changes)
    return replace(edited, submission_id=digest_of(edited))


def rules(catalog: Catalog, submission: Submission) -> list[str]:
    return [doubt.rule for doubt in judge(catalog, submission, TODAY) if doubt.refuses]


def test_a_submission_survives_its_file(submission: Submission) -> None:
    assert from_json(Submission, json.loads(json.dumps(jsonable(submission)))) == submission


def test_a_true_one_is_not_refused(catalog: Catalog, submission: Submission) -> None:
    assert rules(catalog, submission) == []


EDITS: dict[str, Callable[[Submission], Submission]] = {
    "digest": lambda s: replace(s, measured_on="2026-11-28"),
    "schema": lambda s: signed(s, schema_version=9),
    "definitions": lambda s: signed(s, definitions_version=9),
    "tier": lambda s: signed(s, slug="vllm/unheard-of"),
    "engine": lambda s: signed(s, engine="llamacpp"),
    "date": lambda s: signed(s, measured_on="2099-01-01"),
    "empty": lambda s: signed(s, samples=(), numbers=()),
    "samples": lambda s: signed(s, samples=(replace(s.samples[0], decode_tok_s=-5.0), *s.samples[1:])),
    "numbers": lambda s: signed(s, numbers=(replace(s.numbers[0], mean=s.numbers[0].mean * 1.01), *s.numbers[1:])),
}


@pytest.mark.parametrize("rule", list(EDITS))
def test_what_cannot_be_is_refused(catalog: Catalog, submission: Submission, rule: str) -> None:
    assert rule in rules(catalog, EDITS[rule](submission))


@pytest.mark.parametrize(
    "absurd",
    [
        {"decode_tok_s": 1e9},
        {"decode_tok_s": float("inf")},
        {"ttft_s": 0.0},
        {"accepted_tokens": 1000},
        {"completion_tokens": -1},
        {"completion_tokens": 0},
        {"drafts": 10**9},
    ],
)
def test_absurd_samples_are_refused(catalog: Catalog, submission: Submission, absurd: dict[str, Any]) -> None:
    edited = signed(submission, samples=(replace(submission.samples[0], **absurd), *submission.samples[1:]))
    assert "samples" in rules(catalog, edited)


def test_rates_beyond_what_memory_delivers_are_refused(catalog: Catalog) -> None:
    """Two 3090s read a 27B int4 model about 120 times a second; with 6.5 tokens a step 5,000 a second cannot be."""
    made_at = "2026-11-30T00:00:00+00:00"
    assert rules(catalog, make_submission(runs(catalog, rate=5000.0), made_at=made_at)) == ["bandwidth", "bandwidth"]
    assert rules(catalog, make_submission(runs(catalog, rate=230.0), made_at=made_at)) == []


def test_gpus_that_are_not_known_are_a_doubt_and_no_refusal(catalog: Catalog) -> None:
    found = make_submission(runs(catalog, rig={"gpus": "Unheard GPU 25769803776"}), made_at="2026-11-30T00:00:00+00:00")
    assert ("bandwidth", False) in [(doubt.rule, doubt.refuses) for doubt in judge(catalog, found, TODAY)]


def test_an_import_becomes_evidence_and_lifts_the_status(
    catalog: Catalog, submission: Submission, tmp_path: Path
) -> None:
    before = resolve(catalog, GPU, Layers()).status
    assert before.value == "experimental"
    found = import_submission(catalog, submission, tmp_path, source="issue 7")
    assert not found.refused
    after = load_catalog(tmp_path)
    rows = {row.metric: row for row in after.evidence.values() if row.id.startswith("submission-")}
    assert rows["decode_code"].value == pytest.approx(202.0)
    assert rows["decode_code"].low is not None
    assert rows["full_share"].value == 1.0
    assert rows["acceptance_length"].value == pytest.approx(6.5)
    status = resolve(after, GPU, Layers()).status
    assert (status.value, status.origin) == ("caveats", f"evidence:submission-{submission.submission_id}")
    assert found.standing is not None
    assert "soak passed" in found.standing.missing


def test_the_same_one_is_not_taken_twice(catalog: Catalog, submission: Submission, tmp_path: Path) -> None:
    import_submission(catalog, submission, tmp_path)
    again = import_submission(load_catalog(tmp_path), submission, tmp_path)
    assert again.refused
    copied = signed(submission, note="my own measurement, honestly")
    assert rules(load_catalog(tmp_path), copied) == ["duplicate"]


def test_a_dry_run_writes_nothing(catalog: Catalog, submission: Submission, tmp_path: Path) -> None:
    found = import_submission(catalog, submission, tmp_path, dry_run=True)
    assert found.evidence is not None
    assert list(tmp_path.iterdir()) == []


def test_what_differs_from_the_tier_as_shipped_does_not_count(catalog: Catalog, tmp_path: Path) -> None:
    records = runs(catalog)
    changed = {**records[0].manifest.resolved, "max_model_len": FieldRecord(4096, "cli:--ctx")}
    records = [replace(r, manifest=replace(r.manifest, resolved=changed)) for r in records]
    found = import_submission(catalog, make_submission(records, made_at="2026-11-30T00:00:00+00:00"), tmp_path)
    assert found.evidence is not None
    assert found.evidence.setup == "max_model_len 4096"
    assert resolve(load_catalog(tmp_path), GPU, Layers()).status.value == "experimental"


def test_a_failed_boot_can_be_handed_in(catalog: Catalog) -> None:
    from tests.report.records import failed_record

    record = failed_record()
    manifest = replace(record.manifest, slug=CPU, engine_version=resolve(catalog, CPU, Layers()).engine_version.value)
    found = make_submission([replace(record, manifest=manifest)], made_at="2026-11-30T00:00:00+00:00")
    assert rules(catalog, found) == []
    assert found.boots[0].failure == "The machine had not enough memory for the model's buffers."


@pytest.mark.parametrize("text", ["", "[]", "{", '{"schema_version": 1}', "[" * 100_000, '{"a": "\x1b[31m"}'])
def test_other_files_are_refused_with_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UsageError, match="is not a submission") as caught:
        read_submission(path)
    assert len(caught.value.message) < 400
    assert "\x1b" not in caught.value.message


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(AccessError):
        read_submission(tmp_path / "none.json")


def test_hostile_words_become_plain_ones(catalog: Catalog, submission: Submission, tmp_path: Path) -> None:
    evil = "\x1b[2J<script>\nevidence_sets: [] #" + "x" * 5000
    found = import_submission(catalog, signed(submission, labels=(f"experiment {evil}",)), tmp_path, source=evil)
    assert found.evidence is not None
    assert "\x1b" not in found.evidence.source + found.evidence.setup
    assert len(found.evidence.source) < 500
    load_catalog(tmp_path)

"""A comparison finds the ratio that is there, gives a verdict only where it is earned, and names what differs."""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from tests.report.records import check, make_record, on_boots, sample

from redline.bench.compare import Basis, Comparison, compare
from redline.record.manifest import FieldRecord
from redline.record.reading import RunRecord
from redline.stats.compare import Verdict
from redline.workload.prompts import PromptClass

FAST = "llamacpp/smollm2-135m-cpu-fast"


def arm(boots: int, rate: float, *, seed: int, spread: float = 0.01, **fields: Any) -> list[RunRecord]:
    """Return boots whose prompts differ much and whose boots differ by `spread`, as real ones do."""
    random_ = random.Random(seed)
    records = []
    for boot in range(boots):
        own = random_.gauss(0, spread)
        samples = [
            sample(kind, index, rate * (1 + 0.2 * index) * math.exp(own + random_.gauss(0, 0.002)))
            for kind in (PromptClass.PROSE, PromptClass.CODE)
            for index in range(4)
        ]
        run_id = f"r{seed}-{boot}"
        records.append(make_record(samples, run_id=run_id, server_id=run_id, **fields))
    return records


def prompts(rates: list[tuple[int, float]], boot: str, **extra: Any) -> RunRecord:
    """Return one boot that answered prompts at rates."""
    samples = [sample(PromptClass.PROSE, index, rate, **extra) for index, rate in rates]
    return make_record(samples, run_id=boot, server_id=boot)


def against(a: list[RunRecord], b: list[RunRecord], margin: float = 0.05) -> Comparison:
    return compare(a, b, names=("A", "B"), margin=margin)


@pytest.mark.parametrize(
    ("factor", "verdict", "code"), [(1.5, Verdict.FASTER, 0), (0.7, Verdict.SLOWER, 1), (1.0, Verdict.EQUIVALENT, 0)]
)
def test_a_known_ratio_is_found(factor: float, verdict: Verdict, code: int) -> None:
    found = against(arm(5, 100, seed=1), arm(5, 100 * factor, seed=2, slug=FAST))
    assert (found.verdict, found.exit_code) == (verdict, code)
    rows = [row for row in found.rows if row.metric == "decode_tok_s"]
    assert [row.prompt_class for row in rows] == ["prose", "code"]
    for row in rows:
        assert row.ratio is not None
        assert row.basis is Basis.BOOTS
        assert row.ratio.low is not None
        assert row.ratio.high is not None
        assert row.ratio.low < factor < row.ratio.high
        assert row.ratio.mean == pytest.approx(factor, rel=0.03)


@pytest.mark.parametrize("boots", [1, 2])
def test_few_boots_give_a_ratio_and_no_verdict(boots: int) -> None:
    found = against(arm(boots, 100, seed=1), arm(boots, 300, seed=2, slug=FAST))
    assert (found.verdict, found.exit_code) == (Verdict.UNDETERMINED, 3)
    assert found.why.startswith(f"{boots} boot")
    row = found.rows[0]
    assert row.basis is Basis.PROMPTS
    assert row.ratio is not None
    assert row.ratio.mean == pytest.approx(3.0, rel=0.1)
    assert row.ratio.low is not None


def test_repeats_are_rarely_called_different() -> None:
    """Seeded A/A: over 500 experiments of three boots an arm, at most 6.4 % get a verdict of faster or slower."""
    wrong = 0
    for seed in range(500):
        a, b = (arm(3, 100, seed=2 * seed + side, spread=0.028) for side in (0, 1))
        found = against(a, b, margin=1e-6)
        wrong += found.verdict in (Verdict.FASTER, Verdict.SLOWER)
    assert wrong <= 32


def test_times_turn_round() -> None:
    slow, quick = (
        [prompts([(n, 50.0) for n in range(3)], f"{ttft_s}-{boot}", ttft_s=ttft_s + boot / 100) for boot in range(3)]
        for ttft_s in (2.0, 1.0)
    )
    (row,) = [row for row in against(slow, quick).rows if row.metric == "ttft_s"]
    assert row.verdict is Verdict.FASTER
    assert row.ratio is not None
    assert row.ratio.mean < 1


def test_two_differences_forbid_a_verdict() -> None:
    other: dict[str, Any] = {"rig": {"cpu_model": "Other", "cpus": 8}, "slug": FAST}
    found = against(arm(3, 100, seed=1), arm(3, 300, seed=2, **other))
    assert found.verdict is Verdict.UNDETERMINED
    assert found.why == "confounded: the arms differ in rig and in tier"
    assert found.rows[0].ratio is not None


def test_an_arm_that_is_mixed_forbids_a_verdict() -> None:
    mixed = [*arm(2, 100, seed=1), *arm(1, 100, seed=3, engine_version="xllamacpp-2027")]
    found = against(mixed, arm(3, 300, seed=2))
    assert found.verdict is Verdict.UNDETERMINED
    assert "one arm mixes runs that differ in engine" in found.why


def test_other_definitions_forbid_a_ratio() -> None:
    newer = [replace(r, manifest=replace(r.manifest, definitions_version=2)) for r in arm(3, 300, seed=2)]
    found = against(arm(3, 100, seed=1), newer)
    assert found.rows == ()
    assert found.why == "the measured words have other meanings in the two arms"


def test_regimes_are_not_mixed() -> None:
    a = [make_record([sample(PromptClass.PROSE, n, 50.0, regime="up-1") for n in range(3)])]
    found = against(a, on_boots(1, slug=FAST))
    assert found.rows == ()
    assert found.why == "the arms share no regime and prompt class"


def test_a_boot_is_not_judged_on_prompts_that_others_lack() -> None:
    """One boot answered an easy prompt more; on the common ones the arms are equal."""
    easy = prompts([(0, 50.0), (1, 60.0), (9, 900.0)], "easy")
    rest = [prompts([(0, 50.0 + boot / 100), (1, 60.0)], f"boot {boot}") for boot in range(5)]
    found = against([easy, *rest[:2]], rest[2:])
    assert found.verdict is Verdict.EQUIVALENT


def test_the_difference_is_named() -> None:
    drafter = FieldRecord("lookup-map-k", "rule:x")
    base, deeper = ({"spec_n": FieldRecord(depth, "rule:x"), "drafter": drafter} for depth in (7, 3))
    found = against(arm(3, 100, seed=1, resolved=base), arm(3, 100, seed=2, resolved=deeper))
    assert [(item.field, item.a, item.b) for item in found.differences] == [("spec_n", "7", "3")]
    assert found.about == "tier"
    assert against(arm(3, 100, seed=1), arm(3, 100, seed=2)).about.startswith("nothing that is recorded")


def test_another_redline_alone_is_a_question_and_beside_a_tier_is_none() -> None:
    def upgraded(record: RunRecord) -> RunRecord:
        return replace(record, manifest=replace(record.manifest, redline_version="9.9"))

    newer = [upgraded(record) for record in arm(3, 100, seed=2)]
    assert against(arm(3, 100, seed=1), newer).about == "redline"
    other = [upgraded(record) for record in arm(3, 150, seed=2, slug=FAST)]
    assert against(arm(3, 100, seed=1), other).verdict is Verdict.FASTER


def test_without_samples_there_is_nothing_to_compare() -> None:
    found = against([make_record([check("chat.basic")])], on_boots(1))
    assert (found.verdict, found.exit_code) == (Verdict.UNDETERMINED, 3)

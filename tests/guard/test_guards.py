"""Every guard once speaking and once silent, from one table; and the table is complete."""

from dataclasses import replace

import pytest

from redline.catalog.types import Catalog
from redline.guard.finding import Severity, is_experiment
from redline.guard.rules import guard_ids, run_guards
from tests.guard.cases import (
    CPU,
    FAST,
    IQ4,
    MAX,
    MULTI4,
    NVFP4,
    Q8,
    REFUSE,
    SUPER,
    TABLE,
    ULTRA,
    WARN,
    Case,
    draft,
    gpus,
    without_block_size,
    without_native_dflash2,
)


def test_the_table_has_every_guard() -> None:
    assert set(TABLE) == set(guard_ids())


@pytest.mark.parametrize("rule_id", TABLE)
def test_guard_speaks(catalog: Catalog, rule_id: str) -> None:
    case = TABLE[rule_id][0]
    findings = {finding.rule_id: finding for finding in run_guards(case.context(catalog))}
    assert rule_id in findings, f"silent; others said {sorted(findings)}"
    said = findings[rule_id]
    assert said.severity is case.severity
    assert case.words in said.message + said.remedy
    assert said.override == case.override
    assert said.remedy.strip()
    assert said.source.strip()
    assert said.versions.strip()


@pytest.mark.parametrize("rule_id", TABLE)
def test_guard_is_silent(catalog: Catalog, rule_id: str) -> None:
    context = TABLE[rule_id][1].context(catalog)
    assert rule_id not in {finding.rule_id for finding in run_guards(context)}


@pytest.mark.parametrize(
    ("slug", "case"),
    [
        (slug, (block, depth))
        for slug in (ULTRA, SUPER, "vllm/qwen38-27b-multi8-ultramax")
        for block in (None, 8, 16)
        for depth in (1, 6, 7, 8, 15, 16)
    ],
)
def test_depth_is_right_only_at_the_block_less_one(catalog: Catalog, slug: str, case: tuple[int | None, int]) -> None:
    block, depth = case
    more = {} if block is None else {"disk": draft(block)}
    context = Case(slug, None, env={"SPEC_N": str(depth)}, more=more).context(catalog)
    refused = "drafter-depth" in {finding.rule_id for finding in run_guards(context)}
    assert refused is (depth != (block or 8) - 1)


def test_a_drafter_without_a_block_size_is_refused(catalog: Catalog) -> None:
    context = replace(Case(ULTRA, REFUSE).context(catalog), catalog=without_block_size(catalog))
    said = {finding.rule_id: finding for finding in run_guards(context)}["drafter-depth"]
    assert "Nothing says for which block" in said.message


def test_dflash2_on_an_engine_that_has_it_not_is_refused(catalog: Catalog) -> None:
    case = Case(ULTRA, REFUSE, change=without_native_dflash2)
    said = {finding.rule_id: finding for finding in run_guards(case.context(catalog))}["drafter-runner"]
    assert "vLLM 0.27.1" in said.message


@pytest.mark.parametrize("compute", ["8.6", "8.9", "12.0"])
def test_consumer_gpus_read_no_fp8_cache_through_flash_attention(catalog: Catalog, compute: str) -> None:
    case = Case(ULTRA, REFUSE, env={"KV_CACHE_DTYPE": "fp8"}, rig={"gpus": gpus(2, compute)})
    assert "flash-attention-fp8" in {finding.rule_id for finding in run_guards(case.context(catalog))}


def test_heads_of_256_have_no_fp8_cache_on_data_centre_blackwell_either(catalog: Catalog) -> None:
    case = Case(ULTRA, REFUSE, env={"KV_CACHE_DTYPE": "fp8"}, rig={"gpus": gpus(2, "10.0", "B200")})
    assert "flash-attention-fp8" in {finding.rule_id for finding in run_guards(case.context(catalog))}


def test_pipeline_with_the_built_in_head_only_warns(catalog: Catalog) -> None:
    case = Case("vllm/qwen38-27b-multi4-fast", WARN, env={"PP": "2", "TP": "2"})
    said = {finding.rule_id: finding for finding in run_guards(case.context(catalog))}["drafter-pipeline"]
    assert said.severity is Severity.WARN


def test_a_switch_lifts_its_own_rule_only_and_labels_experiments(catalog: Catalog) -> None:
    context = Case(ULTRA, REFUSE, env={"SPEC_N": "15"}).context(catalog)
    findings = {finding.rule_id: finding for finding in run_guards(context, ("--experiment drafter-depth",))}
    assert findings["drafter-depth"].overridden
    assert findings["drafter-depth"].severity is Severity.WARN
    assert is_experiment(findings["drafter-depth"])
    assert findings["tier-status"].severity is Severity.REFUSE
    assert not is_experiment(findings["tier-status"])


def test_a_tier_that_fits_and_is_proven_meets_no_refusal(catalog: Catalog) -> None:
    assert run_guards(Case(CPU, None).context(catalog)) == ()


@pytest.mark.parametrize("slug", [ULTRA, SUPER, FAST, MAX, NVFP4, MULTI4, Q8, IQ4])
def test_shipped_tiers_are_refused_for_their_status_only(catalog: Catalog, slug: str) -> None:
    context = Case(slug, None, rig={"gpus": gpus(8)}).context(catalog)
    assert {item.rule_id for item in run_guards(context) if item.severity is Severity.REFUSE} == {"tier-status"}

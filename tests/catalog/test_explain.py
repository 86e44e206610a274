"""What is known of a tier besides its values."""

from dataclasses import replace

import pytest

from redline.catalog.explain import counts, evidence_of, explain_origin, hazards_of, served_model
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.settings import Layers

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
SUPER = "vllm/qwen38-27b-dual-superfast"


def test_ultrafast_is_what_the_post_says_with_a_source_a_field(catalog: Catalog) -> None:
    tier = resolve(catalog, ULTRA, Layers())
    drafter = catalog.drafters[tier.drafter.value]
    assert drafter.artifact is not None
    said = {
        "context": tier.max_model_len.value,
        "cache": tier.kv_cache_dtype.value,
        "attention": tier.attention_backend.value,
        "depth": tier.spec_n.value,
        "cards": tier.tensor_parallel.value,
        "engine": tier.engine_version.value,
        "weights": getattr(catalog.artifacts[tier.artifact.value].origin, "repo", None),
        "drafter": getattr(catalog.artifacts[drafter.artifact].origin, "repo", None),
    }
    assert said == {
        "context": 204800,
        "cache": "bfloat16",
        "attention": "FLASH_ATTN",
        "depth": 7,
        "cards": 2,
        "engine": "0.33.0",
        "weights": "Frozenlock/Qwen3.8-27B-int4-AutoRound",
        "drafter": "syvai/Qwen3.8-27B-DFlash2-W4A16",
    }
    assert "tier hierarchy post" in explain_origin(catalog, tier.max_model_len.origin)
    assert "qwen3_dflash2.py:256" in explain_origin(catalog, tier.spec_n.origin)


@pytest.mark.parametrize(
    ("slug", "metric", "value"),
    [
        (ULTRA, "decode_code", 231),
        (ULTRA, "decode_narrative", 128),
        (SUPER, "decode_code", 141),
        ("vllm/qwen38-27b-dual-max", "prefill_90k", 941.5),
        ("vllm/qwen38-27b-multi4-superfast", "decode_code", 190),
        ("vllm/qwen38-27b-dual-dflash15-fast", "decode_code", 163.82),
        ("vllm/qwen38-27b-dual-dflash15-fast", "vram_peak", 41979),
        ("vllm/qwen38-27b-dual-dflash15-fast", "context_filled", 224840),
        ("llamacpp/qwen38-27b-dual-q8kxl", "vram_gpu1", 22574),
    ],
)
def test_published_numbers_are_kept(catalog: Catalog, slug: str, metric: str, value: float) -> None:
    assert value in {row.value for row in evidence_of(catalog, slug, metric)}


def test_every_number_has_rig_version_date_and_source(catalog: Catalog) -> None:
    assert len(catalog.evidence) > 150
    for row in catalog.evidence.values():
        assert all((row.rig, row.engine_version, row.date, row.source)), row.id


def test_numbers_of_other_versions_and_patched_engines_do_not_count(catalog: Catalog) -> None:
    row = evidence_of(catalog, ULTRA, "decode_code")[0]
    assert not counts(catalog, row)
    on_pin = replace(row, engine_version="0.33.0", patches=(), setup="")
    assert counts(catalog, on_pin)
    assert not counts(catalog, replace(on_pin, patches=("vllm-pr48375",)))
    assert not counts(catalog, replace(on_pin, setup="SPEC_N=0"))


def test_no_tier_of_a_gpu_claims_more_than_the_pin_has_shown(catalog: Catalog) -> None:
    for slug in catalog.tiers:
        tier = resolve(catalog, slug, Layers())
        if tier.key.topology != "cpu" and tier.status.value in ("production", "caveats"):
            assert any(counts(catalog, row) for row in evidence_of(catalog, slug)), slug


def test_hazards_follow_the_settled_values(catalog: Catalog) -> None:
    exposed = {hazard.id for hazard in hazards_of(catalog, resolve(catalog, SUPER, Layers()))}
    assert {"dflash2-fp8-depth", "gdn-spec-index", "decode-falls-with-context"} <= exposed
    assert "mtp-acceptance-collapse" not in exposed
    assert "dflash2-fp8-depth" not in {hazard.id for hazard in hazards_of(catalog, resolve(catalog, ULTRA, Layers()))}
    short = resolve(catalog, SUPER, Layers(environ={"MAX_MODEL_LEN": "8192"}))
    assert "dflash2-fp8-depth" not in {hazard.id for hazard in hazards_of(catalog, short)}


def test_a_gguf_without_its_projector_reads_no_images(catalog: Catalog) -> None:
    def sees(slug: str) -> bool:
        return served_model(catalog, resolve(catalog, slug, Layers())).capabilities.vision.offered

    assert sees("llamacpp/qwen38-27b-single-iq4xs")
    assert not sees("llamacpp/qwen38-27b-dual-q8kxl")
    assert sees(ULTRA)


def test_a_fault_of_older_versions_is_not_held_against_the_pin(catalog: Catalog) -> None:
    ids = {hazard.id for hazard in hazards_of(catalog, resolve(catalog, ULTRA, Layers()))}
    assert "quantized-drafter" not in ids
    assert "presence-penalty-dropped" not in ids


def test_capabilities_of_the_pins_name_a_file_and_a_line(catalog: Catalog) -> None:
    import re

    for engine, version in (("vllm", "0.33.0"), ("llamacpp", "b11434")):
        facts = catalog.engines[engine].version(version)
        assert facts is not None
        for name, claim in facts.capabilities.items():
            assert re.search(r"\w+\.(py|cpp):\d+", claim.source), f"{engine} {name}"


def test_history_versions_claim_nothing(catalog: Catalog) -> None:
    for name in ("0.27.1", "0.29.0", "0.31.0"):
        version = catalog.engines["vllm"].version(name)
        assert version is not None
        assert not version.capabilities


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ("cli:--ctx", "command line"),
        ("env:PORT", "environment"),
        (".env:PORT", ".env"),
        ("config:PORT", "config file"),
        ("sampler:qwen3.8-27b/thinking", "with thinking"),
        ("absent:vllm-has-none", "llama.cpp"),
    ],
)
def test_origins_in_words(catalog: Catalog, origin: str, words: str) -> None:
    assert words in explain_origin(catalog, origin)

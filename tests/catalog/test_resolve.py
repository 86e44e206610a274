"""How overrides and rules combine."""

import pytest

from redline.catalog.fields import SAMPLER_FIELDS, TIER_FIELDS
from redline.catalog.resolve import find_tier, resolve
from redline.catalog.types import Catalog
from redline.errors import UsageError
from redline.settings import Layers, Sourced

ULTRA = "vllm/qwen38-27b-dual-ultrafast"
GGUF = "llamacpp/qwen38-27b-single-iq4xs"


def layers(
    cli: dict[str, str] | None = None, env: dict[str, str] | None = None, dotenv: dict[str, str] | None = None
) -> Layers:
    return Layers(
        cli={name: Sourced(value, f"cli:--set {name}") for name, value in (cli or {}).items()},
        environ=env or {},
        dotenv=dotenv or {},
    )


def test_slug_without_engine_and_alias(catalog: Catalog) -> None:
    assert find_tier(catalog, "qwen38-27b-dual-ultrafast").slug == ULTRA
    assert find_tier(catalog, "smollm2").slug == "llamacpp/smollm2-135m-cpu-fast"


def test_unknown_slug_names_the_nearest(catalog: Catalog) -> None:
    with pytest.raises(UsageError) as caught:
        find_tier(catalog, "vllm/qwen38-27b-dual-ultrafst")
    assert ULTRA in (caught.value.next_step or "")


def test_command_line_wins_over_environment_over_dotenv(catalog: Catalog) -> None:
    given = layers(dotenv={"PORT": "1111"}, env={"PORT": "2222"}, cli={"PORT": "3333"})
    assert resolve(catalog, ULTRA, given).port == Sourced(3333, "cli:--set PORT")
    given = layers(dotenv={"PORT": "1111"}, env={"PORT": "2222"})
    assert resolve(catalog, ULTRA, given).port == Sourced(2222, "env:PORT")
    assert resolve(catalog, ULTRA, layers(dotenv={"PORT": "1111"})).port == Sourced(1111, ".env:PORT")


@pytest.mark.parametrize("word", ["off", "false", "no", "0", "OFF"])
def test_spec_off_is_depth_nought(catalog: Catalog, word: str) -> None:
    assert resolve(catalog, ULTRA, layers(env={"SPEC": word})).spec_n == Sourced(0, "env:SPEC")


def test_spec_off_wins_in_its_own_layer_and_yields_to_a_higher_one(catalog: Catalog) -> None:
    assert resolve(catalog, ULTRA, layers(env={"SPEC": "off", "SPEC_N": "7"})).spec_n.value == 0
    assert resolve(catalog, ULTRA, layers(env={"SPEC_N": "7"}, dotenv={"SPEC": "off"})).spec_n.value == 7
    assert resolve(catalog, ULTRA, layers(cli={"SPEC_N": "7"}, env={"SPEC": "off"})).spec_n.value == 7


def test_spec_on_changes_nothing_and_nonsense_is_refused(catalog: Catalog) -> None:
    assert resolve(catalog, ULTRA, layers(env={"SPEC": "on"})).spec_n.origin == "rule:depth-of-block-drafter"
    with pytest.raises(UsageError, match="SPEC='perhaps'"):
        resolve(catalog, ULTRA, layers(env={"SPEC": "perhaps"}))


def test_other_spellings(catalog: Catalog) -> None:
    tier = resolve(catalog, GGUF, layers(env={"TEMPERATURE": "0.3", "KV_TYPE": "q8_0", "CTX_SIZE": "131072"}))
    assert tier.temperature == Sourced(0.3, "env:TEMPERATURE")
    assert tier.kv_cache_dtype == Sourced("q8_0", "env:KV_TYPE")
    assert tier.max_model_len.value == 131072
    both = resolve(catalog, GGUF, layers(env={"TEMPERATURE": "0.3", "TEMP": "0.4"}))
    assert both.temperature == Sourced(0.4, "env:TEMP")


@pytest.mark.parametrize(("word", "row"), [("1", "thinking"), ("true", "thinking"), ("off", "instruct")])
def test_thinking_chooses_the_whole_sampler_row(catalog: Catalog, word: str, row: str) -> None:
    tier = resolve(catalog, ULTRA, layers(env={"ENABLE_THINKING": word}))
    facts = next(item for item in catalog.models["qwen3.8-27b"].samplers if item.id == row)
    assert {name: getattr(tier, name).value for name in SAMPLER_FIELDS} == {
        name: getattr(facts, name) for name in SAMPLER_FIELDS
    }
    assert all(getattr(tier, name).origin == f"sampler:qwen3.8-27b/{row}" for name in SAMPLER_FIELDS)


def test_explicit_sampler_value_wins_in_either_row(catalog: Catalog) -> None:
    for thinking in ("0", "1"):
        tier = resolve(catalog, ULTRA, layers(env={"ENABLE_THINKING": thinking, "TEMP": "0.42"}))
        assert tier.temperature == Sourced(0.42, "env:TEMP")
        assert tier.top_k.origin.startswith("sampler:")


def test_a_setting_that_the_engine_has_not_is_left_alone(catalog: Catalog) -> None:
    tier = resolve(catalog, GGUF, layers(env={"GPU_MEMORY_UTILIZATION": "0.5", "TP": "4"}))
    assert tier.gpu_memory_utilization == Sourced(None, "absent:llamacpp-has-no-blocks")
    assert tier.gpus == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GPU_MEMORY_UTILIZATION", "90"),
        ("MAX_NUM_SEQS", "two"),
        ("NVLINK_MODE", "fast"),
        ("SPEC_N", "-1"),
        ("PORT", "70000"),
        ("ENABLE_THINKING", "maybe"),
    ],
)
def test_unusable_value_is_a_usage_error_that_names_it(catalog: Catalog, name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        resolve(catalog, ULTRA, layers(env={name: value}))


def test_every_knob_of_the_reference_setups_is_read() -> None:
    from redline.catalog.knobs import known_names

    wanted = (
        "SPEC_N SPEC ENABLE_THINKING TEMP TOP_P TOP_K MIN_P PRESENCE_PENALTY REASONING_EFFORT MAX_MODEL_LEN "
        "GPU_MEMORY_UTILIZATION MAX_NUM_SEQS MAX_NUM_BATCHED_TOKENS KV_CACHE_DTYPE ATTN_BACKEND PORT BIND_HOST "
        "MODEL_DIR HF_TOKEN W4A8 NVLINK_MODE NCCL_P2P_DISABLE TP PP TEMPERATURE WITH_DFLASH_DRAFT"
    )
    assert set(wanted.split()) <= known_names()


@pytest.mark.parametrize("name", TIER_FIELDS)
def test_no_field_without_words(name: str) -> None:
    assert TIER_FIELDS[name].doc.endswith(".")

"""vLLM's command line as data: what is given, what is left out, and that nothing is given twice or empty."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan, launch_plan_from_dict
from redline.engine.protocol import Form
from redline.engine.vllm import Vllm
from redline.errors import UsageError
from redline.record.codec import jsonable
from redline.rig.types import Gpu, Rig
from redline.settings import Layers

ULTRA, SUPER, FAST, MAX = (f"vllm/qwen38-27b-dual-{name}" for name in ("ultrafast", "superfast", "fast", "max"))
RIG = Rig(cpu_model="cpu", cpus=8, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="6.8", wsl=False)
WSL = Rig(cpu_model="cpu", cpus=8, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="5", wsl=True)
MODELS = Path("/srv/models")


def plan(
    catalog: Catalog, slug: str, env: dict[str, str] | None = None, form: Form | None = None, rig: Rig = RIG
) -> LaunchPlan:
    return Vllm().launch_plan(catalog, resolve(catalog, slug, Layers(environ=env or {})), rig, MODELS, form)


def flag(argv: tuple[str, ...], name: str) -> str | None:
    return argv[argv.index(name) + 1] if name in argv else None


def speculative(argv: tuple[str, ...]) -> Any:
    text = flag(argv, "--speculative-config")
    return json.loads(text) if text else None


def vllm_slugs(catalog: Catalog) -> list[str]:
    return [slug for slug, key in catalog.tiers.items() if key.engine == "vllm"]


def test_no_flag_twice_and_no_word_empty(catalog: Catalog) -> None:
    slugs = vllm_slugs(catalog)
    assert len(slugs) >= 21
    for slug in slugs:
        for form in ("native", "docker"):
            made = plan(catalog, slug, form=form)
            flags = [word for word in made.argv if word.startswith("--")]
            assert len(flags) == len(set(flags)), slug
            assert all(made.argv), slug
            assert all(made.env.values()), slug


def test_block_drafter_is_named_with_its_folder(catalog: Catalog) -> None:
    assert speculative(plan(catalog, ULTRA).argv) == {
        "method": "dflash",
        "num_speculative_tokens": 7,
        "model": "/srv/models/qwen3.8-27b-dflash2-w4a16",
    }


def test_built_in_drafter_has_no_folder(catalog: Catalog) -> None:
    assert speculative(plan(catalog, FAST).argv) == {"method": "mtp", "num_speculative_tokens": 4}


def test_drafting_off_leaves_every_trace_of_it_out(catalog: Catalog) -> None:
    argv = plan(catalog, ULTRA, {"SPEC": "off"}).argv
    assert not any("spec" in word for word in argv)


def test_autoround_is_read_from_the_checkpoint_and_fp8_is_named(catalog: Catalog) -> None:
    assert flag(plan(catalog, FAST).argv, "--quantization") is None
    assert flag(plan(catalog, MAX).argv, "--quantization") == "fp8"


@pytest.mark.parametrize("slug", [FAST, SUPER, ULTRA])
def test_eight_bit_activations_are_never_in_the_environment_of_the_pin(catalog: Catalog, slug: str) -> None:
    assert "VLLM_MARLIN_INPUT_DTYPE" not in plan(catalog, slug).env


def test_fidelity_answers_to_two_names(catalog: Catalog) -> None:
    argv = plan(catalog, MAX).argv
    at = argv.index("--served-model-name")
    assert argv[at + 1 : at + 3] == ("qwen3.8-27b", "qwen3.8-27b-fp8")


def test_thinking_is_one_boolean_for_template_and_sampler(catalog: Catalog) -> None:
    argv = plan(catalog, ULTRA, {"ENABLE_THINKING": "1", "REASONING_EFFORT": "medium"}).argv
    assert json.loads(flag(argv, "--default-chat-template-kwargs") or "") == {
        "enable_thinking": True,
        "reasoning_effort": "medium",
    }
    sampler = json.loads(flag(argv, "--override-generation-config") or "")
    assert (sampler["temperature"], sampler["top_p"], sampler["presence_penalty"]) == (1, 0.95, 0)


def test_container_listens_on_all_addresses_inside_and_is_reached_on_loopback(catalog: Catalog) -> None:
    made = plan(catalog, ULTRA, form="docker")
    assert (flag(made.argv, "--host"), flag(made.argv, "--port")) == ("0.0.0.0", "8000")
    assert (made.host, made.port, made.url) == ("127.0.0.1", 8101, "http://127.0.0.1:8101")
    assert made.container is not None
    assert (made.container.port, made.container.gpu_count) == (8000, 2)
    assert not any("/srv/models" in word for word in made.argv)


def test_native_listens_where_the_tier_says(catalog: Catalog) -> None:
    argv = plan(catalog, ULTRA, {"PORT": "9000", "BIND_HOST": "::1"}).argv
    assert (flag(argv, "--host"), flag(argv, "--port")) == ("::1", "9000")


def test_links_by_force_turn_the_all_reduce_on_and_the_allocator_gives_way(catalog: Catalog) -> None:
    slow, fast = plan(catalog, FAST), plan(catalog, FAST, {"NVLINK_MODE": "force_on"})
    assert "--disable-custom-all-reduce" in slow.argv
    assert slow.env["NCCL_P2P_DISABLE"] == "1"
    assert "--disable-custom-all-reduce" not in fast.argv
    assert fast.env["NCCL_P2P_LEVEL"] == "NVL"
    assert "NCCL_P2P_DISABLE" not in fast.env
    assert fast.env["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:False"


def test_one_gpu_needs_no_word_about_links(catalog: Catalog) -> None:
    made = plan(catalog, "vllm/qwen38-27b-single-nvfp4")
    assert "--disable-custom-all-reduce" not in made.argv
    assert not any(name.startswith("NCCL_P2P") for name in made.env)


def test_wsl2_gets_its_own_allocator_and_pinned_memory(catalog: Catalog) -> None:
    made = plan(catalog, MAX, rig=WSL)
    assert made.env["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:False,max_split_size_mb:512"
    assert made.env["VLLM_WSL2_ENABLE_PIN_MEMORY"] == "1"


@pytest.mark.parametrize(("compute", "off"), [("8.6", False), ("8.9", True), ("12.0", True), ("9.0", False)])
def test_deep_gemm_is_off_where_it_is_not_supported(catalog: Catalog, compute: str, off: bool) -> None:
    gpu = Gpu(index=0, name="g", uuid="u", memory_total_bytes=1, memory_free_bytes=1, compute=compute)
    rig = replace(RIG, gpus=(gpu, gpu))
    assert ("VLLM_USE_DEEP_GEMM" in plan(catalog, MAX, rig=rig).env) is off
    assert "VLLM_USE_DEEP_GEMM" not in plan(catalog, FAST, rig=rig).env


def test_what_the_user_says_of_the_allocator_holds(catalog: Catalog) -> None:
    made = plan(catalog, MAX, {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64"}, rig=WSL)
    assert made.env["PYTORCH_CUDA_ALLOC_CONF"] == "max_split_size_mb:64"


def test_more_arguments_come_last_and_are_not_expanded(catalog: Catalog) -> None:
    argv = plan(catalog, ULTRA, {"ENGINE_ARGS": "--no-async-scheduling --x '$HOME'"}).argv
    assert argv[-3:] == ("--no-async-scheduling", "--x", "$HOME")


def test_named_gpus(catalog: Catalog) -> None:
    native, inside = (plan(catalog, FAST, {"GPUS": "2,3"}, form=form) for form in ("native", "docker"))
    assert flag(native.argv, "--device-ids") == "2,3"
    assert inside.container is not None
    assert inside.container.gpus == ("2", "3")


def test_prefix_caching_off_is_said_aloud(catalog: Catalog) -> None:
    assert "--no-enable-prefix-caching" in plan(catalog, FAST, {"PREFIX_CACHING": "0"}).argv


def test_secrets_are_named_and_never_held(catalog: Catalog) -> None:
    made = plan(catalog, ULTRA, {"REDLINE_API_KEY": "topsecret", "HF_TOKEN": "hf_secret"})
    text = json.dumps(jsonable(made))
    assert "topsecret" not in text
    assert "hf_secret" not in text
    assert (made.secret_env, dict(made.secret_aliases)) == (("VLLM_API_KEY",), {"VLLM_API_KEY": "REDLINE_API_KEY"})


def test_unknown_form_is_a_usage_error(catalog: Catalog) -> None:
    with pytest.raises(UsageError, match="not started as embedded"):
        plan(catalog, ULTRA, form="embedded")


@pytest.mark.parametrize("form", ["native", "docker"])
def test_plan_survives_its_record(catalog: Catalog, form: Form) -> None:
    made = plan(catalog, ULTRA, form=form)
    assert launch_plan_from_dict(json.loads(json.dumps(jsonable(made)))) == made


def test_counters_of_its_metrics() -> None:
    text = (
        "# TYPE vllm:spec_decode_num_drafts counter\n"
        'vllm:spec_decode_num_drafts_total{engine="0"} 10\n'
        "# TYPE vllm:spec_decode_num_accepted_tokens_per_pos counter\n"
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 8\n'
        'vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 4\n'
    )
    counters = Vllm().parse_counters(text)
    assert (counters.drafts, counters.accepted_by_position) == (10, (8, 4))
    assert counters.prompt_tokens is None


def test_lookup_drafting_is_vllms_own(catalog: Catalog) -> None:
    drafting = plan(catalog, "vllm/smollm2-135m-single-supermax", {"LOOKUP_KEY": "3"})
    assert speculative(drafting.argv) == {
        "method": "ngram",
        "num_speculative_tokens": 7,
        "prompt_lookup_min": 3,
        "prompt_lookup_max": 3,
    }
    assert speculative(plan(catalog, "vllm/smollm2-135m-single-max").argv) is None

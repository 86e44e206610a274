"""llama.cpp's forms: which one serves a tier, and what its command line holds."""

from pathlib import Path

import pytest

from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.launch_plan import LaunchPlan
from redline.engine.llamacpp import LlamaCpp
from redline.engine.protocol import Form
from redline.errors import UsageError
from redline.rig.types import Rig
from redline.settings import Layers

Q8, IQ4 = "llamacpp/qwen38-27b-dual-q8kxl", "llamacpp/qwen38-27b-single-iq4xs"
CPU, LOOKUP = "llamacpp/smollm2-135m-cpu-fast", "llamacpp/smollm2-135m-cpu-superfast"
RIG = Rig(cpu_model="cpu", cpus=6, memory_total_bytes=2**36, memory_available_bytes=2**36, kernel="6.8", wsl=False)


def plan(catalog: Catalog, slug: str, env: dict[str, str] | None = None, form: Form | None = None) -> LaunchPlan:
    tier = resolve(catalog, slug, Layers(environ=env or {}))
    return LlamaCpp().launch_plan(catalog, tier, RIG, Path("/srv/models"), form)


def flag(argv: tuple[str, ...], name: str) -> str | None:
    return argv[argv.index(name) + 1] if name in argv else None


def test_processor_tiers_are_embedded_and_gpu_tiers_are_not(catalog: Catalog) -> None:
    assert plan(catalog, CPU).form == "embedded"
    assert plan(catalog, Q8).form == "native"
    assert plan(catalog, Q8).argv[0] == "llama-server"


def test_embedded_worker_still_gets_lookup_and_processors(catalog: Catalog) -> None:
    argv = plan(catalog, LOOKUP).argv
    assert argv[1:4] == ("-P", "-m", "redline.engine.worker")
    assert (flag(argv, "--spec-type"), flag(argv, "--threads")) == ("ngram-map-k", "6")
    assert "--spec-type" not in plan(catalog, CPU).argv


def test_embedded_worker_gets_the_block_drafters_file_and_depth(catalog: Catalog) -> None:
    argv = plan(catalog, "llamacpp/smollm2-135m-cpu-ultrafast").argv
    fact = catalog.drafters["smollm2-135m-dflash2"].checkpoint
    assert fact is not None
    assert (flag(argv, "--draft-type"), flag(argv, "--draft-max")) == ("draft-dflash", str(fact.depth))
    assert str(flag(argv, "--draft-model")).startswith("/srv/models/smollm2-135m-dflash2/")
    assert "--spec-type" not in argv


def test_a_combined_drafter_looks_up_with_its_own_length(catalog: Catalog) -> None:
    fact = catalog.drafters["smollm2-135m-dflash2-lookup"].checkpoint
    assert fact is not None
    argv = plan(catalog, f"llamacpp/smollm2-135m-cpu-dflash{fact.depth}-fast").argv
    lookup = catalog.drafters["smollm2-135m-dflash2-lookup"].lookup
    assert lookup is not None
    assert (flag(argv, "--spec-type"), flag(argv, "--draft-type")) == ("ngram-map-k", "draft-dflash")
    assert flag(argv, "--spec-draft") == str(lookup.draft_tokens)


def test_a_drafter_that_is_off_is_not_named(catalog: Catalog) -> None:
    # Its file alone would switch drafting on, whatever the type says.
    argv = plan(catalog, "llamacpp/smollm2-135m-cpu-ultrafast", {"SPEC_N": "0"}).argv
    assert not any(word.startswith(("--draft", "--spec")) for word in argv)


@pytest.mark.parametrize(("slug", "form"), [(CPU, "docker"), (Q8, "embedded")])
def test_forms_that_are_not_there(catalog: Catalog, slug: str, form: Form) -> None:
    with pytest.raises(UsageError, match=f"not started as {form}"):
        plan(catalog, slug, form=form)


@pytest.mark.parametrize("slug", [Q8, IQ4])
@pytest.mark.parametrize("form", ["native", "docker"])
def test_each_flag_is_given_once(catalog: Catalog, slug: str, form: Form) -> None:
    for env in ({}, {"ENABLE_THINKING": "1"}, {"SPEC_N": "0"}):
        flags = [word for word in plan(catalog, slug, env, form).argv if word.startswith("-")]
        assert len(flags) == len(set(flags))


def test_drafting_off_leaves_its_flags_out(catalog: Catalog) -> None:
    assert flag(plan(catalog, Q8).argv, "--spec-draft-n-max") == "2"
    assert not any("spec" in word for word in plan(catalog, Q8, {"SPEC_N": "0"}).argv)


def test_projector_only_where_the_tier_has_one(catalog: Catalog) -> None:
    assert flag(plan(catalog, IQ4).argv, "--mmproj") == "/srv/models/qwen3.8-27b-gguf/mmproj-F16.gguf"
    assert "--mmproj" not in plan(catalog, Q8).argv


def test_split_gives_the_last_card_less(catalog: Catalog) -> None:
    argv = plan(catalog, Q8).argv
    assert (flag(argv, "--split-mode"), flag(argv, "--tensor-split")) == ("layer", "0.55,0.45")


def test_context_is_for_all_requests_together(catalog: Catalog) -> None:
    argv = plan(catalog, Q8, {"MAX_NUM_SEQS": "2", "CTX_SIZE": "65536"}).argv
    assert (flag(argv, "--ctx-size"), flag(argv, "--parallel")) == ("131072", "2")


def test_thinking_sets_reasoning_and_sampler_together(catalog: Catalog) -> None:
    off, on = plan(catalog, Q8).argv, plan(catalog, Q8, {"ENABLE_THINKING": "true"}).argv
    assert (flag(off, "--reasoning"), flag(off, "--temp"), flag(off, "--presence-penalty")) == ("off", "0.7", "1.5")
    assert (flag(on, "--reasoning"), flag(on, "--temp"), flag(on, "--presence-penalty")) == ("on", "1.0", "0.0")


def test_one_gpu_is_one_gpu(catalog: Catalog) -> None:
    assert plan(catalog, IQ4).env == {"CUDA_VISIBLE_DEVICES": "0"}
    assert plan(catalog, Q8, {"GPUS": "1, 3"}).env == {"CUDA_VISIBLE_DEVICES": "1,3"}
    inside = plan(catalog, Q8, {"GPUS": "1,3"}, form="docker")
    assert inside.container is not None
    assert (inside.container.gpus, dict(inside.env)) == (("1", "3"), {})

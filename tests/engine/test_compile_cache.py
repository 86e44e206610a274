"""vLLM's compiled code has a folder for each set of GPUs."""

from pathlib import Path

from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.engine.compile_cache import CACHE_VARIABLE, cache_by_gpus
from redline.engine.home import EngineHome, at_home
from redline.engine.launch_plan import LaunchPlan
from redline.engine.registry import get_engine
from redline.rig.detect import detect_rig
from redline.settings import Layers, Sourced

TIER = "vllm/smollm2-135m-single-max"


def plan_on(catalog: Catalog, gpus: str | None, slug: str = TIER) -> LaunchPlan:
    layers = Layers(cli={"GPUS": Sourced(gpus, "cli:--gpus")} if gpus else {})
    tier = resolve(catalog, slug, layers)
    return get_engine(tier.key.engine).launch_plan(catalog, tier, detect_rig(), Path("/models"))


def test_two_gpus_never_share_compiled_code(catalog: Catalog) -> None:
    environ = {"HOME": "/home/somebody"}
    roots = [cache_by_gpus(plan_on(catalog, gpus), environ).env[CACHE_VARIABLE] for gpus in ("0", "1", "0,1")]
    assert roots == [f"/home/somebody/.cache/vllm/gpus-{name}" for name in ("0", "1", "0-1")]


def test_it_lies_below_the_folder_that_was_asked_for(catalog: Catalog) -> None:
    plan = plan_on(catalog, "GPU-1f2e,GPU-3d4c")
    assert cache_by_gpus(plan, {"XDG_CACHE_HOME": "/c"}).env[CACHE_VARIABLE] == "/c/vllm/gpus-GPU-1f2e-GPU-3d4c"
    assert cache_by_gpus(plan, {CACHE_VARIABLE: "/v", "HOME": "/h"}).env[CACHE_VARIABLE].startswith("/v/gpus-")
    home = EngineHome(
        name="x", kind="vllm", version="0.33.0", interpreter="/py", environment={CACHE_VARIABLE: "/of/home"}
    )
    assert cache_by_gpus(at_home(plan, home, {}), {CACHE_VARIABLE: "/v"}).env[CACHE_VARIABLE].startswith("/of/home/")


def test_who_names_no_gpus_keeps_the_engines_own_folder(catalog: Catalog) -> None:
    plan = plan_on(catalog, None)
    assert cache_by_gpus(plan, {"HOME": "/h"}) == plan
    other = plan_on(catalog, None, "llamacpp/smollm2-135m-cpu-fast")
    assert cache_by_gpus(other, {"HOME": "/h"}) == other

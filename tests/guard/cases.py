"""For every guard a case in which it speaks and one in which it is silent, as data."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from redline.artifacts.disk import ArtifactOnDisk, DiskFacts, DraftOnDisk, Presence
from redline.catalog.resolve import resolve
from redline.catalog.types import Catalog
from redline.guard.context import GuardContext
from redline.guard.finding import Severity
from redline.plan.types import FitPlan, Verdict
from redline.rig.types import Gpu, Rig
from redline.settings import Layers

ULTRA, SUPER, FAST = (f"vllm/qwen38-27b-dual-{name}" for name in ("ultrafast", "superfast", "fast"))
MAX, NVFP4, DFLASH15 = (f"vllm/qwen38-27b-dual-{name}" for name in ("max", "nvfp4", "dflash15-fast"))
MULTI4 = "vllm/qwen38-27b-multi4-superfast"
Q8, IQ4 = "llamacpp/qwen38-27b-dual-q8kxl", "llamacpp/qwen38-27b-single-iq4xs"
CPU = "llamacpp/smollm2-135m-cpu-fast"
REFUSE, WARN = Severity.REFUSE, Severity.WARN


def gpus(count: int, compute: str = "8.6", name: str = "RTX 3090") -> tuple[Gpu, ...]:
    return tuple(
        Gpu(
            index=index,
            name=name,
            uuid=f"GPU-{compute}-{index}",
            memory_total_bytes=24 * 2**30,
            memory_free_bytes=23 * 2**30,
            compute=compute,
        )
        for index in range(count)
    )


def draft(block_size: int | None, context: int | None = None) -> DiskFacts:
    return DiskFacts(artifacts=(), draft=DraftOnDisk(path="/m/config.json", block_size=block_size, context_max=context))


def found(
    artifact: str, presence: Presence, missing: tuple[str, ...] = (), outside: tuple[str, ...] = ()
) -> ArtifactOnDisk:
    return ArtifactOnDisk(
        artifact=artifact, folder=f"/m/{artifact}", presence=presence, missing=missing, outside=outside
    )


INT4, W4A16 = "qwen3.8-27b-autoround-int4", "qwen3.8-27b-dflash2-w4a16"
WHOLE = DiskFacts(artifacts=(found(INT4, Presence.PRESENT), found(W4A16, Presence.PRESENT)))


@dataclass(frozen=True)
class Case:
    """A tier with what the user set and what the machine is; then what one guard says of it, or None."""

    slug: str
    severity: Severity | None
    words: str = ""
    override: str | None = None
    env: dict[str, str] = field(default_factory=dict)
    dotenv: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    rig: dict[str, Any] = field(default_factory=dict)
    fit: Verdict = Verdict.FIT
    change: Callable[[Catalog], Catalog] | None = None

    def context(self, catalog: Catalog) -> GuardContext:
        if self.change:
            catalog = self.change(catalog)
        layers = Layers(environ=self.env, dotenv=self.dotenv)
        tier = resolve(catalog, self.slug, layers)
        rig = Rig(
            cpu_model="cpu",
            cpus=8,
            memory_total_bytes=64 * 2**30,
            memory_available_bytes=60 * 2**30,
            kernel="6.8",
            **{"wsl": False, "gpus": gpus(8), "driver_version": "580.65", **self.rig},
        )
        plan = FitPlan(slug=tier.slug, verdict=self.fit, reasons=("why",), devices=(), context=1, largest_context=None)
        return GuardContext(catalog=catalog, tier=tier, rig=rig, fit=plan, layers=layers, **self.more)


def without_native_dflash2(catalog: Catalog) -> Catalog:
    engine = catalog.engines["vllm"]
    old = replace(engine, pin="0.27.1")
    return replace(catalog, engines={**catalog.engines, "vllm": old})


def without_block_size(catalog: Catalog) -> Catalog:
    drafter = replace(catalog.drafters["qwen3.8-27b-dflash2"], checkpoint=None)
    return replace(catalog, drafters={**catalog.drafters, drafter.id: drafter})


def with_foreign_target(catalog: Catalog) -> Catalog:
    drafter = replace(catalog.drafters["qwen3.8-27b-mtp"], targets=("qwen3.6-27b",))
    return replace(catalog, drafters={**catalog.drafters, drafter.id: drafter})


# id of the guard -> a case in which it speaks, and one in which it is silent though it was close to speaking.
TABLE: dict[str, tuple[Case, Case]] = {
    "tier-status": (
        Case(FAST, REFUSE, "is experimental", "--allow-experimental"),
        Case(CPU, None),
    ),
    "context-max": (
        Case(CPU, REFUSE, "more than SmolLM2", env={"MAX_MODEL_LEN": "16384"}),
        Case(CPU, None, env={"MAX_MODEL_LEN": "8192"}),
    ),
    "memory-fit": (
        Case(FAST, REFUSE, "does not fit", "--ignore-vram", fit=Verdict.NO),
        Case(FAST, None, fit=Verdict.FIT),
    ),
    "gpu-count": (
        Case(FAST, REFUSE, "needs 2 GPUs and this machine shows 1", "--ignore-hardware", rig={"gpus": gpus(1)}),
        Case(FAST, None, rig={"gpus": gpus(2)}),
    ),
    "gpu-mixed": (
        Case(
            FAST, REFUSE, "different kinds", "--ignore-hardware", rig={"gpus": (*gpus(1), *gpus(2, "12.0", "RTX 5090"))}
        ),
        Case(FAST, None, env={"GPUS": "1,2"}, rig={"gpus": (*gpus(1, "12.0"), *gpus(3)[1:])}),
    ),
    "port-taken": (
        Case(CPU, REFUSE, "held by process 7", more={"port_holder": "process 7 (python)"}),
        Case(CPU, None),
    ),
    "open-address": (
        Case(CPU, REFUSE, "anyone who reaches", env={"BIND_HOST": "0.0.0.0"}),
        Case(CPU, None, env={"BIND_HOST": "0.0.0.0"}, more={"api_key_given": True}),
    ),
    "key-file-open": (
        Case(CPU, REFUSE, "chmod 600", env={"BIND_HOST": "0.0.0.0"}, more={"key_file_open": "/home/u/.env"}),
        Case(CPU, None, more={"key_file_open": "/home/u/.env"}),
    ),
    "secret-in-arguments": (
        Case(FAST, REFUSE, "can be read by every user", env={"ENGINE_ARGS": "--api-key=abc"}),
        Case(FAST, None, env={"ENGINE_ARGS": "--enforce-eager"}),
    ),
    "spec-depth": (
        Case(CPU, REFUSE, "has no drafter", env={"SPEC_N": "4"}),
        Case(CPU, None, env={"SPEC_N": "0"}),
    ),
    "drafter-depth": (
        Case(ULTRA, REFUSE, "block_size 8 wants 7", "--experiment drafter-depth", env={"SPEC_N": "15"}),
        Case(ULTRA, None, env={"SPEC_N": "0"}),
    ),
    "drafter-differs": (
        Case(ULTRA, REFUSE, "not the checkpoint", "--experiment drafter-differs", more={"disk": draft(16)}),
        Case(ULTRA, None, more={"disk": draft(8)}),
    ),
    "drafter-range": (
        Case(FAST, WARN, "lies outside 1 to 6", env={"SPEC_N": "7"}),
        Case(FAST, None, env={"SPEC_N": "6"}),
    ),
    "drafter-target": (
        Case(FAST, REFUSE, "was trained on qwen3.6-27b", change=with_foreign_target),
        Case(FAST, None),
    ),
    "drafter-runner": (
        Case(ULTRA, REFUSE, "forces the V1 runner", env={"VLLM_USE_V2_MODEL_RUNNER": "0"}),
        Case(ULTRA, None, env={"VLLM_USE_V2_MODEL_RUNNER": "1"}),
    ),
    "drafter-pipeline": (
        Case(MULTI4, REFUSE, "does not carry its hidden layers", env={"PP": "2", "TP": "2"}),
        Case(MULTI4, None, env={"PP": "2", "TP": "2", "SPEC_N": "0"}),
    ),
    "drafter-context": (
        Case(
            ULTRA,
            REFUSE,
            "more than the drafter's own 40960",
            "--experiment drafter-context",
            more={"disk": draft(8, 40960)},
        ),
        Case(ULTRA, None, env={"MAX_MODEL_LEN": "40960"}, more={"disk": draft(8, 40960)}),
    ),
    "drafter-fp8-depth": (
        Case(SUPER, WARN, "retracted"),
        Case(SUPER, None, env={"MAX_MODEL_LEN": "12000"}),
    ),
    "flash-attention-fp8": (
        Case(ULTRA, REFUSE, "runs FlashAttention 2", env={"KV_CACHE_DTYPE": "fp8_e4m3"}),
        Case(ULTRA, None, env={"KV_CACHE_DTYPE": "fp8_e4m3"}, rig={"gpus": gpus(2, "9.0", "H200")}),
    ),
    "cache-type": (
        Case(FAST, REFUSE, "no cache type of vLLM 0.33.0", env={"KV_CACHE_DTYPE": "q8_0"}),
        Case(IQ4, None, env={"KV_CACHE_DTYPE": "q8_0"}),
    ),
    "cache-weights": (
        Case(MAX, REFUSE, "does not go with fp8 weights", env={"KV_CACHE_DTYPE": "fp8_e5m2"}),
        Case(FAST, None, env={"KV_CACHE_DTYPE": "fp8_e5m2"}),
    ),
    "w4a8-weights": (
        Case(MAX, REFUSE, "symmetric four-bit", env={"W4A8": "1"}),
        Case(MAX, None, env={"W4A8": "0"}),
    ),
    "w4a8-engine": (
        Case(FAST, REFUSE, "not wired for auto_round", env={"W4A8": "1"}),
        Case(FAST, None, env={"W4A8": "0"}),
    ),
    "flashinfer-compiler": (
        Case(SUPER, REFUSE, "no nvcc is here", more={"form": "native", "nvcc": False}),
        Case(ULTRA, None, more={"form": "native", "nvcc": False}),
    ),
    "tensor-parallel": (
        Case(FAST, REFUSE, "4 cache heads over 3 GPUs", env={"TP": "3"}),
        Case(FAST, None, env={"TP": "8"}),
    ),
    "dense-data-parallel": (
        Case(FAST, REFUSE, "is dense", env={"ENGINE_ARGS": "--data-parallel-size 2 --data-parallel-rank=0"}),
        Case(FAST, None, env={"ENGINE_ARGS": "--data-parallel-size 2"}),
    ),
    "engine-args-twice": (
        Case(
            FAST,
            REFUSE,
            "redline gives --max-model-len",
            env={"ENGINE_ARGS": "--max-model-len 5"},
        ),
        Case(FAST, None, env={"ENGINE_ARGS": "--no-async-scheduling"}),
    ),
    "all-reduce-allocator": (
        Case(
            FAST,
            REFUSE,
            "cannot be shared",
            env={"NVLINK_MODE": "force_on", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
        ),
        Case(FAST, None, env={"NVLINK_MODE": "force_on"}),
    ),
    "draft-on-last-card": (
        Case(Q8, REFUSE, "lies whole on the last card", "--ignore-vram", env={"TENSOR_SPLIT": "1,1"}),
        Case(Q8, None),
    ),
    "undeclared": (
        Case(DFLASH15, REFUSE, "qwen3.8-27b-autoround-fast, qwen3.8-27b-dflash2-b16"),
        Case(ULTRA, None),
    ),
    "spans-machines": (
        Case(ULTRA, REFUSE, "--as multinode", env={"ENGINE_ARGS": "--nnodes 2"}),
        Case(ULTRA, None, env={"ENGINE_ARGS": "--seed 1"}),
    ),
    "outside-mount": (
        Case(
            ULTRA,
            REFUSE,
            "lead out of the models folder",
            more={
                "form": "docker",
                "disk": DiskFacts(artifacts=(found(INT4, Presence.PRESENT, outside=("config.json",)),)),
            },
        ),
        Case(
            ULTRA,
            None,
            more={
                "form": "native",
                "disk": DiskFacts(artifacts=(found(INT4, Presence.PRESENT, outside=("config.json",)),)),
            },
        ),
    ),
    "driver-old": (
        Case(FAST, REFUSE, "older than vLLM 0.33.0 needs", "--ignore-hardware", rig={"driver_version": "570.12"}),
        Case(FAST, None, rig={"driver_version": "580.65.06"}),
    ),
    "wsl-allocator": (
        Case(
            FAST,
            REFUSE,
            "fails under WSL2",
            "--ignore-hardware",
            env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
            rig={"wsl": True},
        ),
        Case(FAST, None, rig={"wsl": True}),
    ),
    "fp4-without-hardware": (
        Case(NVFP4, WARN, "no four-bit floats"),
        Case(NVFP4, None, rig={"gpus": gpus(2, "12.0", "RTX 5090")}),
    ),
    "sampler-row": (
        Case(ULTRA, WARN, "TEMP=1 (env:TEMP)", env={"TEMP": "1.0", "TOP_P": "0.95"}),
        Case(
            ULTRA,
            None,
            env={"ENABLE_THINKING": "true", "TEMP": "1.0", "TOP_P": "0.95", "PRESENCE_PENALTY": "0.0"},
        ),
    ),
    "reasoning-effort": (
        Case(ULTRA, REFUSE, "is no effort of Qwen3.8-27B", env={"REASONING_EFFORT": "high"}),
        Case(ULTRA, None, env={"REASONING_EFFORT": "medium"}),
    ),
    "setting-unused": (
        Case(IQ4, WARN, "llama.cpp has no such thing", env={"GPU_MEMORY_UTILIZATION": "0.9"}),
        Case(FAST, None, env={"GPU_MEMORY_UTILIZATION": "0.9"}),
    ),
    "setting-unknown": (
        Case(FAST, WARN, "MEM_UTIL in .env", dotenv={"MEM_UTIL": "0.9"}),
        Case(FAST, None, dotenv={"GPU_MEMORY_UTILIZATION": "0.9"}),
    ),
}

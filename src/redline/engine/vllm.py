"""vLLM: a tier into `vllm serve`, native or in its container; its counters. Its stages and faults are data.

A flag is given only where the version is known to take it. Everything vLLM would choose by itself and the tier does
not settle is left out.
"""

import json
from pathlib import Path
from typing import Any, Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.knobs import split_engine_args
from redline.catalog.types import Catalog, DrafterKind, EngineVersion
from redline.engine.counters import Counters, parse_prometheus
from redline.engine.interconnect import allocator_settings, interconnect
from redline.engine.launch_plan import Container, LaunchPlan, Mount, Readiness, StagePattern, StopPolicy
from redline.engine.protocol import Form
from redline.engine.signatures import boot_markers_of
from redline.engine.stages import stages_of
from redline.errors import UsageError
from redline.rig.types import Rig

CONTAINER_MODELS: Final = "/models"
CONTAINER_PORT: Final = 8000
SHUTDOWN_S: Final = 30

# Sample names of vLLM's /metrics (vllm 0.33.0 v1/metrics/loggers.py and v1/spec_decode/metrics.py).
COUNTER_NAMES: Final = {
    "vllm:prompt_tokens_total": "prompt_tokens",
    "vllm:prompt_tokens_cached_total": "cached_prompt_tokens",
    "vllm:request_prefill_time_seconds_sum": "prompt_seconds",
    "vllm:generation_tokens_total": "generated_tokens",
    "vllm:request_decode_time_seconds_sum": "generation_seconds",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_draft_tokens_total": "draft_tokens",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "vllm:spec_decode_num_accepted_tokens_per_pos_total": "accepted_by_position",
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
    "vllm:num_preemptions_total": "preemptions",
}


class Vllm:
    """vLLM's OpenAI-compatible server."""

    id = "vllm"

    @property
    def stages(self) -> tuple[StagePattern, ...]:
        """What its log says about how far a boot is."""
        return stages_of(self.id)

    def launch_plan(
        self, catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path, form: Form | None = None
    ) -> LaunchPlan:
        """Return the process, or the container's, that serves a tier; native unless told otherwise.

        Raises:
            UsageError: there is no such form, or the version has none.
        """
        version = catalog.engines[self.id].version(tier.engine_version.value)
        chosen = form or "native"
        if version is None or chosen not in version.forms or (chosen == "docker" and version.image is None):
            raise UsageError(
                f"vLLM {tier.engine_version.value} is not started as {chosen} here.",
                next_step=f"Forms it has: {', '.join(version.forms) if version else 'none that are known'}.",
            )
        inside = chosen == "docker"
        root = CONTAINER_MODELS if inside else str(models_dir)
        arguments = serve_arguments(catalog, tier, version, root)
        host, port = ("0.0.0.0", CONTAINER_PORT) if inside else (tier.bind_host.value, tier.port.value)  # noqa: S104 -- inside a container; published on the tier's own address
        return LaunchPlan(
            slug=tier.slug,
            engine=self.id,
            engine_version=version.version,
            form=chosen,
            argv=(
                *("vllm", "serve"),
                *arguments,
                *("--host", host, "--port", str(port)),
                *split_engine_args(tier.engine_args.value),
            ),
            host=tier.bind_host.value,
            port=tier.port.value,
            served_model=tier.served_name.value,
            env=environment(catalog, tier, rig, version),
            secret_env=("VLLM_API_KEY",),
            secret_aliases={"VLLM_API_KEY": "REDLINE_API_KEY"},
            container=_container(tier, version) if inside else None,
            mounts=(Mount(source=str(models_dir), target=CONTAINER_MODELS),) if inside else (),
            readiness=Readiness(model=tier.served_name.value, timeout_s=1800),
            stop=StopPolicy(grace_s=SHUTDOWN_S + 15),
            stages=stages_of(self.id, version.version),
            boot_markers=boot_markers_of(self.id),
        )

    def parse_counters(self, text: str) -> Counters:
        """Return vLLM's counters.

        Raises:
            ValueError: not Prometheus text.
        """
        return parse_prometheus(text, COUNTER_NAMES)


def serve_arguments(catalog: Catalog, tier: ResolvedTier, version: EngineVersion, root: str) -> list[str]:
    """Return what follows `vllm serve`, without address and the user's own additions, in one fixed order."""
    artifact = catalog.artifacts[tier.artifact.value]
    names = [tier.served_name.value, *filter(None, (tier.served_aliases.value or "").split(","))]
    options: list[tuple[str, Any]] = [
        ("quantization", tier.quantization.value),
        ("dtype", tier.dtype.value),
        ("tensor-parallel-size", tier.tensor_parallel.value),
        ("pipeline-parallel-size", tier.pipeline_parallel.value if (tier.pipeline_parallel.value or 1) > 1 else None),
        ("device-ids", tier.gpu_ids.value if version.can("device_ids") else None),
        ("max-model-len", tier.max_model_len.value),
        ("gpu-memory-utilization", tier.gpu_memory_utilization.value),
        ("max-num-seqs", tier.max_num_seqs.value),
        ("max-num-batched-tokens", tier.batch_tokens.value),
        ("long-prefill-token-threshold", tier.long_prefill_threshold.value or None),
        ("kv-cache-dtype", tier.kv_cache_dtype.value),
        ("attention-backend", tier.attention_backend.value),
        ("gdn-prefill-backend", tier.gdn_prefill_backend.value if version.can("gdn_prefill_backend") else None),
        ("reasoning-parser", tier.reasoning_parser.value),
        ("tool-call-parser", tier.tool_parser.value),
        ("default-chat-template-kwargs", _template_defaults(tier)),
        ("override-generation-config", _sampler(tier)),
        ("speculative-config", speculative_config(catalog, tier, root)),
        (
            "per-request-spec-decode-metrics",
            "summary" if version.can("per_request_spec_metrics") and tier.spec_n.value else None,
        ),
        ("shutdown-timeout", SHUTDOWN_S if version.can("shutdown_timeout") else None),
    ]
    arguments = [f"{root}/{artifact.place}", "--served-model-name", *names]
    for name, value in options:
        if value is not None:
            arguments += [f"--{name}", str(value)]
    arguments.append("--enable-prefix-caching" if tier.prefix_caching.value else "--no-enable-prefix-caching")
    arguments.append("--enable-chunked-prefill")
    if tier.tool_parser.value is not None:
        arguments.append("--enable-auto-tool-choice")
    if tier.gpus > 1 and not interconnect(tier).custom_all_reduce:
        arguments.append("--disable-custom-all-reduce")
    return arguments


def speculative_config(catalog: Catalog, tier: ResolvedTier, root: str) -> str | None:
    """Return the JSON of `--speculative-config`, or None where nothing drafts."""
    drafter = catalog.drafters[tier.drafter.value]
    method = drafter.methods.get("vllm")
    if drafter.kind is DrafterKind.NONE or method is None or not tier.spec_n.value:
        return None
    config: dict[str, Any] = {"method": method, "num_speculative_tokens": tier.spec_n.value}
    if tier.lookup_key_tokens.value:
        key_tokens = tier.lookup_key_tokens.value
        config |= {"prompt_lookup_min": key_tokens, "prompt_lookup_max": key_tokens}
    if drafter.artifact is not None:
        config["model"] = f"{root}/{catalog.artifacts[drafter.artifact].place}"
    return _json(config)


def environment(catalog: Catalog, tier: ResolvedTier, rig: Rig, version: EngineVersion) -> dict[str, str]:
    """Return the variables of the engine. A variable is never set to nothing, which vLLM would refuse or misread."""
    links = interconnect(tier)
    found = {name: default.value for name, default in version.environment.items()}
    if tier.gpus > 1:
        if links.p2p_disabled:
            found["NCCL_P2P_DISABLE"] = "1"
        elif links.level is not None:
            found["NCCL_P2P_LEVEL"] = links.level
    allocator = allocator_settings(tier, rig)
    if allocator:
        found["PYTORCH_CUDA_ALLOC_CONF"] = allocator
    if rig.wsl and version.can("wsl2_pinned_memory"):
        found["VLLM_WSL2_ENABLE_PIN_MEMORY"] = "1"
    quantization = catalog.artifacts[tier.artifact.value].quantization
    method = quantization.method if quantization else ""
    if method.startswith(("fp8", "modelopt")) and any(gpu.compute in version.without_deep_gemm for gpu in rig.gpus):
        found["VLLM_USE_DEEP_GEMM"] = "0"
    # Only its absence means off: vLLM takes int8 or fp8 and refuses an empty value (vllm 0.33.0 envs.py:1560).
    if tier.w4a8.value:
        found["VLLM_MARLIN_INPUT_DTYPE"] = "int8"
    return dict(sorted(found.items()))


def _template_defaults(tier: ResolvedTier) -> str | None:
    defaults: dict[str, Any] = {"enable_thinking": tier.enable_thinking.value}
    if tier.reasoning_effort.value is not None:
        defaults["reasoning_effort"] = tier.reasoning_effort.value
    return _json(defaults)


def _sampler(tier: ResolvedTier) -> str:
    return _json(
        {
            "temperature": tier.temperature.value,
            "top_p": tier.top_p.value,
            "top_k": tier.top_k.value,
            "min_p": tier.min_p.value,
            "presence_penalty": tier.presence_penalty.value,
            "repetition_penalty": tier.repetition_penalty.value,
        }
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def _container(tier: ResolvedTier, version: EngineVersion) -> Container:
    assert version.image is not None
    named = tier.gpu_ids.value
    return Container(
        image=version.image,
        port=CONTAINER_PORT,
        gpu_count=max(1, tier.gpus),
        gpus=tuple(word.strip() for word in named.split(",")) if named else None,
        shm_gib=16,
        ipc_host=True,
        volumes={"redline-vllm-cache": "/root/.cache/vllm", "redline-triton-cache": "/root/.triton"},
    )

"""llama-server: a GGUF tier into its command line, native or in its container.

Each flag is given once: of two the server takes the last and calls it deprecated (b11434 common/arg.cpp:836). Flags of
drafting are left out when nothing drafts, since a depth of 0 keeps the draft context's memory.
"""

from pathlib import Path
from typing import Any, Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.knobs import split_engine_args
from redline.catalog.types import Catalog, EngineVersion
from redline.engine.launch_plan import Container, LaunchPlan, Mount, Readiness, StopPolicy
from redline.engine.protocol import Form
from redline.engine.signatures import boot_markers_of
from redline.engine.stages import stages_of
from redline.errors import UsageError

CONTAINER_MODELS: Final = "/models"
CONTAINER_PORT: Final = 8080


def server_plan(catalog: Catalog, tier: ResolvedTier, models_dir: Path, form: Form) -> LaunchPlan:
    """Return the process, or the container's, that serves a GGUF tier on GPUs.

    Raises:
        UsageError: the version has no such form.
    """
    version = catalog.engines["llamacpp"].version(tier.engine_version.value)
    if version is None or form not in version.forms or (form == "docker" and version.image is None):
        raise UsageError(
            f"llama.cpp {tier.engine_version.value} is not started as {form} here.",
            next_step=f"Forms it has: {', '.join(version.forms) if version else 'none that are known'}.",
        )
    inside = form == "docker"
    root = CONTAINER_MODELS if inside else str(models_dir)
    host, port = ("0.0.0.0", CONTAINER_PORT) if inside else (tier.bind_host.value, tier.port.value)  # noqa: S104 -- inside a container; published on the tier's own address
    gpus = _gpu_ids(catalog, tier)
    return LaunchPlan(
        slug=tier.slug,
        engine="llamacpp",
        engine_version=version.version,
        form=form,
        argv=(
            "llama-server",
            *server_arguments(catalog, tier, version, root),
            *("--host", host, "--port", str(port)),
            *split_engine_args(tier.engine_args.value),
        ),
        host=tier.bind_host.value,
        port=tier.port.value,
        served_model=tier.served_name.value,
        # Without this a tier of one GPU would spread over all that are there. A container sees only its own.
        env={} if inside else {"CUDA_VISIBLE_DEVICES": ",".join(gpus)},
        secret_env=("LLAMA_API_KEY",),
        secret_aliases={"LLAMA_API_KEY": "REDLINE_API_KEY"},
        container=_container(tier, version, gpus) if inside else None,
        mounts=(Mount(source=str(models_dir), target=CONTAINER_MODELS),) if inside else (),
        readiness=Readiness(model=tier.served_name.value, timeout_s=900),
        stop=StopPolicy(grace_s=15),
        stages=stages_of("llamacpp", version.version),
        boot_markers=boot_markers_of("llamacpp"),
    )


def server_arguments(catalog: Catalog, tier: ResolvedTier, version: EngineVersion, root: str) -> list[str]:
    """Return what follows `llama-server`, without address and the user's own additions, in one fixed order."""
    artifact = catalog.artifacts[tier.artifact.value]
    projector = catalog.artifacts[tier.projector.value] if tier.projector.value else None
    options: list[tuple[str, Any]] = [
        ("model", f"{root}/{artifact.place}/{artifact.files[0].path}"),
        ("mmproj", f"{root}/{projector.place}/{projector.files[0].path}" if projector else None),
        ("alias", tier.served_name.value),
        ("ctx-size", tier.max_model_len.value * tier.max_num_seqs.value),
        ("parallel", tier.max_num_seqs.value),
        ("batch-size", tier.logical_batch_tokens.value),
        ("ubatch-size", tier.batch_tokens.value),
        ("n-gpu-layers", tier.gpu_layers.value),
        ("split-mode", tier.split_mode.value),
        ("tensor-split", tier.tensor_split.value),
        ("flash-attn", tier.flash_attention.value),
        ("cache-type-k", tier.kv_cache_dtype.value),
        ("cache-type-v", tier.kv_cache_dtype.value),
        ("cache-ram", tier.prompt_cache_mib.value),
        ("threads", tier.threads.value),
        ("image-min-tokens", tier.image_min_tokens.value if projector else None),
        *_drafting(catalog, tier, root),
        ("reasoning", "on" if tier.enable_thinking.value else "off"),
        ("reasoning-format", tier.reasoning_parser.value),
        ("reasoning-effort", tier.reasoning_effort.value if version.can("reasoning_effort") else None),
        ("temp", tier.temperature.value),
        ("top-p", tier.top_p.value),
        ("top-k", tier.top_k.value),
        ("min-p", tier.min_p.value),
        ("presence-penalty", tier.presence_penalty.value),
        ("repeat-penalty", tier.repetition_penalty.value),
        # redline planned the memory; llama.cpp must not shrink the context silently.
        ("fit", "off"),
    ]
    arguments = [word for name, value in options if value is not None for word in (f"--{name}", str(value))]
    return [*arguments, "--jinja", "--metrics", "--no-ui"]


def _drafting(catalog: Catalog, tier: ResolvedTier, root: str) -> list[tuple[str, Any]]:
    drafter = catalog.drafters[tier.drafter.value]
    method = drafter.methods.get("llamacpp")
    if method is None or not tier.spec_n.value:
        return []
    options: list[tuple[str, Any]] = [("spec-type", method), ("spec-draft-n-max", tier.spec_n.value)]
    if drafter.artifact is not None:
        draft = catalog.artifacts[drafter.artifact]
        options.append(("spec-draft-model", f"{root}/{draft.place}/{draft.files[0].path}"))
    return options


def _gpu_ids(catalog: Catalog, tier: ResolvedTier) -> tuple[str, ...]:
    if tier.gpu_ids.value:
        return tuple(word.strip() for word in tier.gpu_ids.value.split(","))
    return tuple(str(index) for index in range(catalog.topologies[tier.key.topology].gpus))


def _container(tier: ResolvedTier, version: EngineVersion, gpus: tuple[str, ...]) -> Container:
    assert version.image is not None
    return Container(
        image=version.image,
        port=CONTAINER_PORT,
        gpu_count=max(1, len(gpus)),
        gpus=gpus if tier.gpu_ids.value else None,
        entrypoint=("/app/llama-server",),
    )

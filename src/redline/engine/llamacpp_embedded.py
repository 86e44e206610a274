"""llama.cpp's embedded form: the worker process of redline that holds xllamacpp. Knows the worker's flags only."""

import sys
from pathlib import Path

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog, Drafter
from redline.engine.launch_plan import LaunchPlan, Readiness, StopPolicy
from redline.engine.signatures import boot_markers_of
from redline.engine.stages import stages_of
from redline.rig.types import Rig


def embedded_plan(catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path) -> LaunchPlan:
    """Return the worker process that serves a GGUF tier on the processor."""
    artifact = catalog.artifacts[tier.artifact.value]
    drafter = catalog.drafters[tier.drafter.value]
    options: dict[str, object] = {
        "model": models_dir / artifact.place / artifact.files[0].path,
        "alias": tier.served_name.value,
        "host": tier.bind_host.value,
        "port": tier.port.value,
        "ctx": tier.max_model_len.value * tier.max_num_seqs.value,
        "parallel": tier.max_num_seqs.value,
        "threads": tier.threads.value or rig.cpus,
        "ubatch": tier.batch_tokens.value,
        "cache-type": tier.kv_cache_dtype.value,
        "cache-ram": tier.prompt_cache_mib.value,
        "temp": tier.temperature.value,
        "top-p": tier.top_p.value,
        "top-k": tier.top_k.value,
        "min-p": tier.min_p.value,
        "presence-penalty": tier.presence_penalty.value,
        "repeat-penalty": tier.repetition_penalty.value,
    }
    if tier.spec_n.value:
        options |= _drafting(catalog, tier, drafter, models_dir)
    flags = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
    return LaunchPlan(
        slug=tier.slug,
        engine="llamacpp",
        engine_version=tier.engine_version.value,
        form="embedded",
        # -P: a folder named redline where the user stands must not shadow the installed package.
        argv=(sys.executable, "-P", "-m", "redline.engine.worker", *flags),
        # Threads that wait by spinning starve each other as soon as the machine has anything else to do: with
        # both cores of a two-core machine busy, decoding fell from 97 to 3 tokens a second.
        env={"OMP_WAIT_POLICY": "passive"},
        host=tier.bind_host.value,
        port=tier.port.value,
        served_model=tier.served_name.value,
        secret_env=("REDLINE_API_KEY",),
        readiness=Readiness(model=tier.served_name.value, timeout_s=300),
        stop=StopPolicy(grace_s=5),
        stages=stages_of("llamacpp"),
        boot_markers=boot_markers_of("llamacpp"),
    )


def _drafting(catalog: Catalog, tier: ResolvedTier, drafter: Drafter, models_dir: Path) -> dict[str, object]:
    """Return the worker's flags of a lookup, of a block drafter's file, or of both: llama.cpp asks the lookup first."""
    found: dict[str, object] = {}
    if drafter.lookup:
        found |= {
            "spec-type": drafter.lookup.type,
            "spec-key": tier.lookup_key_tokens.value,
            "spec-draft": drafter.lookup.draft_tokens if drafter.artifact else tier.spec_n.value,
            "spec-hits": tier.lookup_min_hits.value,
        }
    if drafter.artifact:
        artifact = catalog.artifacts[drafter.artifact]
        found |= {
            "draft-model": models_dir / artifact.place / artifact.files[0].path,
            "draft-type": drafter.methods["llamacpp"],
            "draft-max": tier.spec_n.value,
            "draft-least": drafter.least_sure,
        }
    return found

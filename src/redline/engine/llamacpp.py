"""llama.cpp: its embedded form and its counters. The stages and faults that its log shows are data."""

import sys
from pathlib import Path
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.engine.counters import Counters, parse_prometheus
from redline.engine.launch_plan import LaunchPlan, Readiness, StagePattern, StopPolicy
from redline.engine.stages import stages_of
from redline.rig.types import Rig

# Sample names of llama.cpp's /metrics (tools/server/server-context.cpp; seen on xllamacpp 2026.10.11549).
COUNTER_NAMES: Final = {
    "llamacpp:prompt_tokens_total": "prompt_tokens",
    "llamacpp:prompt_tokens_cached_total": "cached_prompt_tokens",
    "llamacpp:prompt_seconds_total": "prompt_seconds",
    "llamacpp:tokens_predicted_total": "generated_tokens",
    "llamacpp:tokens_predicted_seconds_total": "generation_seconds",
    "llamacpp:spec_decode_num_drafts_total": "drafts",
    "llamacpp:spec_decode_num_draft_tokens_total": "draft_tokens",
    "llamacpp:spec_decode_num_accepted_tokens_total": "accepted_tokens",
    "llamacpp:spec_decode_num_accepted_tokens_per_pos_total": "accepted_by_position",
    "llamacpp:requests_processing": "requests_running",
    "llamacpp:requests_deferred": "requests_waiting",
}


class LlamaCpp:
    """llama.cpp's own server, in a worker process of redline (xllamacpp)."""

    id = "llamacpp"

    @property
    def stages(self) -> tuple[StagePattern, ...]:
        """What its log says about how far a boot is."""
        return stages_of(self.id)

    def launch_plan(self, catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path) -> LaunchPlan:
        """Return the worker process that serves a GGUF tier on the processor."""
        artifact = catalog.artifacts[tier.artifact.value]
        drafter = catalog.drafters[tier.drafter.value]
        options: dict[str, object] = {
            "model": models_dir / artifact.id / artifact.files[0].path,
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
        if drafter.lookup and tier.spec_n.value:
            options |= {
                "spec-type": drafter.lookup.type,
                "spec-key": drafter.lookup.key_tokens,
                "spec-draft": tier.spec_n.value,
                "spec-hits": drafter.lookup.min_hits,
            }
        flags = [text for name, value in options.items() if value is not None for text in (f"--{name}", str(value))]
        return LaunchPlan(
            slug=tier.slug,
            engine=self.id,
            engine_version=tier.engine_version.value,
            form="embedded",
            # -P: a folder named redline where the user stands must not shadow the installed package.
            argv=(sys.executable, "-P", "-m", "redline.engine.worker", *flags),
            host=tier.bind_host.value,
            port=tier.port.value,
            served_model=tier.served_name.value,
            secret_env=("REDLINE_API_KEY",),
            readiness=Readiness(model=tier.served_name.value, timeout_s=300),
            stop=StopPolicy(grace_s=5),
            stages=self.stages,
        )

    def parse_counters(self, text: str) -> Counters:
        """Return llama.cpp's counters.

        Raises:
            ValueError: not Prometheus text.
        """
        return parse_prometheus(text, COUNTER_NAMES)

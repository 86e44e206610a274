"""llama.cpp: which of its forms serves a tier; its counters. The stages and faults its log shows are data."""

from pathlib import Path
from typing import Final

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.engine.counters import Counters, parse_prometheus
from redline.engine.launch_plan import LaunchPlan, StagePattern
from redline.engine.llamacpp_embedded import embedded_plan
from redline.engine.llamacpp_server import server_plan
from redline.engine.protocol import Form
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
    """llama.cpp's own server: embedded in a worker process of redline (xllamacpp), or llama-server."""

    id = "llamacpp"

    @property
    def stages(self) -> tuple[StagePattern, ...]:
        """What its log says about how far a boot is."""
        return stages_of(self.id)

    def launch_plan(
        self, catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path, form: Form | None = None
    ) -> LaunchPlan:
        """Return the worker of redline for a tier on the processor, llama-server for one on GPUs.

        Raises:
            UsageError: the tier has no such form.
        """
        on_processor = tier.key.topology == "cpu"
        chosen = form or ("embedded" if on_processor else "native")
        if chosen == "embedded" and on_processor:
            return embedded_plan(catalog, tier, rig, models_dir)
        return server_plan(catalog, tier, models_dir, chosen)

    def parse_counters(self, text: str) -> Counters:
        """Return llama.cpp's counters.

        Raises:
            ValueError: not Prometheus text.
        """
        return parse_prometheus(text, COUNTER_NAMES)

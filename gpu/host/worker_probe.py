"""What vLLM's worker knows about its own memory and pool, read from inside it. Knows attribute names of vLLM 0.33.0.

vLLM mixes this class into its worker (`worker_extension_cls`) on every GPU, so the numbers are exact where its log
rounds to hundredths of a GiB. A number that this version does not have is None.
"""

from typing import Any


class WorkerProbe:
    """Methods that `collective_rpc` calls by name."""

    def redline_facts(self) -> dict[str, Any]:
        """Bytes and blocks of this worker after its start."""
        runner = self.model_runner  # type: ignore[attr-defined]
        cache = getattr(runner, "kv_cache_config", None)
        snapshot = getattr(self, "init_snapshot", None)
        return {
            "available_bytes": _int(self, "available_kv_cache_memory_bytes"),
            "requested_bytes": _int(self, "requested_memory"),
            "consumed_bytes": _int(self, "total_consumed"),
            "activation_bytes": _int(self, "peak_activation_memory"),
            "graph_estimate_bytes": _int(self, "cudagraph_memory_estimate"),
            "weights_bytes": _int(runner, "model_memory_usage"),
            "total_bytes": _int(snapshot, "total_memory"),
            "free_at_start_bytes": _int(snapshot, "free_memory"),
            "runner": type(runner).__module__,
            "num_blocks": _int(cache, "num_blocks"),
            "groups": [_group(group) for group in getattr(cache, "kv_cache_groups", [])],
        }

    def redline_accept(self, conditional_rates: list[float]) -> bool:
        """Change the synthetic acceptance of a running engine; False where it does not run with one."""
        sampler = getattr(self.model_runner, "rejection_sampler", None)  # type: ignore[attr-defined]
        rates = getattr(sampler, "synthetic_conditional_rates", None)
        if rates is None or len(rates) != len(conditional_rates):
            return False
        rates.copy_(rates.new_tensor(conditional_rates))
        return True


def _int(owner: Any, name: str) -> int | None:
    value = getattr(owner, name, None)
    return None if value is None else int(value)


def _group(group: Any) -> dict[str, Any]:
    spec = group.kv_cache_spec
    return {
        "layers": len(group.layer_names),
        "kind": type(spec).__name__,
        "block_tokens": _int(spec, "block_size"),
        "page_bytes": _int(spec, "page_size_bytes"),
    }

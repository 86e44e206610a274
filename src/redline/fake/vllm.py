"""vLLM's server, as it speaks. Shapes, names and messages of vLLM 0.33.0; the files are named where they are used."""

from collections.abc import Mapping
from typing import Any, Final

from redline.fake import tokens
from redline.fake.core import Job
from redline.fake.dialect import BaseDialect, Get, Refusal, sample
from redline.fake.prompt import chat_prompt

# vllm/v1/metrics/loggers.py and vllm/v1/spec_decode/metrics.py: name, kind, words.
_COUNTERS: Final = (
    ("num_preemptions", "Cumulative number of preemption from the engine."),
    ("prompt_tokens", "Number of prefill tokens processed."),
    ("prompt_tokens_cached", "Number of cached prompt tokens (local + external)."),
    ("generation_tokens", "Number of generation tokens processed."),
    ("prefix_cache_queries", "Prefix cache queries, in terms of number of queried tokens."),
    ("prefix_cache_hits", "Prefix cache hits, in terms of number of cached tokens."),
)
_SPEC_COUNTERS: Final = (
    ("spec_decode_num_drafts", "Number of spec decoding drafts."),
    ("spec_decode_num_draft_tokens", "Number of draft tokens."),
    ("spec_decode_num_accepted_tokens", "Number of accepted tokens."),
)
_SUMS: Final = (
    ("time_to_first_token_seconds", "Histogram of time to first token in seconds."),
    ("request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request."),
    ("request_decode_time_seconds", "Histogram of time spent in DECODE phase for request."),
)


class VllmDialect(BaseDialect):
    """See `dialect.Dialect`."""

    name = "vllm"
    headers: Mapping[str, str] = {"server": "uvicorn"}
    metrics_type = "text/plain; version=1.0.0; charset=utf-8"
    merges_steps = True
    serves_while_loading = False
    role_content: str | None = ""

    @property
    def reasoning_field(self) -> str:
        """The field that carries reasoning: `DeltaMessage` in vllm/entrypoints/generate/base/protocol.py."""
        field = self.scenario.wire.reasoning_field
        return "reasoning" if field in ("dialect", "inline") else field

    def envelope(self, data: dict[str, Any]) -> dict[str, Any]:
        """See `shapes.Style`. Only whole answers and last chunks carry the fingerprint."""
        if data.get("object") == "chat.completion" or data.get("usage"):
            return {**data, "system_fingerprint": f"vllm-{self.version}-tp1-fake"}
        return data

    def choice(self, data: dict[str, Any], *, last: bool) -> dict[str, Any]:
        """See `shapes.Style`."""
        return {**data, "logprobs": None, **({"stop_reason": None} if last else {}), "token_ids": None}

    def usage(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`. `UsageInfo` in vllm/entrypoints/serve/engine/protocol.py."""
        made = self._made(job)
        return {
            "prompt_tokens": job.prompt_tokens,
            "total_tokens": job.prompt_tokens + made,
            "completion_tokens": made,
            "prompt_tokens_details": self._cached(job),
        }

    def extras(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`. `--per-request-spec-decode-metrics summary`, vllm/v1/metrics/stats.py to_dict()."""
        drafter = self.scenario.drafter
        if drafter is None or not job.drafts:
            return {}
        histogram = job.accepted_histogram + [0] * (drafter.depth + 1 - len(job.accepted_histogram))
        metrics = {
            "mean_acceptance_length": 1.0 + job.accepted_tokens / job.drafts,
            "draft_acceptance_rate": job.accepted_tokens / job.drafted_tokens,
            "acceptance_histogram": histogram,
            "num_spec_steps": job.drafts,
            "num_accepted_draft_tokens": job.accepted_tokens,
            "num_draft_tokens": job.drafted_tokens,
            "num_spec_tokens": drafter.depth,
        }
        return {"metrics": {"speculative_decoding": metrics}}

    def answer_id(self, kind: str) -> str:
        """See `dialect.Dialect`."""
        return self._random_id({"text": "cmpl-"}.get(kind, "chatcmpl-"))

    def health(self) -> tuple[int, Any]:
        """See `dialect.Dialect`. An empty body: vllm/entrypoints/serve/instrumentator/health.py."""
        return 200, None

    def gets(self) -> dict[str, Get]:
        """See `dialect.Dialect`."""
        return {
            "/v1/models": lambda: (200, self._models()),
            "/version": lambda: (200, {"version": self.version}),
            "/server_info": lambda: (200, self._server_info()),
        }

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """See `dialect.Dialect`. vllm/entrypoints/serve/tokenize/protocol.py."""
        text = chat_prompt(body).text if "messages" in body else str(body.get("prompt", ""))
        ids = self.tokenizer.encode(text)
        strings = tokens.pieces(text) if body.get("return_token_strs") else None
        limit = self.scenario.model.context
        return {"count": len(ids), "max_model_len": limit, "tokens": ids, "token_strs": strings}

    def detokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """See `dialect.Dialect`."""
        return {"prompt": self.tokenizer.decode(body.get("tokens") or [])}

    def metrics(self) -> str:
        """See `dialect.Dialect`. Counters get `_total` from Prometheus' client; histograms here are sum and count."""
        totals = self.core.totals
        values: dict[str, float] = {
            "num_preemptions": totals.preemptions,
            "prompt_tokens": totals.prompt_tokens,
            "prompt_tokens_cached": totals.cached_tokens,
            "generation_tokens": totals.generated_tokens,
            "prefix_cache_queries": totals.cache_queries,
            "prefix_cache_hits": totals.cache_hits,
            "spec_decode_num_drafts": totals.drafts,
            "spec_decode_num_draft_tokens": totals.drafted_tokens,
            "spec_decode_num_accepted_tokens": totals.accepted_tokens,
            "time_to_first_token_seconds": totals.first_token_s,
            "request_prefill_time_seconds": totals.prefill_s,
            "request_decode_time_seconds": totals.decode_s,
        }
        labels = {"engine": "0", "model_name": self.model}
        lines: list[str] = []
        for name, words, value in (
            ("num_requests_running", "Number of requests in model execution batches.", totals.running),
            ("num_requests_waiting", "Number of requests waiting to be processed.", totals.waiting),
            ("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", self._kv_usage()),
        ):
            lines += [f"# HELP vllm:{name} {words}", f"# TYPE vllm:{name} gauge"]
            lines.append(sample(f"vllm:{name}", float(value), labels))
        for name, words in (*_COUNTERS, *(_SPEC_COUNTERS if self.scenario.drafter else ())):
            lines += [f"# HELP vllm:{name}_total {words}", f"# TYPE vllm:{name}_total counter"]
            lines.append(sample(f"vllm:{name}_total", float(values[name]), labels))
        if self.scenario.drafter:
            lines += self._by_position(labels, self.scenario.drafter.depth)
        lines += ["# HELP vllm:request_success_total Count of successfully processed requests."]
        lines += ["# TYPE vllm:request_success_total counter"]
        for reason in ("stop", "length", "abort"):
            count = totals.finished.get(reason, 0) + (totals.finished.get("tool_calls", 0) if reason == "stop" else 0)
            lines.append(sample("vllm:request_success_total", float(count), {**labels, "finished_reason": reason}))
        for name, words in _SUMS:
            lines += [f"# HELP vllm:{name} {words}", f"# TYPE vllm:{name} histogram"]
            lines.append(sample(f"vllm:{name}_bucket", float(totals.answered), {**labels, "le": "+Inf"}))
            lines.append(sample(f"vllm:{name}_count", float(totals.answered), labels))
            lines.append(sample(f"vllm:{name}_sum", float(values[name]), labels))
        return "\n".join([*lines, *self._cache_info()]) + "\n"

    def _by_position(self, labels: dict[str, str], depth: int) -> list[str]:
        name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        counts = self.core.totals.accepted_by_position
        counts = counts + [0] * (depth - len(counts))
        return [
            f"# HELP {name} Accepted tokens per draft position.",
            f"# TYPE {name} counter",
            *(sample(name, float(n), {**labels, "position": str(at)}) for at, n in enumerate(counts)),
        ]

    def _cache_info(self) -> list[str]:
        model = self.scenario.model
        name = "vllm:cache_config_info"
        info = {
            "block_size": str(model.block_tokens),
            "enable_prefix_caching": str(self.scenario.life.cache != "off"),
            "engine": "0",
            "num_gpu_blocks": str(self._blocks()),
        }
        words = "Information of the LLMEngine CacheConfig"
        return [f"# HELP {name} {words}", f"# TYPE {name} gauge", sample(name, 1.0, info)]

    def error(self, status: int, message: str, kind: str = "") -> dict[str, Any]:
        """See `dialect.Dialect`. `ErrorInfo` in vllm/entrypoints/serve/engine/protocol.py."""
        default = {400: "BadRequestError", 404: "NotFoundError", 503: "ServiceUnavailableError"}
        name = kind or default.get(status, "InternalServerError")
        return {"error": {"message": message, "type": name, "param": None, "code": status}}

    def unknown_model(self, name: str) -> Refusal | None:
        """See `dialect.Dialect`. vllm/entrypoints/serve/engine/serving.py:77."""
        if name == self.model:
            return None
        body = self.error(404, f"The model `{name}` does not exist. Valid aliases: {self.model}.")
        body["error"]["param"] = "model"
        return Refusal(status=404, body=body)

    def too_long(self, prompt_tokens: int, asked_tokens: int | None, limit: int) -> Refusal:
        """See `dialect.Dialect`. vllm/renderers/params.py:543."""
        message = (
            f"This model's maximum context length is {limit} tokens. However, your prompt contains {prompt_tokens} "
            "input tokens, which exceeds this limit even without any output tokens. "
            "Please reduce the length of the input prompt."
        )
        body = self.error(400, message)
        body["error"]["param"] = "input_tokens"
        return Refusal(status=400, body=body)

    def no_images(self) -> Refusal:
        """See `dialect.Dialect`. vllm/multimodal/processing/context.py:621."""
        body = self.error(400, "At most 0 image(s) may be provided in one prompt.")
        body["error"]["param"] = "image"
        return Refusal(status=400, body=body)

    def no_tools(self) -> Refusal | None:
        """See `dialect.Dialect`. vllm/renderers/online_renderer.py:278."""
        message = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
        return Refusal(status=400, body=self.error(400, message))

    def _blocks(self) -> int:
        model = self.scenario.model
        pool = model.pool_tokens or model.slots * model.context
        return pool // model.block_tokens + 1  # one is reserved: the null block

    def _kv_usage(self) -> float:
        held = sum(job.prompt_tokens + job.made_tokens for job in self.core.jobs.values())
        return min(1.0, held / (self._blocks() * self.scenario.model.block_tokens))

    def _models(self) -> dict[str, Any]:
        card = {
            "id": self.model,
            "object": "model",
            "created": 0,
            "owned_by": "vllm",
            "root": self.model,
            "parent": None,
            "max_model_len": self.scenario.model.context,
            "permission": [],
        }
        return {"object": "list", "data": [card]}

    def _server_info(self) -> dict[str, Any]:
        drafter = self.scenario.drafter
        spec = "None" if drafter is None else f"SpeculativeConfig(method={drafter.method!r}, num={drafter.depth})"
        config = f"model={self.model!r}, speculative_config={spec}, max_seq_len={self.scenario.model.context}"
        return {"vllm_config": config, "vllm_env": {}, "system_env": {}}

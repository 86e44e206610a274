"""llama.cpp's server, as it speaks: shapes, headers and messages of real answers.

Taken from answers of xllamacpp 2026.10.11549 (llama.cpp's tools/server), captured with every endpoint below.
"""

from collections.abc import Mapping
from typing import Any, Final

from redline.fake.core import Job
from redline.fake.dialect import BaseDialect, Get, Refusal, sample

_HELP: Final = {
    "prompt_tokens_total": ("counter", "Number of prompt tokens processed, excluding cached tokens"),
    "prompt_tokens_cached_total": ("counter", "Number of prompt tokens reused from the cache"),
    "prompt_seconds_total": ("counter", "Total time spent processing prompts"),
    "tokens_predicted_total": ("counter", "Number of generation tokens processed"),
    "tokens_predicted_seconds_total": ("counter", "Total time spent generating tokens"),
    "n_decode_total": (
        "counter",
        "Total number of llama_decode() calls, excluding speculative decoding and multimodal decoding",
    ),
    "n_tokens_max": ("counter", "Largest observed sequence length (prompt + generation)"),
    "spec_decode_num_draft_tokens_total": ("counter", "Speculative: Total draft tokens generated"),
    "spec_decode_num_accepted_tokens_total": (
        "counter",
        "Speculative: Total draft tokens accepted by the target model",
    ),
    "spec_decode_num_drafts_total": ("counter", "Speculative: Total speculative decoding verification steps"),
    "requests_processing": ("gauge", "Number of requests processing"),
    "requests_deferred": ("gauge", "Number of requests deferred"),
}
_TEMPLATE: Final = (
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{%- endfor %}"
    "<|im_start|>assistant\n"
)
_SWITCH: Final = "{%- if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{%- endif %}"


class LlamaCppDialect(BaseDialect):
    """See `dialect.Dialect`."""

    name = "llamacpp"
    headers: Mapping[str, str] = {"server": "llama.cpp", "access-control-allow-origin": ""}
    metrics_type = "text/plain; version=0.0.4"
    merges_steps = False
    serves_while_loading = True
    role_content: str | None = None

    @property
    def reasoning_field(self) -> str:
        """The field that carries reasoning."""
        field = self.scenario.wire.reasoning_field
        return "reasoning_content" if field in ("dialect", "inline") else field

    def envelope(self, data: dict[str, Any]) -> dict[str, Any]:
        """See `shapes.Style`."""
        return {**data, "system_fingerprint": self.version}

    def choice(self, data: dict[str, Any], *, last: bool) -> dict[str, Any]:
        """See `shapes.Style`."""
        return data

    def usage(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`."""
        made = self._made(job)
        usage: dict[str, Any] = {
            "completion_tokens": made,
            "prompt_tokens": job.prompt_tokens,
            "total_tokens": job.prompt_tokens + made,
        }
        if cached := self._cached(job):
            usage["prompt_tokens_details"] = cached
        return usage

    def extras(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`."""
        fresh, made = job.prompt_tokens - job.cached_tokens, self._made(job)
        prompt_ms, made_ms = job.prefill_s * 1000, job.decode_s * 1000
        timings: dict[str, Any] = {
            "cache_n": job.cached_tokens,
            "prompt_n": fresh,
            "prompt_ms": prompt_ms,
            "prompt_per_token_ms": prompt_ms / max(fresh, 1),
            "prompt_per_second": fresh / max(job.prefill_s, 1e-9),
            "predicted_n": made,
            "predicted_ms": made_ms,
            "predicted_per_token_ms": made_ms / max(made, 1),
            "predicted_per_second": made / max(job.decode_s, 1e-9),
        }
        if job.drafts:
            timings |= {"draft_n": job.drafted_tokens, "draft_n_accepted": job.accepted_tokens}
        return {"timings": timings}

    def answer_id(self, kind: str) -> str:
        """See `dialect.Dialect`."""
        return self._random_id("chatcmpl-")

    def health(self) -> tuple[int, Any]:
        """See `dialect.Dialect`."""
        return 200, {"status": "ok"}

    def gets(self) -> dict[str, Get]:
        """See `dialect.Dialect`."""
        return {
            "/v1/models": lambda: (200, self._models()),
            "/models": lambda: (200, self._models()),
            "/v1/health": self.health,
            "/props": lambda: (200, self._props()),
            "/slots": lambda: (200, self._slots()),
        }

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """See `dialect.Dialect`."""
        text = str(body.get("content", ""))
        ids = self.tokenizer.encode(text)
        if body.get("with_pieces"):
            return {"tokens": [{"id": number, "piece": self.tokenizer.decode([number])} for number in ids]}
        return {"tokens": ids}

    def detokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """See `dialect.Dialect`."""
        return {"content": self.tokenizer.decode(body.get("tokens") or [])}

    def metrics(self) -> str:
        """See `dialect.Dialect`."""
        totals, prefix = self.core.totals, "llamacpp:"
        values: dict[str, float] = {
            "prompt_tokens_total": totals.prompt_tokens - totals.cached_tokens,
            "prompt_tokens_cached_total": totals.cached_tokens,
            "prompt_seconds_total": totals.prefill_s,
            "tokens_predicted_total": totals.generated_tokens,
            "tokens_predicted_seconds_total": totals.decode_s,
            "n_decode_total": totals.steps,
            "n_tokens_max": totals.longest,
            "spec_decode_num_draft_tokens_total": totals.drafted_tokens,
            "spec_decode_num_accepted_tokens_total": totals.accepted_tokens,
            "spec_decode_num_drafts_total": totals.drafts,
            "requests_processing": totals.running,
            "requests_deferred": totals.waiting,
        }
        lines = []
        for name, value in values.items():
            kind, words = _HELP[name]
            lines += [f"# HELP {prefix}{name} {words}", f"# TYPE {prefix}{name} {kind}", sample(prefix + name, value)]
        if totals.accepted_by_position:
            name = f"{prefix}spec_decode_num_accepted_tokens_per_pos_total"
            lines += [f"# HELP {name} Accepted tokens per draft position", f"# TYPE {name} counter"]
            lines += [sample(name, n, {"position": str(at)}) for at, n in enumerate(totals.accepted_by_position)]
        return "\n".join(lines) + "\n"

    def error(self, status: int, message: str, kind: str = "") -> dict[str, Any]:
        """See `dialect.Dialect`."""
        default = {400: "invalid_request_error", 404: "not_found_error", 503: "unavailable_error"}
        return {"error": {"code": status, "message": message, "type": kind or default.get(status, "server_error")}}

    def unknown_model(self, name: str) -> Refusal | None:
        """See `dialect.Dialect`. llama.cpp serves one model and ignores its name."""
        return None

    def too_long(self, prompt_tokens: int, asked_tokens: int | None, limit: int) -> Refusal:
        """See `dialect.Dialect`."""
        message = (
            f"request ({prompt_tokens} tokens) exceeds the available context size ({limit} tokens), try increasing it"
        )
        body = self.error(400, message, "exceed_context_size_error")
        body["error"] |= {"n_prompt_tokens": prompt_tokens, "n_ctx": limit}
        return Refusal(status=400, body=body)

    def no_images(self) -> Refusal:
        """See `dialect.Dialect`."""
        hint = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
        return Refusal(status=500, body=self.error(500, hint))

    def no_tools(self) -> Refusal | None:
        """See `dialect.Dialect`. llama.cpp takes the tools and answers without them."""
        return None

    def _models(self) -> dict[str, Any]:
        model = self.scenario.model
        images = ["text", "image"] if model.vision else ["text"]
        meta = {
            "vocab_type": 2,
            "n_vocab": 151_936,
            "n_ctx": model.context,
            "n_ctx_train": model.context,
            "n_embd": 1024,
            "n_params": 1_000_000_000,
            "size": 600_000_000,
            "ftype": "Q4_0",
        }
        entry = {
            "id": self.model,
            "aliases": [self.model],
            "tags": [],
            "object": "model",
            "architecture": {"input_modalities": images, "output_modalities": ["text"]},
            "created": 0,
            "owned_by": "llamacpp",
            "meta": meta,
        }
        old = {"name": self.model, "model": self.model, "type": "model", "capabilities": ["completion"]}
        return {"models": [old], "object": "list", "data": [entry]}

    def _props(self) -> dict[str, Any]:
        model, drafter = self.scenario.model, self.scenario.drafter
        params = {
            "seed": 4294967295,
            "temperature": 0.8,
            "top_k": 40,
            "top_p": 0.95,
            "min_p": 0.05,
            "n_predict": -1,
            "speculative.types": drafter.method if drafter else "none",
        }
        return {
            "default_generation_settings": {"params": params, "n_ctx": model.context},
            "total_slots": model.slots,
            "model_alias": self.model,
            "model_ftype": "Q4_0",
            "model_path": f"models/{self.model}.gguf",
            "modalities": {"vision": model.vision, "video": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": False,
            "endpoint_metrics": True,
            "chat_template": _TEMPLATE + (_SWITCH if model.thinking != "none" else ""),
            "chat_template_caps": {"supports_tools": model.tools, "supports_tool_calls": model.tools},
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "build_info": self.version,
            "is_sleeping": False,
        }

    def _slots(self) -> list[dict[str, Any]]:
        running = list(self.core.jobs.values())
        slots = []
        for index in range(self.scenario.model.slots):
            slot: dict[str, Any] = {
                "id": index,
                "n_ctx": self.scenario.model.context,
                "speculative": self.scenario.drafter is not None,
                "is_processing": index < len(running),
            }
            if index < len(running):
                job = running[index]
                slot |= {"id_task": job.number, "n_prompt_tokens": job.prompt_tokens}
                slot["next_token"] = [{"has_next_token": True, "n_remain": -1, "n_decoded": job.made_tokens}]
            slots.append(slot)
        return slots

"""What a server says of itself: engine, context, slots; and how many tokens it makes of a text.

Asked of the server and not of the catalogue, so that an endpoint of `--url` is known as well as a managed server.
"""

from dataclasses import dataclass
from typing import Any

from redline.engine.metrics import engine_of_metrics
from redline.errors import EndpointError
from redline.probe.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server in its own words. What it does not say is None."""

    engine: str | None = None
    context_tokens: int | None = None
    slots: int | None = None


async def ask_served(client: Client) -> Served:
    """Return what the server says: `/v1/models` (vLLM), `/props` (llama.cpp), `/metrics` (both).

    Raises:
        EndpointError: it does not answer, or not as an OpenAI-compatible server.
    """
    models = await client.get_json("/v1/models")
    metrics = await client.metrics_text()
    try:
        props = await client.get_json("/props")
    except EndpointError:
        props = None
    engine = client.target.engine or (engine_of_metrics(metrics) if metrics else None)
    return Served(
        engine=engine,
        context_tokens=_count(_listed(models, client.target.model).get("max_model_len"))
        or _count(_part(props, "default_generation_settings").get("n_ctx")),
        slots=_count(_part({"props": props}, "props").get("total_slots")),
    )


async def count_tokens(client: Client, text: str) -> int | None:
    """Return how many tokens the server's tokenizer makes of a text, or None where it offers no such path."""
    # vLLM reads `prompt`, llama.cpp `content`; each ignores the other's field.
    answer = await client.post_json("/tokenize", {"model": client.target.model, "prompt": text, "content": text})
    if not isinstance(answer, dict):
        return None
    tokens = answer.get("tokens")
    return _count(answer.get("count")) or (len(tokens) if isinstance(tokens, list) else None)


def _listed(models: Any, wanted: str) -> dict[str, Any]:
    rows = [row for row in _part({"m": models}, "m").get("data") or () if isinstance(row, dict)]
    return next((row for row in rows if row.get("id") == wanted), rows[0] if rows else {})


def _part(data: Any, name: str) -> dict[str, Any]:
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

"""Tokens as the server counts them, and how many it holds: what a context check needs to aim.

Both engines have `/tokenize`, with the text under another name and the count in another shape; where there is none, a
request for one token tells the size of its prompt. Knows no check.
"""

from typing import Any, Final

from redline.checks.check import CheckContext
from redline.errors import EndpointError, InconclusiveError
from redline.probe.client import Client
from redline.probe.exchange import ChatRequest
from redline.workload.fit import FittedText, fit_text_async
from redline.workload.needles import Haystack, build_haystack

# Tokens around a message: its template, its role, the question.
OVERHEAD_TOKENS: Final = 96


async def count_tokens(client: Client, text: str) -> int:
    """Return the tokens of a text.

    `prompt` and `count` are vLLM's (vllm/entrypoints/serve/tokenize/protocol.py), `content` and `tokens` llama.cpp's
    (tools/server/README.md); each ignores the other's.

    Raises:
        InconclusiveError: the server neither tokenizes nor tells the size of a prompt.
    """
    body = {"model": client.target.model, "prompt": text, "content": text, "add_special_tokens": False}
    reply = await client.post("/tokenize", body)
    data = reply.data if reply.status == 200 else None
    if isinstance(data, dict):
        if isinstance(data.get("count"), int):
            return int(data["count"])
        if isinstance(data.get("tokens"), list):
            return len(data["tokens"])
    request = ChatRequest(messages=({"role": "user", "content": text},), max_tokens=1, temperature=0.0)
    exchange = await client.chat(request)
    if exchange.usage.prompt_tokens is None:
        why = exchange.error.message if exchange.error else "no usage in its answer"
        raise InconclusiveError(f"{client.target.url} does not say how many tokens a text has: {why}.")
    return exchange.usage.prompt_tokens


async def context_limit(client: Client) -> int | None:
    """Return the tokens that one request may hold, as the server states it; None where it does not."""
    for path, read in (("/props", _from_props), ("/v1/models", _from_models)):
        try:
            found = read(await client.get_json(path))
        except (EndpointError, KeyError, TypeError, IndexError, AttributeError):
            continue
        if isinstance(found, int) and found > 0:
            return found
    return None


def _from_props(data: Any) -> Any:
    """Read llama.cpp's `/props`: the context of one slot."""
    return data["default_generation_settings"]["n_ctx"]


def _from_models(data: Any) -> Any:
    """Read vLLM's `/v1/models`: the longest request."""
    return data["data"][0]["max_model_len"]


async def fit_haystack(
    context: CheckContext, seed: str, target_tokens: int, positions: tuple[float, ...]
) -> tuple[Haystack, FittedText]:
    """Return a text with needles that fills a prompt of `target_tokens` with its template and question.

    Raises:
        InconclusiveError: the server does not count, or no such text comes near the target.
    """

    async def count(text: str) -> int:
        return await count_tokens(context.client, text)

    def build(words: int) -> str:
        return build_haystack(seed, words, positions).text

    try:
        fitted = await fit_text_async(build, count, target_tokens - OVERHEAD_TOKENS, 0.02)
    except ValueError as error:
        raise InconclusiveError(str(error)) from None
    return build_haystack(seed, fitted.words, positions), fitted

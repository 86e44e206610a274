"""What the measured words mean, once, for every tool in redline. Pure functions of an `Exchange`.

Changing any of these changes what recorded numbers mean: raise `record.manifest.DEFINITIONS_VERSION` with it.
"""

from typing import Final

from redline.probe.exchange import Exchange
from redline.units import NS_PER_S

# Below this many tokens a decode rate says more about the clock's grain than about the engine.
MIN_DECODE_TOKENS: Final = 16


def ttft_s(exchange: Exchange) -> float | None:
    """Time to first token: from sending to the first chunk that carries any token, in seconds."""
    return _since_sent(exchange, exchange.first_token_ns)


def ttfa_s(exchange: Exchange) -> float | None:
    """Time to first answer: from sending to the first chunk of content, in seconds."""
    return _since_sent(exchange, exchange.first_content_ns)


def decode_tok_s(exchange: Exchange) -> float | None:
    """Decode rate: (tokens - tokens in the first chunk) / (last token - first token), in tokens a second.

    Tokens are the server's own count. None without that count, under `MIN_DECODE_TOKENS` tokens, or when all
    tokens came at once.
    """
    tokens, first, last = exchange.usage.completion_tokens, exchange.first_token_ns, exchange.last_token_ns
    if tokens is None or first is None or last is None or tokens < MIN_DECODE_TOKENS or last <= first:
        return None
    return (tokens - exchange.first_chunk_tokens) * NS_PER_S / (last - first)


def prefill_tok_s(exchange: Exchange) -> float | None:
    """Prefill rate: prompt tokens that were not cached / TTFT, in tokens a second.

    None when the server does not say how many were cached: a warm cache would pass for a fast engine.
    """
    prompt, cached, first = exchange.usage.prompt_tokens, exchange.usage.cached_tokens, ttft_s(exchange)
    if prompt is None or cached is None or not first or prompt <= cached:
        return None
    return (prompt - cached) / first


def wall_tok_s(exchange: Exchange) -> float | None:
    """Tokens / whole duration, prefill included, in tokens a second; the headline of older tools."""
    tokens, wall = exchange.usage.completion_tokens, exchange.end_ns - exchange.sent_ns
    return tokens * NS_PER_S / wall if tokens and wall > 0 else None


def _since_sent(exchange: Exchange, stamp: int | None) -> float | None:
    return None if stamp is None else (stamp - exchange.sent_ns) / NS_PER_S

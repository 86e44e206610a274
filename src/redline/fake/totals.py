"""What an engine counts, as numbers, and the prefix cache that some of them come from. Knows no text format."""

from dataclasses import dataclass, field
from hashlib import blake2s

from redline.fake import tokens


@dataclass(slots=True)
class Totals:
    """Counters since the engine started. Mutable: one engine, one event loop, one writer."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    generated_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    steps: int = 0
    drafts: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    accepted_by_position: list[int] = field(default_factory=list)
    cache_queries: int = 0
    cache_hits: int = 0
    preemptions: int = 0
    longest: int = 0
    running: int = 0
    waiting: int = 0
    finished: dict[str, int] = field(default_factory=dict)
    first_token_s: float = 0.0  # summed over requests
    answered: int = 0

    def count_step(self, drafted: int, accepted: int) -> None:
        """Count one decode step."""
        self.steps += 1
        if not drafted:
            return
        self.drafts += 1
        self.drafted_tokens += drafted
        self.accepted_tokens += accepted
        self.accepted_by_position.extend([0] * (drafted - len(self.accepted_by_position)))
        for position in range(accepted):
            self.accepted_by_position[position] += 1

    def reset(self) -> None:
        """Begin at nought again, as after a restart; what runs goes on running."""
        fresh = Totals(running=self.running, waiting=self.waiting)
        for name in Totals.__slots__:
            setattr(self, name, getattr(fresh, name))


class PrefixCache:
    """Remembers the heads of prompts in whole blocks, as engines do; never forgets."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._known: set[bytes] = set()

    def look_up(self, prompt: str) -> int:
        """Return how many leading tokens are known, and remember the prompt. The last token is never cached."""
        parts = tokens.pieces(prompt)
        size, hits, unbroken, chain = self._block_tokens, 0, True, b""
        for at in range(0, len(parts) - size, size):
            chain = blake2s(chain + "".join(parts[at : at + size]).encode(), digest_size=12).digest()
            if chain not in self._known:
                unbroken = False
                self._known.add(chain)
            elif unbroken:
                hits += size
        return hits

"""Texts that the target writes itself, batched, and its states at every token. Knows nothing of drafters.

Four ways to write, by seed: greedy throughout; a warm beginning and greedy after it (greedy text in more places than
greedy beginnings lead to); the served temperature; hotter.
"""

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from drafter.prompts import training_prompts
from drafter.target import END, Cache, Target, chat

_WAYS: Final = ((0.4, 0.0, 0), (0.4, 0.9, 48), (0.12, 0.3, 10_000), (0.08, 0.8, 10_000))  # share, temperature, until
PROMPT_MAX: Final = 224


@dataclass(frozen=True, slots=True)
class Texts:
    """Right-padded token rows [rows, length], where each answer begins and ends, and the target's states."""

    tokens: Tensor
    starts: Tensor
    ends: Tensor
    features: Tensor | None = None

    @property
    def answer_tokens(self) -> int:
        """Tokens that the target wrote."""
        return int((self.ends - self.starts).sum())


@torch.no_grad()
def answer(target: Target, prompts: list[list[int]], count: int, heat: Tensor, until: Tensor, seed: int) -> Texts:
    """Answer tokenised prompts with up to `count` tokens; `heat` is a row's temperature until its token `until`."""
    device = target.device
    starts = torch.tensor([len(prompt) for prompt in prompts], device=device)
    length = int(starts.max()) + count
    tokens = torch.full((len(prompts), length), END, device=device)
    for row, prompt in enumerate(prompts):
        tokens[row, : len(prompt)] = torch.tensor(prompt, device=device)
    cache = Cache(target, len(prompts), length)
    longest, rows = int(starts.max()), torch.arange(len(prompts), device=device)
    logits = torch.empty(len(prompts), target.embedding.shape[0], device=device, dtype=target.dtype)
    for begin in range(0, len(prompts), 256):
        part = slice(begin, begin + 256)
        view = Cache.__new__(Cache)
        view.length = length
        view.keys, view.values = [k[part] for k in cache.keys], [v[part] for v in cache.values]
        _, last = target.read(tokens[part, :longest], (), view)
        logits[part] = last[rows[: last.shape[0]], starts[part] - 1] @ target.embedding.T
    generator = torch.Generator(device).manual_seed(seed)
    over = torch.zeros(len(prompts), dtype=torch.bool, device=device)
    ends = starts.clone()
    for number in range(count):
        warm = torch.where(number < until, heat, 0.0)[:, None]
        noise = torch.empty_like(logits, dtype=torch.float32).exponential_(generator=generator).clamp_min_(1e-20).log_()
        chosen = (logits.float() - warm * noise).argmax(-1)
        chosen = torch.where(over, END, chosen)
        tokens[rows, starts + number] = chosen
        ends = torch.where(over, ends, starts + number + 1)
        over |= chosen == END
        if number + 1 == count or (number % 16 == 0 and bool(over.all())):
            break
        logits = target.step(chosen, starts + number, cache)
    return Texts(tokens, starts, ends)


def make(
    target: Target, seed: int, pool: int, rows: int, count: int, until: float, longest: int = PROMPT_MAX
) -> Iterator[Texts]:
    """Yield batches of answered training prompts until the monotonic time `until`; short prompts share batches."""
    rng = random.Random(f"ways/{seed}")
    texts = list(dict.fromkeys(training_prompts(seed, pool)))
    encoded = [item.ids for item in target.tokenizer.encode_batch([chat(text) for text in texts])]
    encoded = [ids for ids in encoded if len(ids) <= longest]
    rng.shuffle(encoded)
    # Sorted within slices of a few batches: padding stays small, and any prefix of the batches is a fair sample.
    batches = []
    for begin in range(0, len(encoded), rows * 4):
        piece = sorted(encoded[begin : begin + rows * 4], key=len)
        batches += [piece[at : at + rows] for at in range(0, len(piece), rows)]
    rng.shuffle(batches)
    for number, prompts in enumerate(batches):
        if time.monotonic() > until:
            return
        ways = rng.choices(_WAYS, [way[0] for way in _WAYS], k=len(prompts))
        heat = torch.tensor([way[1] for way in ways], device=target.device)
        stop = torch.tensor([rng.randint(4, 48) if way[2] == 48 else way[2] for way in ways], device=target.device)
        yield answer(target, prompts, count, heat, stop, seed * 100_000 + number)


@torch.no_grad()
def with_features(target: Target, texts: Texts, taken: tuple[int, ...]) -> Texts:
    """Return texts with the target's states."""
    parts = [target.read(texts.tokens[at : at + 128], taken)[0] for at in range(0, len(texts.tokens), 128)]
    return Texts(texts.tokens, texts.starts, texts.ends, torch.cat(parts))

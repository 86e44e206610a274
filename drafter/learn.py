"""One batch of learning: cross-entropy of every slot of a block, and the selector's choice among candidates.

Knows nothing of files, time or what else is trained.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from drafter import data
from drafter.model import Drafter
from drafter.target import Target

DECAY = 4.0  # a position's weight falls by e over so many: a later token counts only when the earlier ones held


@dataclass(slots=True)
class Student:
    """A drafter in training."""

    name: str
    drafter: Drafter
    optimizer: torch.optim.Optimizer
    peak: float


def position_weights(depth: int, device: torch.device) -> Tensor:
    """Return weights of the block's positions, summing to 1."""
    weights = torch.exp(-torch.arange(depth, device=device) / DECAY)
    return weights / weights.sum()


def learn(
    student: Student, texts: data.Texts, rows: Tensor, count: int, target: Target, chunk: int
) -> dict[str, float]:
    """Accumulate gradients of one batch: cross-entropy of every slot, and the selector's choice of a candidate."""
    drafter, shape = student.drafter, student.drafter.shape
    tokens, starts, ends = texts.tokens[rows], texts.starts[rows], texts.ends[rows]
    span = (ends - 1 - starts).clamp_min(1)
    anchors = starts[:, None] + (torch.rand(len(rows), count, device=target.device) * span[:, None]).long()
    anchor_tokens = tokens.gather(1, anchors)
    assert texts.features is not None
    hidden = drafter(texts.features[rows], anchors, anchor_tokens, target.embedding)
    places = anchors[..., None] + 1 + torch.arange(shape.depth, device=target.device)
    valid = places < ends[:, None, None]
    labels = F.pad(tokens, (0, shape.block)).gather(1, places.flatten(1)).view_as(places)
    before = torch.cat((anchor_tokens[..., None], labels[..., :-1]), -1)
    weights = (position_weights(shape.depth, target.device) * valid).flatten()
    weights = weights / weights.sum().clamp_min(1e-6)
    flat = hidden[..., 1:, :].reshape(-1, shape.hidden)
    leaf = flat.detach().requires_grad_()
    labels, before = labels.flatten(), before.flatten()
    totals = {"head": 0.0, "selector": 0.0}
    for at in range(0, len(labels), chunk):
        part = slice(at, at + chunk)
        logits = F.linear(leaf[part], target.embedding)
        loss = (F.cross_entropy(logits.float(), labels[part], reduction="none") * weights[part]).sum()
        totals["head"] += float(loss.detach())
        if at < len(labels) // 3 + 1:  # the selector learns from a third of the anchors: finding candidates is slow
            choice = selector_loss(drafter, leaf[part], logits, labels[part], before[part], weights[part])
            totals["selector"] += 3 * float(choice.detach())
            loss = loss + 3 * choice
        loss.backward()
    assert leaf.grad is not None
    flat.backward(leaf.grad)
    return totals


def selector_loss(
    drafter: Drafter, hidden: Tensor, logits: Tensor, labels: Tensor, before: Tensor, weights: Tensor
) -> Tensor:
    """Weighted cross-entropy of the true token among the candidates, where it is one of them."""
    candidates = logits.detach().topk(drafter.shape.top_k, -1).indices
    scores = logits.gather(1, candidates).float()
    scores = scores + drafter.candidate_selector.edges(hidden, before[:, None], candidates)[:, 0]
    is_true = candidates == labels[:, None]
    there = is_true.any(-1)
    lost = F.cross_entropy(scores, is_true.long().argmax(-1), reduction="none")
    return (lost * weights * there).sum()


def rate(progress: float, calls: int) -> float:
    """Learning rate as a share of its peak: warm up, hold, and fall to a twentieth in the last third of a call."""
    warm, height = (0.02, 1.0) if calls == 0 else (0.03, 0.7)
    if progress < warm:
        return height * progress / warm
    if progress < 0.6:
        return height
    return height * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - 0.6) / 0.4))))


def common_tokens(batches: list[data.Texts], count: int, vocab: int) -> list[int]:
    """Return the tokens that the target writes most, ascending; spare places are filled by the first merges."""
    seen = torch.zeros(vocab, dtype=torch.float64)
    for texts in batches:
        times = torch.arange(texts.tokens.shape[1], device=texts.tokens.device)[None]
        written = texts.tokens[(times >= texts.starts[:, None]) & (times < texts.ends[:, None])]
        seen += torch.bincount(written.cpu(), minlength=vocab)
    seen += torch.linspace(1e-3, 0, vocab, dtype=torch.float64)
    return sorted(seen.topk(count).indices.tolist())

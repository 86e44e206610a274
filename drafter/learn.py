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

DECAY = 5.0  # a position's weight falls by e over so many, whatever the drafter does
FLOOR = 0.3  # of that weight, so much is kept where the drafter is sure to be wrong before; the rest is earned


@dataclass(slots=True)
class Student:
    """A drafter in training; each optimizer's groups hold their peak rate as `peak`."""

    name: str
    drafter: Drafter
    optimizers: list[torch.optim.Optimizer]


@dataclass(frozen=True, slots=True)
class Words:
    """The rows of the target's head that a batch is scored against: all common tokens, and a sample of the others.

    Attributes:
        ids: tokens, the common ones first.
        places: for each token of the vocabulary its place in `ids`, or -1.
        shift: added to logits, so that the sampled tokens stand for all that are not common.
        common: how many are common.
    """

    ids: Tensor
    places: Tensor
    shift: Tensor
    common: int

    @classmethod
    def draw(cls, common: Tensor, rest: Tensor, count: int) -> "Words":
        """Sample `count` of the rest."""
        picked = rest[torch.randperm(len(rest), device=rest.device)[:count]]
        ids = torch.cat((common, picked))
        places = torch.full((len(common) + len(rest),), -1, device=ids.device)
        places[ids] = torch.arange(len(ids), device=ids.device)
        shift = torch.zeros(len(ids), device=ids.device)
        shift[len(common) :] = math.log(len(rest) / max(1, len(picked)))
        return cls(ids, places, shift, len(common))


def position_weights(depth: int, device: torch.device) -> Tensor:
    """Return weights of the block's positions, summing to 1."""
    weights = torch.exp(-torch.arange(depth, device=device) / DECAY)
    return weights / weights.sum()


def earned(lost: Tensor) -> Tensor:
    """Return what a position counts: a token is only accepted when those before it in its block were.

    Args:
        lost: -log of the true token's probability, [blocks, depth].
    """
    before = lost - lost.cumsum(-1)  # log probability of all true tokens before
    return FLOOR + (1 - FLOOR) * before.exp()


def learn(
    student: Student, texts: data.Texts, rows: Tensor, count: int, target: Target, words: Words, chunk: int
) -> dict[str, Tensor]:
    """Accumulate gradients of one batch: cross-entropy of every slot, and the selector's choice of a candidate.

    Returns: losses, still on the device, so that nothing waits for them.
    """
    drafter, shape = student.drafter, student.drafter.shape
    tokens, starts, ends = texts.tokens[rows], texts.starts[rows], texts.ends[rows]
    span = (ends - 1 - starts).clamp_min(1)
    anchors = starts[:, None] + (torch.rand(len(rows), count, device=target.device) * span[:, None]).long()
    anchor_tokens = tokens.gather(1, anchors)
    assert texts.features is not None
    hidden = drafter(texts.features[rows], anchors, anchor_tokens, target.embedding)
    places = anchors[..., None] + 1 + torch.arange(shape.depth, device=target.device)
    labels = F.pad(tokens, (0, shape.block)).gather(1, places.flatten(1)).view_as(places)
    before = torch.cat((anchor_tokens[..., None], labels[..., :-1]), -1)
    valid = (places < ends[:, None, None]) & (words.places[labels] >= 0)
    weights = position_weights(shape.depth, target.device) * valid
    weights = (weights / weights.sum().clamp_min(1e-6)).view(-1, shape.depth)
    flat = hidden[..., 1:, :].reshape(-1, shape.depth, shape.hidden)
    leaf = flat.detach().requires_grad_()
    labels, before = labels.view(-1, shape.depth), before.view(-1, shape.depth)
    head, shift = target.embedding[words.ids], words.shift.to(target.dtype)
    totals = {name: torch.zeros((), device=target.device) for name in ("head", "selector")}
    chunk //= shape.depth
    for at in range(0, len(labels), chunk):
        part = slice(at, at + chunk)
        logits = F.linear(leaf[part].flatten(0, 1), head, shift)
        wanted = words.places[labels[part]].clamp_min(0).flatten()
        lost = F.nll_loss(F.log_softmax(logits, -1, dtype=torch.float32), wanted, reduction="none")
        lost = lost.view(-1, shape.depth)
        totals["head"] += (lost.detach() * weights[part]).sum()
        loss = (lost * weights[part] * earned(lost.detach())).sum()
        if at < len(labels) // 3 + 1:  # the selector learns from a third of the anchors: finding candidates is slow
            choice = selector_loss(drafter, words, leaf[part], logits, labels[part], before[part], weights[part])
            totals["selector"] += 3 * choice.detach()
            loss = loss + 3 * choice
        loss.backward()
    assert leaf.grad is not None
    flat.backward(leaf.grad)
    return totals


def selector_loss(
    drafter: Drafter, words: Words, hidden: Tensor, logits: Tensor, labels: Tensor, before: Tensor, weights: Tensor
) -> Tensor:
    """Weighted cross-entropy of the true token among the candidates, where it is one of them."""
    places = logits.detach()[:, : words.common].topk(drafter.shape.top_k, -1).indices
    candidates = words.ids[places]
    scores = logits.gather(1, places).float()
    edges = drafter.candidate_selector.edges(hidden.flatten(0, 1), before.flatten()[:, None], candidates)
    is_true = candidates == labels.flatten()[:, None]
    there = is_true.any(-1)
    lost = F.cross_entropy(scores + edges[:, 0], is_true.long().argmax(-1), reduction="none")
    return (lost * weights.flatten() * there).sum()


def rate(progress: float, calls: int) -> float:
    """Learning rate as a share of its peak: warm up, hold, fall to a twentieth; a later call only falls, from 0.4."""
    warm, height, hold = (0.02, 1.0, 0.6) if calls == 0 else (0.03, 0.4, 0.03)
    if progress < warm:
        return height * progress / warm
    fallen = min(1.0, max(0.0, progress - hold) / (1 - hold))
    return height * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * fallen)))


def common_tokens(batches: list[data.Texts], count: int, vocab: int) -> list[int]:
    """Return the tokens that the target writes most, ascending; spare places are filled by the first merges."""
    seen = torch.zeros(vocab, dtype=torch.float64)
    for texts in batches:
        times = torch.arange(texts.tokens.shape[1], device=texts.tokens.device)[None]
        written = texts.tokens[(times >= texts.starts[:, None]) & (times < texts.ends[:, None])]
        seen += torch.bincount(written.cpu(), minlength=vocab)
    seen += torch.linspace(1e-3, 0, vocab, dtype=torch.float64)
    return sorted(seen.topk(count).indices.tolist())

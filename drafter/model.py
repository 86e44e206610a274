"""The drafter in plain torch: context keys and values from target states, one block of masks, convolutions, selector.

A block is [anchor, mask x depth]. Its queries see every earlier target state within the window and, in both directions,
one another (vLLM 0.33.0 `qwen3_dflash2.py`; llama.cpp b11434 `dflash.cpp`). Parameter names are the checkpoint's.
Weights may be rounded to Q4_0 in the forward pass, with gradients passed through, so that the file loses nothing.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from drafter.shape import Shape
from drafter.target import rms_norm, rope, rotate


def q4_0(weight: Tensor) -> Tensor:
    """Return weights as Q4_0 keeps them (blocks of 32 along a row; ggml-quants.c quantize_row_q4_0_ref)."""
    blocks = weight.float().reshape(-1, 32)
    place = blocks.abs().argmax(1, keepdim=True)
    scale = blocks.gather(1, place) / -8
    inverse = torch.where(scale == 0, torch.zeros_like(scale), 1 / scale)
    steps = (blocks * inverse + 8.5).floor().clamp(0, 15) - 8
    return (steps * scale.half().float()).view_as(weight)


def passed_through(weight: Tensor) -> Tensor:
    """Return weights as Q4_0 keeps them, with the gradient of the weights themselves."""
    with torch.no_grad():
        change = q4_0(weight) - weight
    return weight + change


class Rounded(nn.Module):
    """A matrix that can be used as Q4_0 would store it."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) * columns**-0.5)
        self.rounded = False

    def used(self) -> Tensor:
        """The weight as it will be served."""
        return passed_through(self.weight) if self.rounded else self.weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.used().to(x.dtype))


class GroupedConv(nn.Module):
    """Two depthwise convolutions over the block, around a sub-layer; taps are a base plus a part for each token."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        base = torch.zeros(2, shape.taps, shape.hidden)
        base[:, 0] = 1  # tap 0 is the token itself: the convolution starts as the identity
        self.base_kernel = nn.Parameter(base)
        self.kernel_projection = Rounded(2 * shape.taps * shape.groups, shape.hidden)
        nn.init.zeros_(self.kernel_projection.weight)

    def prepare(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the convolved input and the coefficients for `finish`; x is [..., block, hidden]."""
        parts = self.kernel_projection(x).unflatten(-1, (2, self.shape.taps, self.shape.groups))
        return self._convolve(x, parts[..., 0, :, :], 0), parts[..., 1, :, :]

    def finish(self, x: Tensor, parts: Tensor) -> Tensor:
        """Convolve the sub-layer's output."""
        return self._convolve(x, parts, 1)

    def _convolve(self, x: Tensor, parts: Tensor, side: int) -> Tensor:
        groups, group = self.shape.groups, self.shape.group
        base = self.base_kernel[side].to(x.dtype).unflatten(-1, (groups, group))
        total = torch.zeros_like(x).unflatten(-1, (groups, group))
        for tap in range(self.shape.taps):
            shifted = F.pad(x, (0, 0, tap, 0))[..., : x.shape[-2], :]
            total = total + (base[tap] + parts[..., tap, :, None]) * shifted.unflatten(-1, (groups, group))
        return total.flatten(-2)


class Attention(nn.Module):
    """Queries of a block over target states and the block itself."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.q_proj = Rounded(shape.heads * shape.head_dim, shape.hidden)
        self.k_proj = Rounded(shape.kv_heads * shape.head_dim, shape.hidden)
        self.v_proj = Rounded(shape.kv_heads * shape.head_dim, shape.hidden)
        self.o_proj = Rounded(shape.hidden, shape.heads * shape.head_dim)
        self.q_norm = Norm(shape.head_dim, shape.eps)
        self.k_norm = Norm(shape.head_dim, shape.eps)

    def forward(self, x: Tensor, context: Tensor, positions: Tensor, seen: Tensor) -> Tensor:
        """Args: x [batch, anchors, block, hidden]; context [batch, time, hidden]; positions [batch, anchors, block];
        seen as `what_is_seen` returns it."""
        shape = self.shape
        q = self.q_norm(self.q_proj(x).unflatten(-1, (shape.heads, shape.head_dim)))
        k = self.k_norm(self.k_proj(x).unflatten(-1, (shape.kv_heads, shape.head_dim)))
        v = self.v_proj(x).unflatten(-1, (shape.kv_heads, shape.head_dim))
        far_k = self.k_norm(self.k_proj(context).unflatten(-1, (shape.kv_heads, shape.head_dim)))
        far_v = self.v_proj(context).unflatten(-1, (shape.kv_heads, shape.head_dim))
        cos, sin = rope(positions, shape.head_dim, shape.rope_base)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        times = torch.arange(context.shape[1], device=x.device)
        far_k = rotate(far_k, *rope(times, shape.head_dim, shape.rope_base))
        keys, values = torch.cat((far_k, k.flatten(1, 2)), 1), torch.cat((far_v, v.flatten(1, 2)), 1)
        repeat = shape.heads // shape.kv_heads
        out = F.scaled_dot_product_attention(
            q.flatten(1, 2).transpose(1, 2),
            keys.repeat_interleave(repeat, 2).transpose(1, 2),
            values.repeat_interleave(repeat, 2).transpose(1, 2),
            attn_mask=seen,
        )
        return self.o_proj(out.transpose(1, 2).reshape(*x.shape[:3], -1))


def what_is_seen(positions: Tensor, time: int, window: int) -> Tensor:
    """Return what each query may read: [batch, 1, anchors * block, time + anchors * block].

    First the target states before its anchor and within the window, then the tokens of all blocks, of which its own.

    Args:
        positions: [batch, anchors, block].
    """
    batch, anchors, block = positions.shape
    times = torch.arange(time, device=positions.device)
    far = (times < positions[..., :1, None]) & (times > positions[..., None] - window)
    own = torch.arange(anchors * block, device=positions.device) // block
    near = (own[:, None] == own).expand(batch, -1, -1)
    return torch.cat((far.flatten(1, 2), near), -1)[:, None]


class Norm(nn.Module):
    """RMS norm."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class Mlp(nn.Module):
    """Gated feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = Rounded(shape.ffn, shape.hidden)
        self.up_proj = Rounded(shape.ffn, shape.hidden)
        self.down_proj = Rounded(shape.hidden, shape.ffn)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One draft layer with its two pairs of convolutions."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden, shape.eps)
        self.post_attention_layernorm = Norm(shape.hidden, shape.eps)
        self.self_attn = Attention(shape)
        self.mlp = Mlp(shape)
        self.attention_conv = GroupedConv(shape)
        self.mlp_conv = GroupedConv(shape)

    def forward(self, x: Tensor, context: Tensor, positions: Tensor, seen: Tensor) -> Tensor:
        y, parts = self.attention_conv.prepare(self.input_layernorm(x))
        x = x + self.attention_conv.finish(self.self_attn(y, context, positions, seen), parts)
        y, parts = self.mlp_conv.prepare(self.post_attention_layernorm(x))
        return x + self.mlp_conv.finish(self.mlp(y), parts)


class Selector(nn.Module):
    """Scores of a candidate after a predecessor: the head's logit plus a gated product of two codebooks."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.predecessor_codebook = nn.Parameter(torch.randn(shape.vocab, shape.rank) * 0.1)
        self.successor_codebook = nn.Parameter(torch.randn(shape.vocab, shape.rank) * 0.1)
        self.hidden_projection = Rounded(shape.rank, shape.hidden)
        nn.init.normal_(self.hidden_projection.weight, std=0.1 * shape.hidden**-0.5)
        self.rounded = False

    def book(self, name: str, ids: Tensor) -> Tensor:
        """Return rows of a codebook, as served."""
        rows = F.embedding(ids, getattr(self, name))
        return passed_through(rows) if self.rounded else rows

    def edges(self, hidden: Tensor, predecessors: Tensor, candidates: Tensor) -> Tensor:
        """Args: hidden [..., h], predecessors [..., p], candidates [..., c]. Returns [..., p, c]."""
        gate = self.hidden_projection(hidden).float()
        before = self.book("predecessor_codebook", predecessors).float() * gate[..., None, :]
        return before @ self.book("successor_codebook", candidates).float().transpose(-1, -2)


class Drafter(nn.Module):
    """The whole drafter but for embeddings and head, which are the target's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.fc = Rounded(shape.hidden, shape.hidden * len(shape.taken))
        self.hidden_norm = Norm(shape.hidden, shape.eps)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden, shape.eps)
        self.candidate_selector = Selector(shape)

    def round_weights(self, on: bool = True) -> None:
        """Use every matrix as Q4_0 keeps it."""
        for module in self.modules():
            if isinstance(module, Rounded | Selector):
                module.rounded = on

    def forward(self, features: Tensor, anchors: Tensor, anchor_tokens: Tensor, embedding: Tensor) -> Tensor:
        """Return normed hidden states [batch, anchors, block, hidden]; slot j predicts the token at anchor + j.

        Args:
            features: target states [batch, time, hidden * layers]; only those before an anchor are seen by its block.
            anchors: positions [batch, anchors] of the last known tokens.
            anchor_tokens: those tokens, [batch, anchors].
        """
        context = self.hidden_norm(self.fc(features))
        block = torch.full((*anchors.shape, self.shape.block), self.shape.mask_token, device=anchors.device)
        block[..., 0] = anchor_tokens
        positions = anchors[..., None] + torch.arange(self.shape.block, device=anchors.device)
        seen = what_is_seen(positions, features.shape[1], self.shape.window)
        x = F.embedding(block, embedding)
        for layer in self.layers:
            x = layer(x, context, positions, seen)
        return self.norm(x)

    @torch.no_grad()
    def draft(
        self, hidden: Tensor, anchor_tokens: Tensor, head: Tensor, ids: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Walk greedily. Returns tokens [..., depth] and the selector's probability of each.

        Args:
            head: rows of the target's head; `ids` names their tokens when they are not all of them.
        """
        hidden = hidden[..., 1:, :]
        unary, places = F.linear(hidden, head.to(hidden.dtype)).float().topk(self.shape.top_k, -1)
        candidates = places if ids is None else ids[places]
        before, tokens, sure = anchor_tokens, [], []
        for slot in range(self.shape.depth):
            edges = self.candidate_selector.edges(hidden[..., slot, :], before[..., None], candidates[..., slot, :])
            scores = unary[..., slot, :] + edges[..., 0, :]
            best = scores.argmax(-1, keepdim=True)
            before = candidates[..., slot, :].gather(-1, best)[..., 0]
            tokens.append(before)
            sure.append(scores.softmax(-1).gather(-1, best)[..., 0])
        return torch.stack(tokens, -1), torch.stack(sure, -1)


def start_from_target(drafter: Drafter, weights: dict[str, Tensor], layers: int) -> None:
    """Begin with the target's last layers, its final norm, and the last taken state as context."""
    shape, state = drafter.shape, dict(drafter.named_parameters())
    with torch.no_grad():
        state["fc.weight"].mul_(0.1)[:, -shape.hidden :].copy_(torch.eye(shape.hidden))
        state["norm.weight"].copy_(weights["output_norm.weight"])
        state["hidden_norm.weight"].copy_(weights[f"blk.{layers - 1}.attn_norm.weight"])
        for number in range(shape.layers):
            ours, theirs = f"layers.{number}.", f"blk.{layers - shape.layers + number}."
            for mine, name in {
                "input_layernorm": "attn_norm",
                "post_attention_layernorm": "ffn_norm",
                "self_attn.q_proj": "attn_q",
                "self_attn.k_proj": "attn_k",
                "self_attn.v_proj": "attn_v",
                "self_attn.o_proj": "attn_output",
                "mlp.gate_proj": "ffn_gate",
                "mlp.up_proj": "ffn_up",
                "mlp.down_proj": "ffn_down",
            }.items():
                state[ours + mine + ".weight"].copy_(weights[theirs + name + ".weight"])

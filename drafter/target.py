"""The target as a plain torch model, from the GGUF file that the CPU tiers serve. Knows nothing of drafting.

The weights are the served ones, dequantised: what a drafter learns from must be what will verify it.
"""

from pathlib import Path
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch import Tensor

_SYSTEM: Final = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
END: Final = 2  # <|im_end|>


class Target:
    """SmolLM2 (llama architecture) without gradients; `weights` holds the tensors by their GGUF names."""

    def __init__(self, path: Path, device: torch.device, dtype: torch.dtype) -> None:
        from gguf import GGUFReader
        from gguf.quants import dequantize

        reader = GGUFReader(str(path))
        self.device, self.dtype = device, dtype
        self.weights: dict[str, Tensor] = {}
        for tensor in reader.tensors:
            values = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy())
            self.weights[tensor.name] = values.to(device, dtype)
        fields = reader.fields
        self.layers = int(fields["llama.block_count"].contents())
        self.heads = int(fields["llama.attention.head_count"].contents())
        self.kv_heads = int(fields["llama.attention.head_count_kv"].contents())
        self.head_dim = int(fields["llama.rope.dimension_count"].contents())
        self.hidden = int(fields["llama.embedding_length"].contents())
        self.eps = float(fields["llama.attention.layer_norm_rms_epsilon"].contents())
        self.rope_base = float(fields["llama.rope.freq_base"].contents())
        for layer in range(self.layers):  # llama.cpp keeps interleaved rope; here heads are halved, as in Qwen3
            for name, heads in (("attn_q", self.heads), ("attn_k", self.kv_heads)):
                key = f"blk.{layer}.{name}.weight"
                self.weights[key] = halved(self.weights[key], heads)
        self.embedding = self.weights["token_embd.weight"]
        self.tokenizer = make_tokenizer(fields)

    def norm(self, x: Tensor, name: str) -> Tensor:
        """RMS norm with a named weight."""
        return rms_norm(x, self.weights[name], self.eps)

    def layer(self, number: int, x: Tensor, attend: Any) -> Tensor:
        """One layer; `attend(number, q, k, v)` returns the attended values, all [batch, time, heads, head_dim]."""
        weights, prefix = self.weights, f"blk.{number}."
        batch, time, _ = x.shape
        y = self.norm(x, prefix + "attn_norm.weight")
        q = F.linear(y, weights[prefix + "attn_q.weight"]).view(batch, time, self.heads, self.head_dim)
        k = F.linear(y, weights[prefix + "attn_k.weight"]).view(batch, time, self.kv_heads, self.head_dim)
        v = F.linear(y, weights[prefix + "attn_v.weight"]).view(batch, time, self.kv_heads, self.head_dim)
        x = x + F.linear(attend(number, q, k, v).reshape(batch, time, -1), weights[prefix + "attn_output.weight"])
        y = self.norm(x, prefix + "ffn_norm.weight")
        gate = F.silu(F.linear(y, weights[prefix + "ffn_gate.weight"])) * F.linear(y, weights[prefix + "ffn_up.weight"])
        return x + F.linear(gate, weights[prefix + "ffn_down.weight"])

    @torch.no_grad()
    def read(self, tokens: Tensor, taken: tuple[int, ...], cache: "Cache | None" = None) -> tuple[Tensor, Tensor]:
        """Return the taken layers' inputs, side by side, and the last hidden state, of right-padded tokens."""
        time = tokens.shape[1]
        cos, sin = rope(torch.arange(time, device=self.device), self.head_dim, self.rope_base)

        def attend(number: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
            if cache is not None:
                cache.keys[number][:, :, :time] = k.transpose(1, 2)
                cache.values[number][:, :, :time] = v.transpose(1, 2)
            repeat = self.heads // self.kv_heads
            k, v = k.repeat_interleave(repeat, 2), v.repeat_interleave(repeat, 2)
            return F.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
            ).transpose(1, 2)

        x = F.embedding(tokens, self.embedding)
        features = []
        for number in range(self.layers):
            if number in taken:
                features.append(x)
            x = self.layer(number, x, attend)
        return torch.cat(features, -1) if features else x, self.norm(x, "output_norm.weight")

    @torch.no_grad()
    def step(self, tokens: Tensor, positions: Tensor, cache: "Cache") -> Tensor:
        """Return logits [batch, vocab] after one more token each, at its own position."""
        cos, sin = rope(positions, self.head_dim, self.rope_base)
        cos, sin = cos[:, None, None], sin[:, None, None]
        rows = torch.arange(tokens.shape[0], device=self.device)
        hidden = torch.arange(cache.length, device=self.device)[None] > positions[:, None]
        mask = torch.zeros(hidden.shape, device=self.device, dtype=self.dtype).masked_fill_(hidden, -1e9)[:, None, None]
        repeat = self.heads // self.kv_heads

        def attend(number: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            q, k = rotate(q, cos, sin, broadcast=True), rotate(k, cos, sin, broadcast=True)
            cache.keys[number][rows, :, positions] = k[:, 0]
            cache.values[number][rows, :, positions] = v[:, 0]
            q = q.view(q.shape[0], self.kv_heads, repeat, self.head_dim)
            scores = q @ cache.keys[number].transpose(-1, -2) * self.head_dim**-0.5 + mask
            return (scores.float().softmax(-1).to(self.dtype) @ cache.values[number])[:, None]

        x = F.embedding(tokens, self.embedding)[:, None]
        for number in range(self.layers):
            x = self.layer(number, x, attend)
        return F.linear(self.norm(x, "output_norm.weight")[:, 0], self.embedding)


class Cache:
    """Keys and values of a batch: [batch, kv heads, length, head_dim] a layer."""

    def __init__(self, target: Target, batch: int, length: int) -> None:
        size = (batch, target.kv_heads, length, target.head_dim)
        self.length = length
        self.keys = [torch.zeros(size, device=target.device, dtype=target.dtype) for _ in range(target.layers)]
        self.values = [torch.zeros(size, device=target.device, dtype=target.dtype) for _ in range(target.layers)]


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Root mean square norm over the last axis, computed in float32."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype) * weight.to(x.dtype)


def rope(positions: Tensor, head_dim: int, base: float) -> tuple[Tensor, Tensor]:
    """Return cosines and sines [..., head_dim] for halved heads."""
    inverse = base ** (-torch.arange(0, head_dim, 2, device=positions.device, dtype=torch.float32) / head_dim)
    angles = positions.float()[..., None] * inverse
    return torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor, broadcast: bool = False) -> Tensor:
    """Turn [..., time, heads, head_dim] by angles [..., time, head_dim]; `broadcast` when they fit already."""
    if not broadcast:
        cos, sin = cos[..., None, :], sin[..., None, :]
    left, right = x.float().chunk(2, -1)
    return (x.float() * cos + torch.cat((-right, left), -1) * sin).to(x.dtype)


def halved(weight: Tensor, heads: int) -> Tensor:
    """Undo the order that llama.cpp's converter gives query and key rows (conversion of llama: `permute`)."""
    rows = weight.shape[0]
    return weight.view(heads, rows // heads // 2, 2, -1).transpose(1, 2).reshape(rows, -1).contiguous()


def make_tokenizer(fields: Any) -> Any:
    """Return the target's tokenizer from its GGUF fields (byte pairs; pre-tokenizer `smollm`: single digits, bytes)."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    tokens = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE({text: number for number, text in enumerate(tokens)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True) for text, kind in zip(tokens, kinds, strict=True) if kind == 3]
    )
    return tokenizer


def chat(text: str, system: str = _SYSTEM) -> str:
    """Return one question as the model's chat template writes it."""
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"

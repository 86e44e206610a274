"""A drafter from its GGUF file, as torch or numpy values. Knows the keys that `gguf_file` writes."""

from pathlib import Path
from typing import Any

from drafter.gguf_file import TRAINED_BLOCK_KEY, checkpoint_name
from drafter.shape import Shape


def read_gguf(path: Path) -> tuple[Shape, dict[str, Any], list[int] | None]:
    """Return measures, float32 arrays by checkpoint name, and the tokens of its head (None: it has no head)."""
    import numpy as np
    from gguf import GGUFReader
    from gguf.quants import dequantize

    reader = GGUFReader(str(path))
    fields = {key: field.contents() for key, field in reader.fields.items() if key.startswith("dflash.")}
    state, ids = {}, None
    for tensor in reader.tensors:
        if tensor.name == "d2t":
            ids = [int(number) for number in tensor.data]
        elif tensor.name != "output.weight":
            values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
            state[checkpoint_name(tensor.name)] = values.reshape([int(n) for n in reversed(tensor.shape)])
    taken = fields["dflash.target_layers"]
    shape = Shape(
        layers=fields["dflash.block_count"],
        block=fields["dflash.block_size"],
        rank=fields["dflash.selector_rank"],
        top_k=fields["dflash.selector_top_k"],
        draft_vocab=len(ids) if ids else fields["dflash.vocab_size"],
        window=fields["dflash.attention.sliding_window"],
        taken=tuple(taken if isinstance(taken, list) else [taken]),
        taps=fields["dflash.conv_kernel_size"],
        group=fields["dflash.conv_group_size"],
        hidden=fields["dflash.embedding_length"],
        heads=fields["dflash.attention.head_count"],
        kv_heads=fields["dflash.attention.head_count_kv"],
        head_dim=fields["dflash.attention.key_length"],
        ffn=fields["dflash.feed_forward_length"],
        vocab=fields["dflash.vocab_size"],
        mask_token=reader.fields["tokenizer.ggml.mask_token_id"].contents(),
        rope_base=fields["dflash.rope.freq_base"],
        eps=fields["dflash.attention.layer_norm_rms_epsilon"],
    )
    return shape, state, ids


def trained_block(path: Path) -> int:
    """Return the block that a drafter was trained with, which its export may have shortened."""
    from gguf import GGUFReader

    fields = GGUFReader(str(path)).fields
    return int((fields.get(TRAINED_BLOCK_KEY) or fields["dflash.block_size"]).contents())


def drafter_from_gguf(path: Path) -> tuple[Any, Any]:
    """Return a torch drafter and its head's tokens."""
    import torch

    from drafter.model import Drafter

    shape, state, ids = read_gguf(path)
    drafter = Drafter(shape)
    drafter.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in state.items()})
    return drafter.eval(), torch.tensor(ids) if ids else None

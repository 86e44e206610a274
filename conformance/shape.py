"""One question to the allocator: an architecture, a drafter, how it is served, and the bytes left for the cache.

Known: the constants that decide block geometry, and the smallest config.json that says the same to vLLM. Not known: any
answer. Plain data, importable without vLLM; `allocator_cases.jsonl.gz` holds such questions with vLLM's answers.
"""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

VOCABULARY: Final = 1024  # no table of words is loaded; the block geometry does not depend on it

_ROPE: Final = {"rope_theta": 1e7, "rope_type": "default"}


class Drafting(StrEnum):
    NONE = "none"
    MTP = "mtp"
    DFLASH2 = "dflash2"


@dataclass(frozen=True, slots=True)
class Architecture:
    """Constants of a text model, of all cards together. `full_layers` attend to everything."""

    full_layers: int
    kv_heads: int
    head_size: int
    attention_heads: int
    gdn_layers: int = 0
    gdn_key_heads: int = 16
    gdn_value_heads: int = 48
    gdn_head_size: int = 128
    gdn_conv_taps: int = 4
    state_dtype: str = "float32"
    sliding_layers: int = 0
    sliding_window: int = 0
    context_max: int = 262144

    def config(self) -> dict[str, Any]:
        """Return a config.json of this architecture.

        Raises:
            ValueError: recurrent and sliding-window layers together, which no supported family has.
        """
        if self.gdn_layers and self.sliding_layers:
            raise ValueError("an architecture with recurrent and with sliding-window layers is not known")
        common = {
            "dtype": "bfloat16",
            "hidden_size": self.attention_heads * 64,
            "intermediate_size": 1024,
            "num_hidden_layers": self.full_layers + self.gdn_layers + self.sliding_layers,
            "num_attention_heads": self.attention_heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_size,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": self.context_max,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
        }
        if self.gdn_layers:
            return common | self._hybrid()
        if self.sliding_layers:
            return common | {
                "architectures": ["Gemma3ForCausalLM"],
                "model_type": "gemma3_text",
                "sliding_window": self.sliding_window,
                "layer_types": ["sliding_attention"] * self.sliding_layers + ["full_attention"] * self.full_layers,
                "rope_parameters": {"full_attention": _ROPE, "sliding_attention": _ROPE},
            }
        return common | {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "rope_parameters": _ROPE}

    def _hybrid(self) -> dict[str, Any]:
        return {
            "architectures": ["Qwen3_5ForCausalLM"],
            "model_type": "qwen3_5_text",
            "layer_types": ["linear_attention"] * self.gdn_layers + ["full_attention"] * self.full_layers,
            "linear_num_key_heads": self.gdn_key_heads,
            "linear_num_value_heads": self.gdn_value_heads,
            "linear_key_head_dim": self.gdn_head_size,
            "linear_value_head_dim": self.gdn_head_size,
            "linear_conv_kernel_dim": self.gdn_conv_taps,
            "mamba_ssm_dtype": self.state_dtype,
            "mtp_num_hidden_layers": 1,
            "attn_output_gate": True,
            "partial_rotary_factor": 0.25,
            "rope_parameters": _ROPE | {"partial_rotary_factor": 0.25},
        }


QWEN38_27B: Final = Architecture(full_layers=16, kv_heads=4, head_size=256, attention_heads=24, gdn_layers=48)


@dataclass(frozen=True, slots=True)
class Drafter:
    """What proposes tokens. `layers` and the fields after it describe a block drafter; MTP takes the target's shape."""

    kind: Drafting = Drafting.NONE
    depth: int = 0
    layers: int = 5
    kv_heads: int = 8
    head_size: int = 128
    sliding_window: int = 2048

    def config(self, target: Architecture) -> dict[str, Any]:
        """Return the config.json of a block drafter for `target`."""
        depth_of_target = target.full_layers + target.gdn_layers + target.sliding_layers
        taps = sorted({min(depth_of_target - 1, 1 + index * depth_of_target // self.layers) for index in range(5)})
        return {
            "architectures": ["DFlash2DraftModel"],
            "model_type": "qwen3",
            "dtype": "bfloat16",
            "hidden_size": target.attention_heads * 64,
            "intermediate_size": 1024,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.kv_heads * 4,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_size,
            "vocab_size": VOCABULARY,
            "max_position_embeddings": target.context_max,
            "rms_norm_eps": 1e-6,
            "tie_word_embeddings": False,
            "is_causal": False,
            "use_sliding_window": True,
            "sliding_window": self.sliding_window,
            "max_window_layers": 0,
            "layer_types": ["sliding_attention"] * self.layers,
            "num_target_layers": depth_of_target,
            "rope_parameters": _ROPE,
            "block_size": self.depth + 1,
            "dflash_config": {
                "block_size": self.depth + 1,
                "conv_kernel_size": 2,
                "conv_group_size": 16,
                "selector_rank": 256,
                "selector_top_k": 16,
                "mask_token_id": VOCABULARY - 1,
                "target_layer_ids": taps,
            },
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A boot. `available_bytes` is what the engine logs as available KV cache memory, of one card.

    `block_size` is the flag of that name: on hybrid models blocks become a multiple of it; None is vLLM's own choice.
    """

    architecture: Architecture
    drafter: Drafter
    context: int
    available_bytes: int
    tp: int = 1
    kv_dtype: str = "auto"
    attention: str = "flash_attn"
    gdn_prefill: str = "triton"
    prefix_caching: bool = True
    batched_tokens: int = 8192
    seqs: int = 1
    block_size: int | None = None

    def with_bytes(self, available_bytes: int) -> "Question":
        return replace(self, available_bytes=available_bytes)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Question":
        """Return the question of a JSON object; an unknown key is a TypeError."""
        fields = dict(record)
        architecture = Architecture(**fields.pop("architecture"))
        drafter = dict(fields.pop("drafter", {}))
        kind = Drafting(drafter.pop("kind", "none"))
        return cls(architecture=architecture, drafter=Drafter(kind=kind, **drafter), **fields)


@dataclass(frozen=True, slots=True)
class Group:
    """One KV cache group: its layers share a block table. `request_blocks` is what one request at the context takes."""

    kind: str
    layers: int
    block_tokens: int
    request_blocks: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What vLLM's allocator says. Bytes are of one card; `tokens` and `concurrency` are None for a refused boot.

    `block_tokens` and `page_bytes` are of full attention, `state_bytes` of one recurrent state before it is padded to
    the page, `pool_block_bytes` of a block in all layers that share a pool slot. `largest_context` is what the bytes
    would serve, at most the architecture's own limit.
    """

    block_tokens: int
    page_bytes: int
    state_bytes: int
    pool_block_bytes: int
    groups: tuple[Group, ...]
    request_blocks: int
    num_blocks: int
    boots: bool
    tokens: int | None
    concurrency: float | None
    largest_context: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

"""The drafter's measures: what both engines must be told of a checkpoint. Knows no tensor library.

Names and meanings follow vLLM 0.33.0 `model_executor/models/qwen3_dflash2.py` (the Hugging Face folder) and llama.cpp
b11434 `src/models/dflash.cpp` (the GGUF keys).
"""

from dataclasses import asdict, dataclass, fields


@dataclass(frozen=True, slots=True)
class Shape:
    """Measures of a drafter; those of the target are its defaults."""

    layers: int = 1
    block: int = 8
    rank: int = 64
    top_k: int = 16
    draft_vocab: int = 12288  # rows of the head in the GGUF; the Hugging Face folder uses the target's whole head
    window: int = 512
    taken: tuple[int, ...] = (2, 11, 20, 29)  # numbers of target layers whose *input* is read, as llama.cpp counts
    taps: int = 2
    group: int = 16
    hidden: int = 576
    heads: int = 9
    kv_heads: int = 3
    head_dim: int = 64
    ffn: int = 1536
    vocab: int = 49152
    mask_token: int = 5  # <file_sep>: in the vocabulary, and in no chat
    rope_base: float = 100000.0
    eps: float = 1e-5

    def __post_init__(self) -> None:
        if self.top_k * (self.top_k + 1) > self.hidden:
            raise ValueError(f"top_k {self.top_k}: llama.cpp packs top_k * (top_k + 1) numbers into {self.hidden}")
        if self.hidden % self.group or self.rank % 32:
            raise ValueError("the group must divide the hidden size, and 32 the rank (Q8_0 blocks)")

    @property
    def groups(self) -> int:
        """Channel groups that share a dynamic coefficient."""
        return self.hidden // self.group

    @property
    def depth(self) -> int:
        """Tokens that one draft proposes: the block without its anchor."""
        return self.block - 1

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, loaded: dict[str, object]) -> "Shape":
        """Raises: TypeError for a name that is not a measure."""
        known = {field.name for field in fields(cls)}
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in loaded.items() if k in known})  # type: ignore[arg-type]

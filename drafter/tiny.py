"""A target of a few thousand random weights with the real tokenizer's form: what the tests and dry runs train on."""

from pathlib import Path


def write_tiny_target(path: Path, vocab: int = 512, hidden: int = 96, layers: int = 3) -> None:
    """Write a llama GGUF file whose tokens are single bytes and a few made-up merges."""
    import numpy as np
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import quantize

    rng = np.random.default_rng(3)
    writer = GGUFWriter(str(path), "llama")
    writer.add_block_count(layers)
    writer.add_context_length(512)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(2 * hidden)
    writer.add_head_count(3)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(hidden // 3)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(vocab)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>"]
    bytes_used = [chr(code) if 33 <= code < 127 else chr(256 + code) for code in range(256)]
    tokens = special + bytes_used
    tokens += ["ab"] + [f"<unused{number}>" for number in range(vocab - len(tokens) - 1)]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if text in special else 1 for text in tokens])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)

    def matrix(name: str, rows: int, columns: int) -> None:
        values = rng.standard_normal((rows, columns)).astype("float32") * columns**-0.5
        writer.add_tensor(name, quantize(values, GGMLQuantizationType.Q4_0), raw_dtype=GGMLQuantizationType.Q4_0)

    matrix("token_embd.weight", vocab, hidden)
    writer.add_tensor("output_norm.weight", np.ones(hidden, dtype="float32"))
    for layer in range(layers):
        prefix = f"blk.{layer}."
        for name, rows, columns in (
            ("attn_q", hidden, hidden),
            ("attn_k", hidden // 3, hidden),
            ("attn_v", hidden // 3, hidden),
            ("attn_output", hidden, hidden),
            ("ffn_gate", 2 * hidden, hidden),
            ("ffn_up", 2 * hidden, hidden),
            ("ffn_down", hidden, 2 * hidden),
        ):
            matrix(f"{prefix}{name}.weight", rows, columns)
        writer.add_tensor(f"{prefix}attn_norm.weight", np.ones(hidden, dtype="float32"))
        writer.add_tensor(f"{prefix}ffn_norm.weight", np.ones(hidden, dtype="float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    import sys

    write_tiny_target(Path(sys.argv[1]))

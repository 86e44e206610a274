"""The same drafter exported with a shorter block: one key of its GGUF file is another, every weight the same.

    python -m drafter.reblock IN.gguf OUT.gguf BLOCK

The earlier slots of a block hardly read the later ones, so a cut costs no acceptance (docs/drafter.md), and a processor
drafts and verifies a short block sooner. The trained block stays written beside the new one. A longer block than the
trained one is refused: its last slots were never learned.
"""

import sys
from pathlib import Path

from drafter.gguf_file import TRAINED_BLOCK_KEY


def reblock(source: Path, target: Path, block: int) -> None:
    """Copy a drafter with another block size.

    Raises:
        ValueError: the block is longer than the trained one, or has nothing to draft.
    """
    from gguf import GGUFReader, GGUFValueType, GGUFWriter

    reader = GGUFReader(str(source))
    trained_field = reader.fields.get(TRAINED_BLOCK_KEY) or reader.fields["dflash.block_size"]
    trained = int(trained_field.contents())
    if not 2 <= block <= trained:
        raise ValueError(f"the block must be between 2 and {trained}, which was trained")
    writer = GGUFWriter(str(target), "dflash")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in {"general.architecture", TRAINED_BLOCK_KEY}:
            continue
        kind = field.types[0]
        value = block if name == "dflash.block_size" else field.contents()
        writer.add_key_value(name, value, kind, sub_type=field.types[-1] if kind == GGUFValueType.ARRAY else None)
    writer.add_uint32(TRAINED_BLOCK_KEY, trained)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    reblock(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

"""Files made on this machine from published ones. A recipe's output is the same bytes everywhere, so it has a hash.

The `gguf` package does the quantising; numpy and it are imported only while a file is made.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from redline.artifacts.checkpoint import gguf_to_checkpoint
from redline.artifacts.progress import FileProgress, Report
from redline.errors import FaultError, MissingError


def requantize_q4_0(source: Path, target: Path, artifact: str, report: Report) -> None:
    """Write a copy of a GGUF file with every quantised tensor as Q4_0; other tensors and all keys stay as they are.

    Q4_0 is the type that llama.cpp repacks for AVX2, which is why it decodes faster than the Q4_1 it came from.

    Raises:
        MissingError: the `gguf` package is not installed.
    """
    try:
        import numpy as np
        from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
        from gguf.quants import dequantize, quantize
    except ImportError:
        raise MissingError(
            f"{artifact} is made with the packages gguf and numpy, which are not installed.",
            next_step="pip install 'redline-llm[embedded]'",
        ) from None

    reader = GGUFReader(str(source))
    architecture = reader.fields["general.architecture"].contents()
    writer = GGUFWriter(str(target), architecture)
    try:
        for name, field in reader.fields.items():
            if name.startswith("GGUF.") or name == "general.architecture":
                continue  # the writer makes these itself
            kind = field.types[0]
            sub_kind = field.types[-1] if kind == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type=sub_kind)
        total = sum(int(tensor.n_bytes) for tensor in reader.tensors)
        done = 0
        for tensor in reader.tensors:
            done += int(tensor.n_bytes)
            if tensor.tensor_type == GGMLQuantizationType.F32:
                writer.add_tensor(tensor.name, tensor.data)
            else:
                values = quantize(dequantize(tensor.data, tensor.tensor_type), GGMLQuantizationType.Q4_0)
                writer.add_tensor(tensor.name, np.ascontiguousarray(values), raw_dtype=GGMLQuantizationType.Q4_0)
            report(FileProgress(artifact, "derive", done, total))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
    finally:
        writer.close()


RECIPES: Final[dict[str, Callable[[Path, Path, str, Report], None]]] = {
    "gguf-requantize-q4_0": requantize_q4_0,
    "gguf-to-checkpoint": gguf_to_checkpoint,
}


def derive(recipe: str, source: Path, target: Path, artifact: str, report: Report) -> None:
    """Run a recipe.

    Raises:
        FaultError: the catalogue names a recipe that this version has not.
        MissingError: a package the recipe needs is not installed.
    """
    if recipe not in RECIPES:
        raise FaultError(f"{artifact} wants the recipe {recipe!r}, which does not exist.")
    RECIPES[recipe](source, target, artifact, report)

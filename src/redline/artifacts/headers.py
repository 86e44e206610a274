"""What a checkpoint says of itself: safetensors headers, shard indexes, config.json, GGUF metadata.

Reads only the beginning of a file, and only the standard library. Formats: github.com/huggingface/safetensors
(README, format), github.com/ggml-org/ggml docs/gguf.md. What does not follow its format is an error, never a guess.
"""

import json
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

_MAX_HEADER_BYTES: Final = 100 * 2**20
_MAX_STRING_BYTES: Final = 16 * 2**20
_MAX_ITEMS: Final = 2**26
# GGUF value types by number: struct format and bytes. 8 is a string, 9 an array.
_GGUF_SCALARS: Final = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_GGUF_STRING: Final = 8
_GGUF_ARRAY: Final = 9


class HeaderError(ValueError):
    """A file does not follow the format that its name claims."""


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """Sizes that a safetensors file claims: names of its tensors, and the bytes the whole file must have."""

    tensors: tuple[str, ...]
    file_bytes: int


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Return what a safetensors file claims.

    Raises:
        HeaderError: it is not one, or its header is cut off.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
        if len(start) < 8:
            raise HeaderError(f"{path.name} is too short for a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if not 2 <= length <= _MAX_HEADER_BYTES:
            raise HeaderError(f"{path.name} is no safetensors file: its header would have {length} bytes")
        text = file.read(length)
    if len(text) < length:
        raise HeaderError(f"{path.name} is cut off within its header")
    try:
        tensors = {name: item for name, item in json.loads(text).items() if name != "__metadata__"}
        end = max((int(item["data_offsets"][1]) for item in tensors.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise HeaderError(f"{path.name} is no safetensors file: its header is not readable") from None
    return SafetensorsHeader(tuple(tensors), 8 + length + end)


def read_shards(folder: Path) -> tuple[str, ...]:
    """Return the weight files that a checkpoint's index names, or the one file of a checkpoint without an index.

    Raises:
        HeaderError: the index is not one.
        OSError: it cannot be read.
    """
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return ("model.safetensors",)
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
        return tuple(sorted({str(name) for name in names}))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise HeaderError(f"{index.name} is no index of shards") from None


def read_config(folder: Path) -> dict[str, Any] | None:
    """Return a checkpoint's config.json, or None where there is none.

    Raises:
        HeaderError: it is not JSON of the expected shape.
        OSError: it cannot be read.
    """
    path = folder / "config.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise HeaderError("config.json is not JSON") from None
    if not isinstance(found, dict):
        raise HeaderError("config.json holds no settings")
    return found


def read_gguf_metadata(path: Path, wanted: Collection[str]) -> dict[str, Any]:
    """Return the wanted keys of a GGUF file that it has; arrays come back as None, since none is wanted whole.

    Raises:
        HeaderError: it is no GGUF file, or is cut off before its metadata ends.
        OSError: it cannot be read.
    """
    found: dict[str, Any] = {}
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise HeaderError(f"{path.name} is no GGUF file")
        version, _tensors, keys = struct.unpack("<IQQ", _take(file, 20))
        if version < 2 or keys > _MAX_ITEMS:
            raise HeaderError(f"{path.name} is a GGUF file of a version that is not read here ({version})")
        for _ in range(keys):
            name = _string(file)
            (kind,) = struct.unpack("<I", _take(file, 4))
            value = _value(file, kind)
            if name in wanted:
                found[name] = value
                if len(found) == len(wanted):
                    break
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind in _GGUF_SCALARS:
        form = _GGUF_SCALARS[kind]
        return struct.unpack(form, _take(file, struct.calcsize(form)))[0]
    if kind == _GGUF_STRING:
        return _string(file)
    if kind != _GGUF_ARRAY:
        raise HeaderError(f"a GGUF value of unknown type {kind}")
    item_kind, count = struct.unpack("<IQ", _take(file, 12))
    if count > _MAX_ITEMS:
        raise HeaderError(f"a GGUF array of {count} items")
    if item_kind in _GGUF_SCALARS:
        file.seek(count * struct.calcsize(_GGUF_SCALARS[item_kind]), 1)
    else:
        for _ in range(count):
            _value(file, item_kind)
    return None


def _string(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _take(file, 8))
    if length > _MAX_STRING_BYTES:
        raise HeaderError(f"a GGUF text of {length} bytes")
    return _take(file, length).decode("utf-8", errors="replace")


def _take(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise HeaderError("the file is cut off within its metadata")
    return data

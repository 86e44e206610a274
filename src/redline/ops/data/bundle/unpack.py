"""Put a part of a bundle into a folder; with the last missing part, check all of them and unpack.

    python3 partN/unpack.py FOLDER       # parts in any order, one call each or one call with several parts beside it

Needs nothing but Python. FOLDER then holds engine/ (vLLM and what it needs), redline/ (redline and what it needs),
models/, extra/ and env (variables for a shell). A part that is not as packed is refused and not kept.
"""

import hashlib
import io
import json
import shutil
import sys
import tarfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any


class Joined(io.RawIOBase):
    """Several files read one after the other, in one stream."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)
        self._open: IO[bytes] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            if self._open is None:
                if not self._paths:
                    return 0
                self._open = self._paths.pop(0).open("rb", buffering=0)
            count = int(self._open.readinto(buffer))  # type: ignore[attr-defined]
            if count:
                return count
            self._open.close()
            self._open = None


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep(part: Path, store: Path, manifest: dict[str, Any]) -> list[str]:
    """Keep a part's piece if it is as packed; return the pieces that are missing still."""
    for name, wanted in manifest["pieces"].items():
        source = part / name
        if not source.is_file() or (store / name).is_file():
            continue
        if sha256_of(source) != wanted:
            sys.exit(f"{source} is not as it was packed: its SHA-256 differs. Copy that part again.")
        shutil.copyfile(source, store / f"{name}.new")
        (store / f"{name}.new").rename(store / name)
    return [name for name in manifest["pieces"] if not (store / name).is_file()]


def unpack(folder: Path, store: Path, manifest: dict[str, Any]) -> None:
    """Unpack the pieces and check every file."""
    began = time.monotonic()
    joined = Joined(store / name for name in manifest["pieces"])
    with tarfile.open(fileobj=io.BufferedReader(joined, 2**20), mode="r|xz") as archive:
        archive.extractall(folder, filter="data")
    for name in manifest["pieces"]:
        (store / name).unlink()
    files = [line.split("  ", 1) for line in (folder / "SHA256SUMS").read_text().splitlines()]
    wrong = [name for digest, name in files if sha256_of(folder / name) != digest]
    if wrong:
        sys.exit(f"{len(wrong)} files are not as they were packed, the first is {wrong[0]}.")
    write_env(folder, manifest)
    print(f"unpacked {len(files)} files into {folder} in {time.monotonic() - began:.1f} s, all as packed")


def write_env(folder: Path, manifest: dict[str, Any]) -> None:
    """Write the variables for a shell."""
    lines = [f"export {name}={value}" for name, value in manifest["environment"].items()]
    lines += [f"export PYTHONPATH={folder}/redline", f"export REDLINE_ENGINE_PATH={folder}/engine"]
    (folder / "env").write_text("\n".join(lines) + "\n")


def look_at_host(manifest: dict[str, Any]) -> None:
    """Say where the host differs from what the bundle was made for."""
    from importlib import metadata

    found = ".".join(map(str, sys.version_info[:2]))
    if found != manifest["host"]["python"]:
        print(f"note: the bundle was made for Python {manifest['host']['python']}, this is {found}")
    for name, wanted in manifest["host"]["packages"].items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            print(f"note: {name} {wanted} is not here, and the bundle does not carry it")
            continue
        if not version.startswith(wanted):
            print(f"note: {name} is {version} here; the bundle was made for {wanted}")


def main() -> None:
    """Take this part in."""
    if len(sys.argv) != 2:
        sys.exit("usage: python3 unpack.py FOLDER")
    folder, part = Path(sys.argv[1]).absolute(), Path(__file__).resolve().parent
    manifest = json.loads((part / "manifest.json").read_text())
    if (folder / "SHA256SUMS").is_file():
        print(f"{folder} is complete")
        return
    store = folder / ".pieces"
    store.mkdir(parents=True, exist_ok=True)
    missing = keep(part, store, manifest)
    if missing:
        print(f"kept; still missing {', '.join(missing)}")
        return
    look_at_host(manifest)
    unpack(folder, store, manifest)
    store.rmdir()


if __name__ == "__main__":
    main()

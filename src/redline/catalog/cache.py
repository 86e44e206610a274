"""The checked catalogue, kept between commands, so that `redline tiers` does not read and check it all again.

The key holds every file's path, size and time of change, those of this package's own code included: any change to
any of them means reading anew. A cache that cannot be read or written is no error.
"""

import contextlib
import os
import pickle
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from redline import __version__
from redline.catalog.types import Catalog

_NAME: Final = "catalog.pickle"
Key = tuple[object, ...]


def cache_dir() -> Path:
    """Return this user's folder of things that may be thrown away."""
    base = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or Path.home()) / ".cache"
    return Path(base) / "redline"


def make_key(paths: Iterable[Path]) -> Key:
    """Return what must be unchanged for a kept catalogue to hold: these files, this code, this Python."""
    code = sorted(Path(__file__).parent.glob("*.py"))
    stamps = []
    for path in (*code, *paths):
        try:
            status = path.stat()
        except OSError:
            stamps.append((str(path), 0, 0))
            continue
        stamps.append((str(path), status.st_size, status.st_mtime_ns))
    return (__version__, sys.version, *stamps)


def read_cached(key: Key) -> Catalog | None:
    """Return the kept catalogue if it was made from exactly this."""
    path = cache_dir() / _NAME
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_uid != os.getuid():
                return None
            kept_key, catalog = pickle.load(file)  # noqa: S301 -- this user's own file, in this user's own folder
    except Exception:  # whatever is wrong with it: it is only a cache
        return None
    return catalog if kept_key == key and isinstance(catalog, Catalog) else None


def write_cached(key: Key, catalog: Catalog) -> None:
    """Keep a checked catalogue in place of the one before."""
    folder = cache_dir()
    temporary = folder / f".{_NAME}.{os.getpid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            pickle.dump((key, catalog), file, protocol=pickle.HIGHEST_PROTOCOL)
        temporary.replace(folder / _NAME)

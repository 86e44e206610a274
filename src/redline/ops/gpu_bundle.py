"""A bundle for a GPU host without network: redline, vLLM and what both need, a small model, in parts.

Knows what is packed (`data/bundle`) and how it is cut; `data/bundle/unpack.py` travels with each part and knows the
rest. Nothing here runs what it packs. Packages come through pip, so the user's index and proxy hold.
"""

import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from redline.artifacts.store import ensure
from redline.artifacts.verify import sha256_of
from redline.catalog.types import Catalog
from redline.catalog.yaml_text import parse_yaml
from redline.errors import MissingError, NetworkError, UsageError
from redline.record.files import make_dir
from redline.settings import Settings
from redline.units import format_bytes

MAX_PART_MIB: Final = 60
_DATA: Final = "data/bundle"
_CHUNK_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class BundleStep:
    """What packing is doing, and the seconds since it began."""

    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """What was made: `parts` are folders, each with its piece, the manifest and the script that unpacks."""

    folder: str
    parts: tuple[str, ...]
    total_bytes: int
    files: int
    engine: str
    seconds: float


def contents() -> Mapping[str, Any]:
    """Return what a bundle holds, as data."""
    found, _ = parse_yaml((resources.files("redline.ops") / _DATA / "contents.yaml").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


def make_bundle(
    catalog: Catalog,
    settings: Settings,
    out: Path,
    *,
    part_mib: int = 44,
    extra: tuple[Path, ...] = (),
    wheel: Path | None = None,
    engine: bool = True,
    model: bool = True,
    router: bool = True,
) -> Iterator[BundleStep | Bundle]:
    """Pack, and yield each step; the bundle comes last.

    Args:
        part_mib: most MiB of a part's piece.
        extra: files and folders that are to lie in `extra/` on the host.
        wheel: redline's own wheel; built from the source beside this file where it is None.
        engine: whether the engine is packed; without it the bundle is redline alone.
        router: whether the router of `up --replicas` is packed, beside redline.

    Raises:
        UsageError: parts of an impossible size, or an extra path that is not there.
        MissingError: redline's wheel is not given and cannot be built.
        NetworkError: pip could not get a package.
    """
    began, what = time.monotonic(), contents()
    if not 1 <= part_mib <= MAX_PART_MIB:
        raise UsageError(f"--part-mib {part_mib}: expected 1 to {MAX_PART_MIB}.")
    for path in extra:
        if not path.exists():
            raise UsageError(f"--with {path}: there is no such file or folder.")
    make_dir(out)
    if any(out.iterdir()):
        raise UsageError(f"{out} is not empty.", next_step="Give a new folder, or empty that one.")

    def step(text: str) -> BundleStep:
        return BundleStep(text, time.monotonic() - began)

    with tempfile.TemporaryDirectory(dir=out, prefix=".work-") as scratch:
        stage = make_dir(Path(scratch) / "stage")
        yield step("redline's own wheel")
        own = wheel or _build_wheel(Path(scratch))
        yield step("redline and what it needs")
        needs = ["redline.txt", *(["router.txt"] if router else [])]
        lists = [word for name in needs for word in ("-r", _requirements(name))]
        _install(stage / "redline", what["platforms"], [str(own), *lists])
        if engine:
            yield step(f"{what['engine']} and what it needs")
            _install(stage / "engine", what["platforms"], [what["engine"], "-r", _requirements("engine.txt")])
            _leave_out(stage / "engine", tuple(str(item["path"]) for item in what["left_out"]))
        if model:
            yield step(f"model {what['model']}")
            _add_model(catalog, settings, stage / "models", what["model"])
        for path in extra:
            _copy(path, stage / "extra" / path.name)
        files = _write_sums(stage)
        yield step(f"{files} files are compressed")
        pieces = _pack(stage, Path(scratch), part_mib * 2**20)
        parts = _write_parts(out, pieces, what)
    total = sum(path.stat().st_size for part in parts for path in part.iterdir())
    yield Bundle(
        folder=str(out),
        parts=tuple(str(part) for part in parts),
        total_bytes=total,
        files=files,
        engine=what["engine"] if engine else "",
        seconds=time.monotonic() - began,
    )


def summary(bundle: Bundle) -> str:
    """Return one line about a bundle."""
    return f"{len(bundle.parts)} parts, {format_bytes(bundle.total_bytes)}, {bundle.files} files"


def _build_wheel(scratch: Path) -> Path:
    """Build redline's wheel from the source tree that this module is part of.

    Raises:
        MissingError: it is no source tree, or it cannot be built.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / "pyproject.toml").is_file():
        raise MissingError(
            "This redline was installed from a wheel, so there is no source to build one from.",
            next_step="Give it with --wheel FILE.",
        )
    target = make_dir(scratch / "own")
    argv = [*_PIP, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={target}", str(root)]
    done = _run(argv)
    built = sorted(target.glob("*.whl"))
    if done.returncode != 0 or not built:
        raise MissingError(
            "redline's own wheel could not be built.",
            next_step="Run it from the development environment (make .venv/.dev), or give --wheel FILE.",
            details=_last_lines(done),
        )
    return built[0]


_PIP: Final = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")


def _install(target: Path, platforms: list[str], what: list[str]) -> None:
    """Install packages for the host's interpreter into a folder; nothing of them is run here.

    Raises:
        NetworkError: one could not be had.
    """
    argv = [
        *_PIP, "install", "--no-deps", "--no-compile", "--only-binary=:all:", f"--target={target}",
        f"--python-version={contents()['host']['python']}", "--implementation=cp",
        *(f"--platform={name}" for name in platforms), *what,
    ]  # fmt: skip
    done = _run(argv)
    if done.returncode != 0:
        raise NetworkError(
            f"The packages of {target.name} could not be fetched.",
            next_step="Check the network and try again; pip's own settings hold here.",
            details=_last_lines(done),
        )
    shutil.rmtree(target / "bin", ignore_errors=True)


def _run(argv: list[str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)


def _last_lines(done: "subprocess.CompletedProcess[str]") -> tuple[str, ...]:
    return tuple(line for line in done.stderr.splitlines() if line.strip() and "WARNING" not in line)[-3:]


def _requirements(name: str) -> str:
    return str(resources.files("redline.ops") / _DATA / name)


def _leave_out(site: Path, paths: tuple[str, ...]) -> None:
    for name in paths:
        path = site / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _add_model(catalog: Catalog, settings: Settings, target: Path, artifact: str) -> None:
    folder = ensure(catalog, artifact, settings.models_dir)
    for spec in catalog.artifacts[artifact].files:
        _copy(folder / spec.path, target / artifact / spec.path)


def _copy(source: Path, target: Path) -> None:
    make_dir(target.parent)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc", ".git"))
    else:
        shutil.copyfile(source, target)


def _write_sums(stage: Path) -> int:
    names = sorted(str(path.relative_to(stage)) for path in stage.rglob("*") if path.is_file())
    lines = [f"{sha256_of(stage / name)}  {name}" for name in names]
    (stage / "SHA256SUMS").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(names)


def _pack(stage: Path, scratch: Path, piece_bytes: int) -> list[Path]:
    """Write one compressed archive and cut it; the list of sums comes last, so that its presence means complete."""
    archive = scratch / "bundle.tar.xz"
    # One time stamp for all members: the same contents give the same bytes.
    with tarfile.open(archive, "w:xz", preset=2) as tar:  # higher levels take many minutes on two cores
        for name in [*sorted(path.name for path in stage.iterdir() if path.name != "SHA256SUMS"), "SHA256SUMS"]:
            tar.add(stage / name, name, filter=_plain)
    pieces: list[Path] = []
    with archive.open("rb") as source:
        while True:
            path = scratch / f"piece.{len(pieces) + 1:02d}"
            if not _cut(source, path, piece_bytes):
                break
            pieces.append(path)
    return pieces


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    return member


def _cut(source: Any, path: Path, piece_bytes: int) -> bool:
    left = piece_bytes
    with path.open("wb") as out:
        while left:
            chunk = source.read(min(_CHUNK_BYTES, left))
            if not chunk:
                break
            out.write(chunk)
            left -= len(chunk)
    if left == piece_bytes:
        path.unlink()
        return False
    return True


def _write_parts(out: Path, pieces: list[Path], what: Mapping[str, Any]) -> list[Path]:
    manifest = {
        "pieces": {path.name: sha256_of(path) for path in pieces},
        "engine": what["engine"],
        "host": what["host"],
        "environment": what["environment"],
    }
    text = json.dumps(manifest, indent=1)
    script = (resources.files("redline.ops") / _DATA / "unpack.py").read_text(encoding="utf-8")
    parts = []
    for number, piece in enumerate(pieces, 1):
        part = make_dir(out / f"part{number}")
        piece.replace(part / piece.name)
        (part / "manifest.json").write_text(text, encoding="utf-8")
        (part / "unpack.py").write_text(script, encoding="utf-8")
        parts.append(part)
    return parts

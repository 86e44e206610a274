"""A bundle is cut, put together again by its own script, and refused when a byte is another."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from redline.catalog.load import load_catalog
from redline.errors import UsageError
from redline.ops.gpu_bundle import _leave_out, _pack, _write_parts, _write_sums, contents, make_bundle
from redline.settings import load_settings


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    stage = tmp_path / "stage"
    for number in range(40):
        path = stage / "engine" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{number * row * 7919 % 104729}\n" for row in range(400)))
    (stage / "redline").mkdir()
    (stage / "redline" / "one.py").write_text("print('here')\n")
    _write_sums(stage)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    pieces = _pack(stage, scratch, 10_000)
    assert len(pieces) >= 3
    return _write_parts(tmp_path / "out", pieces, contents())


def unpack(part: Path, target: Path) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, str(part / "unpack.py"), str(target)]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def test_parts_in_any_order_give_every_file(parts: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "host"
    for part in parts[1:]:
        assert "still missing piece.01" in unpack(part, target).stdout
    assert "all as packed" in unpack(parts[0], target).stdout
    assert (target / "redline" / "one.py").read_text() == "print('here')\n"
    assert len(list((target / "engine").iterdir())) == 40
    assert f"PYTHONPATH={target}/redline" in (target / "env").read_text()
    assert "is complete" in unpack(parts[0], target).stdout


def test_a_changed_piece_is_refused_and_not_kept(parts: list[Path], tmp_path: Path) -> None:
    piece = next(parts[0].glob("piece.*"))
    data = bytearray(piece.read_bytes())
    data[5000] ^= 1
    piece.write_bytes(data)
    done = unpack(parts[0], tmp_path / "host")
    assert done.returncode == 1
    assert "is not as it was packed" in done.stderr
    assert not (tmp_path / "host" / ".pieces" / piece.name).exists()


def test_every_part_names_all_pieces(parts: list[Path]) -> None:
    manifests = {(part / "manifest.json").read_text() for part in parts}
    assert len(manifests) == 1
    assert len(json.loads(manifests.pop())["pieces"]) == len(parts)


def test_what_is_left_out_is_gone(tmp_path: Path) -> None:
    names = [item["path"] for item in contents()["left_out"]]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "vllm" / "kept.py").write_text("x")
    _leave_out(tmp_path, tuple(names))
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()] == ["vllm/kept.py"]


def test_what_cannot_be_packed_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    catalog, settings = load_catalog(), load_settings()
    with pytest.raises(UsageError, match="expected 1 to 60"):
        next(make_bundle(catalog, settings, tmp_path / "new", part_mib=61))
    with pytest.raises(UsageError, match="no such file"):
        next(make_bundle(catalog, settings, tmp_path / "new", extra=(tmp_path / "nothing",)))
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="not empty"):
        next(make_bundle(catalog, settings, tmp_path))

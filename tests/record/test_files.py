import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redline.errors import AccessError, DiskSpaceError, RefusedError
from redline.record.files import explain_os_error, hold_lock, make_dir, read_json, write_atomic


def test_a_replaced_file_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_atomic(path, '{"a": 1}')
    write_atomic(path, '{"a": 2}')
    assert read_json(path) == {"a": 2}
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_below_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match="cannot be written"):
        make_dir(tmp_path / "file" / "folder")


def test_a_full_disk_is_told_apart_from_a_missing_permission() -> None:
    assert isinstance(explain_os_error(OSError(errno.ENOSPC, "No space left"), Path("/x/y")), DiskSpaceError)
    assert isinstance(explain_os_error(OSError(errno.EACCES, "Permission denied"), Path("/x/y")), AccessError)


def test_torn_json_reads_as_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a":')
    assert read_json(tmp_path / "a") is None
    assert read_json(tmp_path / "absent") is None


def test_a_held_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = (
        "import sys, pathlib\nfrom redline.record.files import hold_lock\n"
        "with hold_lock(pathlib.Path(sys.argv[1]), 'busy'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RefusedError, match=f"process {holder.pid}"), hold_lock(path, "busy"):
            pytest.fail("two holders of one lock")
        holder.kill()
        holder.wait()
        with hold_lock(path, "busy"):
            assert path.read_text() == str(os.getpid())

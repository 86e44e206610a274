from pathlib import Path

from redline.launch.logfile import RotatingLog, tail


def test_a_log_is_kept_within_bounds(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "engine.log", max_bytes=1000)
    for number in range(100):
        log.write(f"line {number:04d} {'x' * 30}\n".encode())
    log.close()
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 1000
    assert tail(tmp_path / "engine.log", 1) == [f"line 0099 {'x' * 30}"]


def test_a_disk_that_takes_no_more_loses_lines_and_not_the_server() -> None:
    log = RotatingLog(Path("/dev/full"))
    log.write(b"nobody will read this\n")
    assert log.lost_bytes == len(b"nobody will read this\n")
    log.close()


def test_a_tail_bears_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "engine.log").write_bytes(b"a\n\xff\xfe\x00\n" + b"y" * 200_000 + b"\nlast\n")
    assert tail(tmp_path / "engine.log", 1) == ["last"]
    assert tail(tmp_path / "absent.log", 5) == []

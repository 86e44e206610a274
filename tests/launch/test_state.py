"""State folders of other versions, damaged ones and unfinished ones."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path

from tests.launch.scripted import Port, boot, make_plan, record_of

from redline.launch.server import advance, register, running_servers
from redline.launch.state import (
    SCHEMA,
    ServerState,
    append_event,
    list_servers,
    read_history,
    repaired,
    scan_servers,
    write_record,
)
from redline.launch.stop import stop
from redline.rig.process import ProcessId

OLDER = ("form", "sequence", "boot_id", "created_mono_ns", "changed_mono_ns", "ready_s", "owner", "container")


def test_a_server_of_an_older_redline_is_found_and_stopped(tmp_path: Path, free_port: Port) -> None:
    folder, record = boot(tmp_path, make_plan(free_port()))
    data = {name: value for name, value in asdict(record).items() if name not in OLDER}
    data = {**data, "schema_version": 1}
    for name in ("progress", "restarts", "lost_log_bytes", "ended"):
        del data[name]
    (folder / "server.json").write_text(json.dumps(data))
    [(_, older)] = running_servers(tmp_path)
    assert (older.schema_version, older.state) == (1, ServerState.READY)
    stop(folder, older)
    assert record_of(folder).state is ServerState.STOPPED


def test_a_server_of_a_newer_redline_is_read_as_far_as_it_goes_and_not_written(tmp_path: Path, free_port: Port) -> None:
    folder, record = register(tmp_path, make_plan(free_port()))
    gone = ProcessId(1, 1, record.boot_id or "")
    newer = {**asdict(replace(record, state=ServerState.READY, supervisor=gone)), "schema_version": SCHEMA + 1, "x": 1}
    text = json.dumps(newer)
    (folder / "server.json").write_text(text)
    [(_, read)] = list_servers(tmp_path)
    assert repaired(folder, read).state is ServerState.FAILED
    assert (folder / "server.json").read_text() == text


def test_what_cannot_be_read_is_named_with_the_reason(tmp_path: Path, free_port: Port) -> None:
    good, _ = register(tmp_path, make_plan(free_port()))
    for name, text in {"a": "{", "b": '{"schema_version": 0}', "c": '{"state": "flying"}', "d": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.json").write_text(text)
    (tmp_path / "e").mkdir()
    (tmp_path / "a-file").write_text("")
    servers, unreadable = scan_servers(tmp_path)
    assert [folder for folder, _ in servers] == [good]
    assert [item.folder.name for item in unreadable] == ["a", "b", "c", "d", "e"]
    assert unreadable[0].why == "its server.json is damaged"
    assert "schema 0" in unreadable[1].why
    assert unreadable[4].why == "it has no server.json"


def test_a_server_in_preparation_lives_and_dies_with_its_command(tmp_path: Path, free_port: Port) -> None:
    folder, _ = register(tmp_path, make_plan(free_port()))
    record = advance(folder, ServerState.FETCHING, "fetching")
    assert repaired(folder, record).state is ServerState.FETCHING
    assert record.owner is not None
    orphaned = replace(record, owner=replace(record.owner, start_ticks=record.owner.start_ticks - 1))
    write_record(folder, orphaned)
    fixed = repaired(folder, orphaned)
    assert fixed.state is ServerState.FAILED
    assert fixed.ended
    assert fixed.reason == "the command that prepared it ended without a word (killed?)"


def test_a_machine_that_lost_its_power_leaves_no_running_server(tmp_path: Path, free_port: Port) -> None:
    folder, record = register(tmp_path, make_plan(free_port()))
    earlier = ProcessId(os.getpid(), 1, "another-boot")
    write_record(folder, replace(record, state=ServerState.READY, boot_id="another-boot", supervisor=earlier))
    assert running_servers(tmp_path) == []
    assert record_of(folder).reason == "the machine was restarted"


def test_torn_and_foreign_lines_of_a_history_are_left_out(tmp_path: Path) -> None:
    append_event(tmp_path, ServerState.PLANNED, "planned")
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'"text"\n{"time": 1}\n\xff\xfe\n{"time": 1, "sta')
    assert [event["state"] for event in read_history(tmp_path)] == ["planned"]


def test_servers_are_in_the_order_they_were_made_whatever_the_clock_said(tmp_path: Path, free_port: Port) -> None:
    first, record = register(tmp_path, make_plan(free_port()))
    write_record(first, replace(record, created_at=record.created_at + 86_400))
    second, _ = register(tmp_path, make_plan(free_port()))
    assert [folder for folder, _ in list_servers(tmp_path)] == [first, second]

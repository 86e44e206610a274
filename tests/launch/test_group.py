"""Which servers belong together, and which of them a user means."""

from pathlib import Path

from redline.launch.group import Group, Server, fronts, group_of, read_groups, together, write_group
from redline.launch.state import SCHEMA, ServerRecord, ServerState

GROUP = Group(router="r", members=("a", "b"))


def server(server_id: str) -> Server:
    record = ServerRecord(
        schema_version=SCHEMA,
        server_id=server_id,
        slug="llamacpp/x",
        url="http://127.0.0.1:1",
        port=1,
        state=ServerState.READY,
        served_model="m",
        engine="llamacpp",
        engine_version="0",
        created_at=0,
        changed_at=0,
    )
    return Path(server_id), record


def ids(servers: list[Server]) -> list[str]:
    return [record.server_id for _, record in servers]


ALL = [server(name) for name in ("a", "b", "r", "other")]


def test_a_group_survives_the_disk_and_what_is_not_one_is_left_out(tmp_path: Path) -> None:
    for name in ("r", "torn", "newer"):
        (tmp_path / name).mkdir()
    write_group(tmp_path / "r", GROUP)
    (tmp_path / "torn" / "group.json").write_text('{"schema_version": 1, "rou')
    (tmp_path / "newer" / "group.json").write_text('{"schema_version": 2, "router": "x", "members": []}')
    assert read_groups(tmp_path) == (GROUP,)
    assert read_groups(tmp_path / "absent") == ()


def test_roles() -> None:
    assert [GROUP.role(name) for name in ("r", "a", "b")] == ["router", "copy 1", "copy 2"]
    assert group_of([GROUP], "b") == GROUP
    assert group_of([GROUP], "other") is None


def test_one_of_a_group_brings_all_the_router_first() -> None:
    assert ids(together(ALL, [GROUP], ["b"])) == ["r", "a", "b"]
    assert ids(together(ALL, [GROUP], ["other"])) == ["other"]
    assert ids(together(ALL[:2], [GROUP], ["a"])) == ["a", "b"]


def test_a_user_talks_to_the_router_or_to_what_is_left() -> None:
    assert ids(fronts(ALL, [GROUP])) == ["r", "other"]
    assert ids(fronts([ALL[0], ALL[1], ALL[3]], [GROUP])) == ["a", "other"]
    assert ids(fronts(ALL, [])) == ids(ALL)

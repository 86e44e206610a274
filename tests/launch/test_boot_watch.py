import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.launch.scripted import make_plan

from redline.engine.launch_plan import StagePattern
from redline.launch.boot_times import Expectation, expectation, remember_boot
from redline.launch.boot_watch import BootWatch, LifeBegan, Progress, StageBegan
from redline.launch.state import SCHEMA, ServerRecord, ServerState

BOOT = (
    b"engine build 7\nloading weights\nLoading safetensors checkpoint shards:  50% Completed | 1/2\r"
    b"Loading safetensors checkpoint shards: 100% Completed | 2/2\nCapturing CUDA graphs (FULL):  50%|#####     | 1/2\n"
    b"listening\n"
)


@given(st.integers(0, 2**32))
def test_output_is_understood_however_it_is_cut(seed: int) -> None:
    rng = random.Random(seed)
    whole = list(BootWatch(make_plan(1)).feed(BOOT))
    watch, seen, at = BootWatch(make_plan(1)), [], 0
    while at < len(BOOT):
        step = rng.randrange(1, 40)
        seen += list(watch.feed(BOOT[at : at + step]))
        at += step
    assert seen == whole
    assert [type(item) for item in whole] == [LifeBegan, StageBegan, Progress, Progress, StageBegan]


def test_stages_go_forward_and_a_new_life_begins_them_anew() -> None:
    watch = BootWatch(make_plan(1))
    seen = list(
        watch.feed(b"engine build\nloading weights\nlistening\nloading weights\nengine build\nloading weights\n")
    )
    states = [item.state for item in seen if isinstance(item, StageBegan)]
    assert states == [ServerState.LOADING, ServerState.LISTENING, ServerState.LOADING]
    assert [item.number for item in seen if isinstance(item, LifeBegan)] == [1, 2]


def test_a_stage_that_no_state_is_named_after_is_left_out() -> None:
    plan = make_plan(1, stages=(StagePattern(stage="singing", text="la"), StagePattern(stage="loading", text="load")))
    assert [type(item) for item in BootWatch(plan).feed(b"la la\nload\n")] == [StageBegan]


def test_an_endless_line_costs_no_memory() -> None:
    watch = BootWatch(make_plan(1))
    for _ in range(200):
        assert list(watch.feed(b"z" * 65_536)) == []
    assert len(watch._pending) <= 16_384


def test_the_next_boot_is_expected_to_last_as_the_latest_did(tmp_path: Path) -> None:
    record = ServerRecord(
        schema_version=SCHEMA,
        server_id="s",
        slug="test/engine",
        url="http://127.0.0.1:1",
        port=1,
        state=ServerState.READY,
        served_model="m",
        engine="llamacpp",
        engine_version="1",
        created_at=0,
        changed_at=0,
        form="native",
    )
    assert expectation(tmp_path, record.slug, "1", "native") is None
    for seconds in (100.0, 10.0, 12.0, 11.0, 13.0, 12.0):
        remember_boot(tmp_path, record, {"starting": 1.0, "loading": seconds})
    torn = (tmp_path / "boots.jsonl").read_text() + '{"slug": 1}\n{"sl'
    (tmp_path / "boots.jsonl").write_text(torn)
    found = expectation(tmp_path, record.slug, "1", "native")
    assert found == Expectation(13.0, {"starting": 1.0, "loading": 12.0}, 5)
    assert found.remaining_s("starting", 0.5) == 12.5
    assert found.remaining_s("loading", 20.0) is None
    assert expectation(tmp_path, record.slug, "2", "native") is None

"""Stages of a boot: read from the lines that engines print."""

from pathlib import Path

import pytest

from redline.engine.launch_plan import StagePattern
from redline.engine.log_text import split_lines
from redline.engine.registry import get_engine
from redline.engine.stages import stages_of
from redline.launch.state import ServerState

LOGS = Path(__file__).parent / "logs"


def _reached(engine: str, log: str) -> list[str]:
    order: list[str] = []
    for line in split_lines([(LOGS / log).read_bytes()]):
        order += [item.stage for item in stages_of(engine) if item.text in line and item.stage not in order]
    return order


def test_a_healthy_boot_passes_the_stages_in_order() -> None:
    assert _reached("vllm", "healthy-vllm.log") == ["loading", "compiling", "capturing", "warming"]
    assert _reached("llamacpp", "healthy-llamacpp.log") == ["loading", "warming"]


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_stages_are_states_of_a_server_in_their_order(engine: str) -> None:
    order = list(ServerState)
    places = [order.index(ServerState(item.stage)) for item in stages_of(engine)]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("line", "fraction"),
    [
        ("Loading safetensors checkpoint shards:  62% Completed | 5/8 [00:14<00:08,  2.70s/it]", 0.62),
        ("Capturing CUDA graphs (FULL):  50%|█████     | 1/2 [00:00<00:00,  3.14it/s]", 0.5),
        ("Capturing CUDA graphs (FULL):   0%|  | 0/67 [00:00<?, ?it/s]", 0.0),
        ("Loading weights took 5.21 seconds", None),
        ("Loading safetensors checkpoint shards:", None),
    ],
)
def test_progress_is_read_from_bars(line: str, fraction: float | None) -> None:
    found = [value for item in stages_of("vllm") if (value := item.fraction(line)) is not None]
    assert found == ([] if fraction is None else [fraction])


def test_a_bar_that_wrote_over_itself_counts_where_it_stands() -> None:
    pattern = StagePattern(stage="loading", text="shards", progress=r"(?P<percent>\d+)%")
    assert pattern.fraction("shards: 10% \b\b shards: 80%") == 0.8
    assert StagePattern(stage="x", text="x", progress=r"(?P<done>\d+)/(?P<total>\d+)").fraction("x 0/0") is None


def test_an_engine_or_version_that_is_not_known_has_no_stages() -> None:
    assert stages_of("sglang") == ()
    assert stages_of("vllm", "0.8.3") == ()
    assert stages_of("vllm", "0.33.0") == stages_of("vllm")
    assert stages_of("llamacpp", "b11549")


def test_an_engine_tells_its_stages() -> None:
    assert get_engine("llamacpp").stages == stages_of("llamacpp")

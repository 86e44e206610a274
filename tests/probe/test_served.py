"""What fake engines of both dialects say of themselves, and the memory of their processes."""

import asyncio
from pathlib import Path

import pytest

from redline.errors import EndpointError
from redline.fake.spawn import fake_engine
from redline.probe.client import Client
from redline.probe.memory import ServerMemory
from redline.probe.served import Served, ask_served, count_tokens
from redline.probe.target import Target


@pytest.mark.parametrize(
    ("dialect", "served"),
    [
        ("vllm", Served(engine="vllm", context_tokens=32768, slots=None)),
        ("llamacpp", Served(engine="llamacpp", context_tokens=32768, slots=4)),
    ],
)
def test_an_endpoint_says_what_it_is(tmp_path: Path, dialect: str, served: Served) -> None:
    async def ask(url: str) -> tuple[Served, int | None, bool]:
        async with Client(Target(url=url, model="redline-fake")) as client:
            counters = await client.counters()
            return await ask_served(client), await count_tokens(client, "one two three"), counters is not None

    with fake_engine("healthy", tmp_path / "log", ("--dialect", dialect)) as fake:
        found, tokens, counted = asyncio.run(ask(fake.url))
        sample = ServerMemory(fake.url).sample()
    assert (found, counted) == (served, True)
    assert tokens is not None
    assert tokens >= 3
    assert sample.process is not None
    assert sample.process.pid == fake.process.pid
    assert sample.resident_bytes is not None


def test_a_web_page_is_no_endpoint(tmp_path: Path) -> None:
    async def ask(url: str) -> Served:
        async with Client(Target(url=url, model="m")) as client:
            return await ask_served(client)

    with (
        fake_engine("html-instead-of-json", tmp_path / "log") as fake,
        pytest.raises(EndpointError, match="not with JSON"),
    ):
        asyncio.run(ask(fake.url))


def test_memory_of_another_machine_is_unknown() -> None:
    sample = ServerMemory("http://gpu-box.example:8000").sample()
    assert (sample.resident_bytes, sample.gpu_bytes, sample.process) == (None, None, None)

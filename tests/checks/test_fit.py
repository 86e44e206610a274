"""Counting tokens and reading the context of both dialects, against the fake engine's own rule."""

import asyncio
from pathlib import Path

import pytest

from redline.checks.check import CheckContext
from redline.checks.fit import context_limit, count_tokens, fit_haystack
from redline.fake import tokens
from redline.fake.spawn import fake_engine
from redline.probe.client import Client
from redline.probe.target import Target

TEXT = "The quick brown fox, 42 times over.\nAnd then?"


@pytest.mark.parametrize("dialect", ["vllm", "llamacpp"])
def test_tokens_and_context_are_the_servers(dialect: str, tmp_path: Path) -> None:
    async def look(url: str) -> None:
        async with Client(Target(url=url, model="redline-fake")) as client:
            assert await count_tokens(client, TEXT) == tokens.count(TEXT)
            assert await context_limit(client) == 4096
            context = CheckContext(client=client, model=None, drafting=None)
            haystack, fitted = await fit_haystack(context, "seed", 2000, (0.5,))
            assert 1700 <= tokens.count(haystack.text) == fitted.tokens <= 2000
            assert haystack.needles[0].code in haystack.text

    arguments = ["--dialect", dialect, "--set", "model.context=4096"]
    with fake_engine("healthy", tmp_path / "log", arguments) as fake:
        asyncio.run(look(fake.url))

"""The smoke suite against the fake: a healthy engine passes, and each fault is seen by the check that is for it."""

import asyncio
from typing import Any

import pytest

from redline.checks.check import CheckContext, CheckStatus, run_checks
from redline.checks.smoke import smoke_suite
from redline.probe.client import Client
from redline.probe.target import Target


def _failed(talk: Any, *, drafting: bool) -> set[str]:
    async def run() -> set[str]:
        target = Target(url=talk.fake.url, model="redline-fake", engine="llamacpp")
        async with Client(target) as client:
            context = CheckContext(client=client, model=None, drafting=drafting)
            results = [result async for result in run_checks(smoke_suite(), context)]
        return {result.check_id for result in results if result.status not in (CheckStatus.PASS, CheckStatus.SKIP)}

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("scenario", "failed"),
    [
        ("healthy", set()),
        ("wrong-model-id", {"reach.models"}),
        ("dead-drafter", {"spec.acceptance"}),
        ("idle-drafter", {"spec.acceptance"}),
        ("buffering-proxy", {"stream.granularity"}),
        ("missing-usage", {"stream.granularity"}),
        ("tool-markup-as-text", {"tools.call"}),
        ("reasoning-in-content", {"thinking.split"}),
        ("schema-ignored", {"output.json_schema"}),
        ("image-refused", {"vision.facts"}),
        ("image-unseen", {"vision.facts"}),
        ("silent-empty-masked", {"output.json_schema", "tools.call"}),
    ],
)
def test_the_right_check_fails_and_no_other(play: Any, scenario: str, failed: set[str]) -> None:
    with play(scenario, "--dialect", "llamacpp", "--set", "speed.step_s=0.001") as talk:
        assert _failed(talk, drafting="draft" in scenario or scenario == "healthy") == failed

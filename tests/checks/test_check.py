"""How a list of checks is run: faults of a check, of the catalogue's knowledge, of the server."""

import asyncio
from pathlib import Path

import pytest

from redline.checks.check import BaseCheck, Check, CheckContext, CheckResult, CheckStatus, run_checks
from redline.errors import EndpointError, InconclusiveError
from redline.fake.spawn import fake_engine
from redline.probe.client import Client
from redline.probe.target import Target


class _Raises(BaseCheck):
    id, title, failure_class = "a.raises", "raises", "none"

    def __init__(self, error: Exception, *, essential: bool = False) -> None:
        self.error, self.essential = error, essential

    async def run(self, context: CheckContext) -> CheckResult:
        raise self.error


class _Fails(BaseCheck):
    id, title, failure_class, requires = "a.fails", "fails", "none", ("tools",)

    async def run(self, context: CheckContext) -> CheckResult:
        return self.result(CheckStatus.FAIL, "no")


def _run(checks: list[Check], folder: Path) -> list[CheckResult]:
    async def all_of(url: str) -> list[CheckResult]:
        async with Client(Target(url=url, model="redline-fake")) as client:
            context = CheckContext(client=client, model=None, drafting=None)
            return [result async for result in run_checks(checks, context)]

    with fake_engine("healthy", folder / "log") as fake:
        return asyncio.run(all_of(fake.url))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EndpointError("no answer"), CheckStatus.FAIL),
        (InconclusiveError("cannot be said"), CheckStatus.INCONCLUSIVE),
        (KeyError("ours"), CheckStatus.ERROR),
    ],
)
def test_what_a_check_raises_is_its_verdict_and_the_others_go_on(
    error: Exception, status: CheckStatus, tmp_path: Path
) -> None:
    results = _run([_Raises(error), _Raises(InconclusiveError("next"))], tmp_path)
    assert [row.status for row in results] == [status, CheckStatus.INCONCLUSIVE]


def test_a_lack_of_an_unknown_model_proves_nothing_and_an_essential_failure_ends_the_suite(tmp_path: Path) -> None:
    essential = _Raises(EndpointError("not this one"), essential=True)
    results = _run([_Fails(), essential, _Fails()], tmp_path)
    assert [row.status for row in results] == [CheckStatus.INCONCLUSIVE, CheckStatus.FAIL, CheckStatus.SKIP]
    assert results[-1].skip_reason == "unmet"

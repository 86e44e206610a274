"""A suite played against the fake engine, in a real process: which faults are caught by which check.

For the confusion table and its test. A scenario that is healthy must fail nothing; every other must be caught.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.catalog.load import load_catalog
from redline.catalog.types import Capabilities, Model, Offer
from redline.checks.check import Check, CheckContext, CheckResult, LogRule, Observed, run_checks
from redline.checks.reach import log_rules
from redline.checks.suites import Suite, all_checks, suite_checks
from redline.fake.scenario import Scenario, load_scenario
from redline.fake.spawn import FakeProcess, fake_engine
from redline.probe.client import Client
from redline.probe.target import Target

_DATA: Final = Path(__file__).parent / "data" / "rehearsal.yaml"
# The drafter whose line must stand in a log of vLLM.
_LOGGED_DRAFTER: Final = "dflash2"
# The fake engine's id; its model can do everything unless the scenario says otherwise.
MODEL_ID: Final = "redline-fake"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A scenario's part in the confusion table; `data/rehearsal.yaml` says what each field means."""

    scenario: str
    checks: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    caught_by: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    patience: float = 1.0
    reference: str = ""
    beyond: str = ""

    def chosen(self) -> tuple[Check, ...]:
        """Return the checks of the fast test: reach.models, then the named ones in the order of the file."""
        known = all_checks()
        whole = [check for suite in self.suites for check in suite_checks(Suite(suite))]
        named = [known[name] for name in ("reach.models", *self.checks)]
        return tuple(whole or named)


@lru_cache(maxsize=1)
def load_parts() -> tuple[Part, ...]:
    """Return every scenario's part, in the order of the file."""
    rows: list[dict[str, Any]] = yaml.safe_load(_DATA.read_text(encoding="utf-8"))
    return tuple(Part(**{name: _frozen(value) for name, value in row.items()}) for row in rows)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def fake_model(scenario: Scenario) -> Model:
    """Return what a catalogue would say of a scenario's model, its abilities as it should have them.

    A scenario in which an ability is broken still offers it: that is what the catalogue would say.
    """
    base = next(iter(load_catalog(None).models.values()))
    healthy, played = scenario.kind == "healthy", scenario.model
    capabilities = Capabilities(
        tools=_offer(on=played.tools or not healthy),
        thinking=_offer(on=played.thinking != "none" or not healthy),
        vision=_offer(on=played.vision or not healthy),
    )
    return replace(base, id=MODEL_ID, aliases=(), context_max=played.context, capabilities=capabilities)


def _offer(*, on: bool) -> Offer:
    return Offer(offered=on, why="so the scenario says", source="the scenario")


def rehearse(
    name: str,
    checks: Sequence[Check],
    folder: Path,
    *,
    dialect: str = "",
    settings: Sequence[str] = (),
    patience: float = 1.0,
    rules: tuple[LogRule, ...] | None = None,
    reference: str = "",
) -> list[CheckResult]:
    """Start a scenario, run checks against it, and return their results; `reference` plays beside it without a drafter.

    Raises:
        RuntimeError: the scenario does not come to serve.
    """
    scenario = load_scenario(name)
    spoken = dialect or scenario.dialects[0]
    arguments = ["--dialect", spoken, *(text for setting in settings for text in ("--set", setting))]
    rules = log_rules(spoken, _LOGGED_DRAFTER) if rules is None else rules
    with contextlib.ExitStack() as stack:
        fake = stack.enter_context(fake_engine(name, folder / f"{name}.log", arguments))
        witness = stack.enter_context(fake_engine(reference, folder / "reference.log")).url if reference else None
        return asyncio.run(_run(fake, scenario, checks, patience, rules, witness))


async def _run(
    fake: FakeProcess,
    scenario: Scenario,
    checks: Sequence[Check],
    patience: float,
    rules: tuple[LogRule, ...],
    reference: str | None,
) -> list[CheckResult]:
    drafter = scenario.drafter
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(Target(url=fake.url, model=MODEL_ID)))
        witness = Client(Target(url=reference, model=MODEL_ID)) if reference else None
        if witness is not None:
            await stack.enter_async_context(witness)
        context = CheckContext(
            client=client,
            model=fake_model(scenario),
            drafting=drafter is not None,
            draft_method=drafter.method if drafter else "",
            draft_depth=drafter.depth if drafter else 0,
            patience=patience,
            log_lines=fake.log_lines,
            log_rules=rules,
            reference=witness,
            seen=Observed(),
        )
        return [result async for result in run_checks(checks, context)]

"""A suite played against the fake engine, in a real process: which faults are caught by which check.

For the confusion table and its test. A scenario that is healthy must fail nothing; every other must be caught.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.catalog.load import load_catalog
from redline.catalog.types import Capabilities, Model, Offer
from redline.checks.check import Check, CheckContext, CheckResult, LogRule, Observed, run_checks
from redline.checks.suites import Suite, all_checks, suite_checks
from redline.fake.scenario import Scenario, load_scenario
from redline.fake.spawn import FakeProcess, fake_engine
from redline.probe.client import Client
from redline.probe.target import Target

_DATA: Final = Path(__file__).parent / "data" / "rehearsal.yaml"
# Texts that a log of vLLM or llama.cpp holds once it serves, and one that no working server writes.
LOG_RULES: Final = (LogRule("CUDA out of memory", wanted=False, meaning="the device is full"),)
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
    log_rules: tuple[LogRule, ...] = LOG_RULES,
) -> list[CheckResult]:
    """Start a scenario, run checks against it, and return their results.

    Raises:
        RuntimeError: the scenario does not come to serve.
    """
    scenario = load_scenario(name)
    arguments = ["--dialect", dialect or scenario.dialects[0]]
    arguments += [text for setting in settings for text in ("--set", setting)]
    with fake_engine(name, folder / f"{name}.log", arguments) as fake:
        return asyncio.run(_run(fake, scenario, checks, patience, log_rules))


async def _run(
    fake: FakeProcess, scenario: Scenario, checks: Sequence[Check], patience: float, log_rules: tuple[LogRule, ...]
) -> list[CheckResult]:
    drafter = scenario.drafter
    async with Client(Target(url=fake.url, model=MODEL_ID)) as client:
        context = CheckContext(
            client=client,
            model=fake_model(scenario),
            drafting=drafter is not None,
            draft_method=drafter.method if drafter else "",
            draft_depth=drafter.depth if drafter else 0,
            patience=patience,
            log_lines=fake.log_lines,
            log_rules=log_rules,
            seen=Observed(),
        )
        return [result async for result in run_checks(checks, context)]

"""Is this the server that was asked for, and did it start as it should?"""

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import yaml

from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, LogRule, SkipReason
from redline.engine.signatures import signature_book

_DATA: Final = Path(__file__).parent / "data" / "log_rules.yaml"


def log_rules(engine: str, drafter: str) -> tuple[LogRule, ...]:
    """Return what the log of an engine that works holds, with this drafter, and the words of faults that it does not.

    A fault is named here only where its words alone give it away, wherever they stand.
    """
    plain = (
        item
        for item in signature_book().of_engine(engine)
        if item.pattern is None and item.after is None and item.before is None and not item.at_end
    )
    wanted = (row for row in _wanted() if row["engine"] == engine and row["drafter"] in drafter)
    return (
        *(LogRule(row["text"], wanted=True, meaning=row["meaning"]) for row in wanted),
        *(LogRule(item.text, wanted=False, meaning=item.meaning) for item in plain),
    )


@lru_cache(maxsize=1)
def _wanted() -> list[dict[str, Any]]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    rows: list[dict[str, Any]] = yaml.load(_DATA.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    return rows


class ModelListed(BaseCheck):
    """The server lists the model that this target names."""

    id, title, failure_class = "reach.models", "model listed", "wrong port or model"
    essential = True

    async def run(self, context: CheckContext) -> CheckResult:
        """Compare the list with the name."""
        listed = await context.client.model_ids()
        wanted = context.client.target.model
        if wanted in listed:
            return self.result(CheckStatus.PASS, f"{wanted} is served")
        return self.result(CheckStatus.FAIL, f"it serves {', '.join(listed) or 'nothing'}, not {wanted}")


class BootLog(BaseCheck):
    """The log holds what it must hold, and nothing that a working server does not say."""

    id, title, failure_class = "boot.log_assertions", "boot log", "patch or plugin not applied"

    async def run(self, context: CheckContext) -> CheckResult:
        """Look for every text of the rules."""
        if context.log_lines is None:
            return self.skip(SkipReason.NOT_OFFERED, "redline did not start this server and has no log of it")
        if not context.log_rules:
            return self.skip(SkipReason.NOT_OFFERED, "nothing is known of what this log should hold")
        log = "\n".join(context.log_lines())
        for rule in context.log_rules:
            if (rule.text in log) is not rule.wanted:
                state = "is missing from" if rule.wanted else "stands in"
                return self.result(CheckStatus.FAIL, f"{rule.text!r} {state} the log: {rule.meaning}")
        return self.result(CheckStatus.PASS, f"{len(context.log_rules)} rules hold")

"""Is this the server that was asked for, and did it start as it should?"""

from redline.checks.check import BaseCheck, CheckContext, CheckResult, CheckStatus, SkipReason


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

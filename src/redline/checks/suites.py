"""Which checks make a suite, in which order, and the most that a suite may spend. Knows no server."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from redline.catalog.types import Model
from redline.checks.boundary import AgentHistory, IdeShape, LongReasoning, ToolPrefill
from redline.checks.chat import BasicAnswer
from redline.checks.check import Check, not_offered
from redline.checks.context import ContextCeiling, ContextLadder, ContextRecall, DecodeAtDepth
from redline.checks.equality import GreedyEquality
from redline.checks.messages import Messages
from redline.checks.output import Degeneration, JsonOutput
from redline.checks.reach import BootLog, ModelListed
from redline.checks.spec import DraftAcceptance, DraftEndurance
from redline.checks.stream import Streaming
from redline.checks.telemetry import Conditions, HostMemory
from redline.checks.thinking import ThinkingSplit, ThinkingSwitch
from redline.checks.tools import StreamedToolCall, ToolCall, ToolCallAfterThinking
from redline.checks.vision import VisionFacts


class Suite(StrEnum):
    """A list of checks by its name."""

    SMOKE = "smoke"
    FULL = "full"
    STRESS = "stress"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The most tokens that a suite may spend on a model."""

    prompt_tokens: int
    output_tokens: int


def suite_checks(suite: Suite) -> tuple[Check, ...]:
    """Return the checks of a suite, cheapest first and those that may kill a server last."""
    match suite:
        case Suite.SMOKE:
            return (
                ModelListed(),
                BasicAnswer(),
                Streaming(),
                JsonOutput(),
                DraftAcceptance(),
                ToolCall(),
                ThinkingSplit(),
                VisionFacts(),
            )
        case Suite.FULL:
            return (
                ModelListed(),
                BootLog(),
                ThinkingSwitch(),
                BasicAnswer(),
                Streaming(),
                JsonOutput(),
                Messages(),
                ToolCall(),
                StreamedToolCall(),
                ThinkingSplit(),
                VisionFacts(),
                DraftAcceptance(),
                GreedyEquality(),
                ToolCallAfterThinking(),
                Degeneration(),
            )
        case Suite.STRESS:
            return (
                ModelListed(),
                ThinkingSwitch(),
                DraftEndurance(),
                ToolCallAfterThinking("tools.drop_rate", "tool calls kept after thinking", trials=10),
                IdeShape(),
                AgentHistory(),
                LongReasoning(),
                ToolPrefill(),
                ContextLadder(),
                DecodeAtDepth(),
                ContextCeiling(),
                ContextRecall(),
                Conditions(),
                HostMemory(),
            )


def all_checks() -> dict[str, Check]:
    """Return every check of every suite by its id."""
    return {check.id: check for suite in Suite for check in suite_checks(suite)}


def estimate(checks: Sequence[Check], model: Model | None) -> Estimate:
    """Return the most that checks may spend, those left out that this model does not offer."""
    asked = [check.most_tokens for check in checks if not_offered(check, model) is None]
    return Estimate(sum(prompt for prompt, _ in asked), sum(output for _, output in asked))

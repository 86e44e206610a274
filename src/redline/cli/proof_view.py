"""What soak, ramp and concurrency show: a line of progress, then one line a verdict."""

from collections.abc import Iterable
from typing import assert_never

from redline.bench.concurrency import Level
from redline.checks.check import CheckResult, CheckStatus
from redline.cli.screen import Screen
from redline.cli.up_view import estimate_words
from redline.ops.events import (
    ConcurrencyDone,
    PrefillDone,
    PrefillMeasured,
    ProofEvent,
    RampDone,
    RampTurnDone,
    RoundDone,
    SettleDone,
    SoakDone,
    TurnDone,
)

# A trend that stays open is neither well nor ill.
_LABELS = {CheckStatus.INCONCLUSIVE: "open"}
_COLOURS = {CheckStatus.PASS: "green", CheckStatus.FAIL: "red", CheckStatus.ERROR: "red"}


class ProofView:
    """Shows the events of one long proof."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def show(self, event: ProofEvent) -> None:
        """Show one event."""
        match event:
            case TurnDone():
                turn = event.turn
                words = f"{event.number}{f' of {event.total}' if event.total else ''}  session {turn.session}"
                rate = f"  {turn.decode_tok_s:.1f} tok/s" if turn.decode_tok_s else ""
                self._screen.progress("soak", f"{words} {turn.shape}{rate}", step=f"session {turn.session}")
            case SoakDone():
                show_verdicts(self._screen, event.summary.results)
                self._screen.line("seen", event.summary.statement)
            case RampTurnDone():
                words = f"{event.number} of {event.total}  {event.turn.prompt_tokens or '?'} tokens"
                first = f"  first token {event.turn.ttft_s:.2f} s" if event.turn.ttft_s else ""
                self._screen.progress("ramp", words + first, step=f"session {event.turn.session}")
            case RampDone():
                show_verdicts(self._screen, event.summary.results)
            case RoundDone():
                words = f"{event.number} of {event.total}  {event.row.streams} streams"
                self._screen.progress("round", words, step=f"round {event.row.number + 1}")
            case ConcurrencyDone():
                for level in event.summary.levels:
                    self._screen.line("streams", _level_words(level))
                show_verdicts(self._screen, event.summary.results)
            case PrefillDone():
                words = f"{event.number} of {event.total}  {event.sample.prompt_tokens or '?'} tokens"
                self._screen.progress("prefill", words, step="reading long prompts")
            case PrefillMeasured():
                for row in event.summaries:
                    rate = estimate_words(row.prefill_tok_s, "tok/s")
                    self._screen.line("prefill", f"{row.target_tokens} tokens {rate}")
            case SettleDone():
                self._screen.line("settle", event.settling.describe())
            case _:
                assert_never(event)


def _level_words(level: Level) -> str:
    together = estimate_words(level.aggregate_tok_s, "tok/s")
    each = estimate_words(level.per_stream_tok_s, "tok/s")
    first = f"   first token {level.ttft_s.mean:.2f} s" if level.ttft_s else ""
    return f"{level.streams:>4}   together {together}   each {each}{first}"


def show_verdicts(screen: Screen, results: Iterable[CheckResult]) -> None:
    """Write one line a verdict."""
    for row in results:
        screen.line(
            _LABELS.get(row.status, row.status.value),
            f"{row.check_id:<22} {row.message}",
            colour=_COLOURS.get(row.status),
        )

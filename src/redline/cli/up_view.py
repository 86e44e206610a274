"""What `up` shows: one line a step, then where the server is and what to do next."""

import json
import shlex
from collections.abc import Iterable
from typing import Any

from redline import __version__
from redline.artifacts.progress import FileProgress
from redline.bench.quick import ClassSummary
from redline.checks.check import CheckResult, CheckStatus, SkipReason
from redline.cli.findings import write_findings
from redline.cli.screen import Screen, program
from redline.cli.server_view import ServerView
from redline.ops.events import (
    Began,
    CheckDone,
    ChecksDone,
    Event,
    FilesReady,
    ImageProgress,
    Measured,
    Planned,
    RunSaved,
    SampleDone,
)
from redline.plan.types import FitPlan
from redline.record.codec import jsonable
from redline.stats.interval import Estimate
from redline.units import format_bytes, format_gib, format_seconds


class UpView:
    """Shows the events of one `up` and remembers what its end needs."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._servers = ServerView(screen)
        self._results: tuple[CheckResult, ...] = ()
        self._summaries: tuple[ClassSummary, ...] = ()
        self._run: RunSaved | None = None

    @property
    def exit_code(self) -> int:
        """The code that the run ended with."""
        return self._run.exit_code if self._run else 0

    def show(self, event: Event) -> None:
        """Show one event."""
        screen = self._screen
        match event:
            case Began():
                form = "the embedded tier " if event.tier.key.topology == "cpu" else ""
                screen.text(f"redline {__version__} on {event.rig.describe()}: {form}{event.tier.slug}")
            case Planned():
                screen.line("plan", plan_words(event.fit))
                write_findings(finding for finding in event.findings if finding.severity != "refuse")
            case FileProgress():
                screen.progress("files", file_words(event), step=f"{event.artifact}: {event.step}")
            case FilesReady():
                size = format_bytes(event.artifact.size_bytes)
                state = "verified" if event.verified else "NOT verified"
                screen.line("files", f"{event.artifact.title}   {size}   {state}")
            case ImageProgress():
                screen.progress("image", f"{event.image}  {event.line}", step=event.image)
            case CheckDone():
                words = f"{event.number} of {event.total}  {event.result.title}"
                screen.progress("check", words, step=event.result.title)
            case ChecksDone():
                self._results = event.results
                show_checks(screen, event.results)
            case SampleDone():
                words = f"{event.number} of {event.total}  {event.sample.prompt_class.value}"
                screen.progress("speed", words, step="measuring")
            case Measured():
                self._summaries = event.summaries
                show_speed(screen, event.summaries)
            case RunSaved():
                self._run = event
            case _:
                self._servers.show(event)

    def finish(self) -> None:
        """Write where the server is, how to reach it and what comes next."""
        server, screen, name = self._servers.server, self._screen, program()
        if server is None:
            return
        pid = server.engine_process.pid if server.engine_process else "-"
        run = f"   run {self._run.run_id}" if self._run else ""
        body = json.dumps({"model": server.served_model, "messages": [{"role": "user", "content": "Hello"}]})
        screen.text()
        screen.text(f"  {server.url}/v1   model {server.served_model}   pid {pid}{run}")
        screen.text(
            f"  try    curl {server.url}/v1/chat/completions -H 'content-type: application/json' -d {shlex.quote(body)}"
        )
        screen.text(f'  next   {name} ask "why is the sky blue"')
        bench = "" if self._summaries else f"      {name} bench --quick"
        screen.text(f"         {name} tiers      {name} logs{bench}      {name} down")

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON values."""
        server = self._servers.server
        return {
            "slug": server.slug if server else None,
            "url": server.url if server else None,
            "pid": server.engine_process.pid if server and server.engine_process else None,
            "served_model": server.served_model if server else None,
            "already_running": self._servers.already_running,
            "checks": jsonable(self._results),
            "summaries": jsonable(self._summaries),
            "run_id": self._run.run_id if self._run else None,
            "exit_code": self.exit_code,
        }


def plan_words(fit: FitPlan) -> str:
    """Return a plan in one line."""
    verdicts = {
        "FIT": "fits",
        "TIGHT": "fits with little to spare",
        "NO": "does not fit",
        "UNKNOWN": "unknown",
    }
    memory = ", ".join(
        f"{format_gib(device.need_bytes).removesuffix(' GiB')} of {format_gib(device.available_bytes)}"
        for device in fit.devices
    )
    return f"{memory or '; '.join(fit.reasons)}, context {fit.context}   {verdicts[fit.verdict.value]}"


def file_words(event: FileProgress) -> str:
    """Return how far a step on files is: share, size, rate and time left, as far as they are known."""
    if event.total_bytes is None:
        return f"{event.artifact}: {event.step}"
    share = min(100, 100 * event.done_bytes // max(1, event.total_bytes))
    words = [f"{event.artifact}: {event.step} {share:3d} %"]
    words.append(f"{format_bytes(event.done_bytes)} of {format_bytes(event.total_bytes)}")
    if event.rate_bytes_s is not None:
        words.append(f"{format_bytes(round(event.rate_bytes_s))}/s")
    if event.left_s is not None:
        words.append(f"{format_seconds(event.left_s)} left")
    return "   ".join(words)


def show_checks(screen: Screen, results: Iterable[CheckResult]) -> None:
    """Write the verdicts of a suite: one line when all is well, a line for each that is not."""
    rows = list(results)
    asked = [row for row in rows if row.status is not CheckStatus.SKIP]
    passed = [row for row in asked if row.status is CheckStatus.PASS]
    absent = [row.title for row in rows if row.skip_reason is SkipReason.NOT_OFFERED]
    tail = f" ({', '.join(absent)}: not offered)" if absent else ""
    colour = "green" if len(passed) == len(asked) else "red"
    screen.line("check", f"{len(passed)} of {len(asked)} applicable passed{tail}", colour=colour)
    for row in rows:
        if row.status not in (CheckStatus.PASS, CheckStatus.SKIP) or row.skip_reason is SkipReason.UNMET:
            screen.line("", f"{row.status.value}  {row.check_id}: {row.message}", colour="red")
            if row.evidence:
                screen.text(f"           answer: {row.evidence[:160]!r}")


def show_speed(screen: Screen, summaries: Iterable[ClassSummary]) -> None:
    """Write one line a prompt class: decode rate and first token with their intervals, and acceptance."""
    for row in summaries:
        words = [f"{row.prompt_class.value:<6} {estimate_words(row.decode_tok_s, 'tok/s')}"]
        if row.ttft_s:
            words.append(f"first token {row.ttft_s.mean:.2f} s")
        if row.acceptance_length:
            words.append(f"{row.acceptance_length:.1f} tokens a drafted step")
        if row.failed:
            words.append(f"{row.failed} without a rate")
        screen.line("speed", "   ".join(words))


def estimate_words(estimate: Estimate | None, unit: str) -> str:
    """Return a mean with its interval and count: '84.1 tok/s +-2.1 (n=6)'."""
    if estimate is None:
        return "no measurement"
    spread = f" +-{estimate.half_width:.1f}" if estimate.half_width is not None else ""
    return f"{estimate.mean:.1f} {unit}{spread} (n={estimate.n})"

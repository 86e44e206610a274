"""Shows what happens to servers: started, replaced, stopped, left behind. Light, so that `down` answers at once."""

from itertools import pairwise
from typing import Final

from redline.cli.screen import Screen
from redline.launch.state import FINAL_STATES, PREPARING_STATES, ServerRecord, ServerState
from redline.launch.stop import Stopped
from redline.ops.server_events import (
    AlreadyRunning,
    CopyStarted,
    Outlived,
    Replacing,
    RollingBack,
    ServerEvent,
    Started,
    StateChanged,
    Stopping,
)
from redline.units import format_bytes, format_gib, format_seconds

_TOLD: Final = frozenset(
    {
        ServerState.LOADING,
        ServerState.COMPILING,
        ServerState.ALLOCATING,
        ServerState.CAPTURING,
        ServerState.WARMING,
        ServerState.LISTENING,
    }
)


_PLAIN: Final = ("stopping", "stopped on request")


class ServerView:
    """Shows server events; remembers the server that stands at the end, and what was stopped."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._stages: list[tuple[str, float]] = []
        self.server: ServerRecord | None = None
        self.already_running = False
        self.stopped: list[Stopped] = []

    def show(self, event: ServerEvent | Stopped) -> None:
        """Show one event."""
        screen = self._screen
        match event:
            case Outlived(orphan=orphan):
                words = f"{orphan.record.slug} left {orphan.describe()} behind: {orphan.record.reason}"
                screen.line("found", words, colour="yellow")
            case Replacing():
                why = f": {event.why}" if event.why else ""
                screen.line("replace", f"stopping {event.server.slug} on port {event.server.port}{why}")
            case Stopping() if event.text not in _PLAIN:
                screen.progress("stop", f"{event.server.slug}  {event.text}", step=event.text)
            case Stopped():
                self.stopped.append(event)
                screen.line("stopped", stopped_words(event), colour="green" if event.clean else "red")
            case StateChanged():
                self._show_state(event)
            case Started():
                self.server = event.server
                screen.line("start", self._stage_words(event.seconds))
                self._stages = []
            case CopyStarted():
                self._stages = []  # steps of several servers at once tell nobody anything
                screen.line("copy", f"{event.number} of {event.total} at {event.server.url}")
            case AlreadyRunning():
                self.server, self.already_running = event.server, True
                screen.line("serving", f"{event.server.slug} is already running with these settings", colour="green")
            case RollingBack():
                self._stages = []
                screen.line("failed", event.because, colour="red")
                screen.line("back", f"starting {event.server.slug} again as it was")

    def _show_state(self, event: StateChanged) -> None:
        if event.state in PREPARING_STATES:
            return
        if not self._stages or self._stages[-1][0] != event.state:
            self._stages.append((event.state, event.seconds))
        if event.state in (ServerState.READY, *FINAL_STATES):
            return
        words = f"{event.state}  {event.seconds - self._stages[-1][1]:.1f} s"
        if event.progress is not None:
            words += f"   {100 * event.progress:.0f} %"
        if event.remaining_s is not None and event.remaining_s > 1:
            words += f"   ready in about {format_seconds(event.remaining_s)}"
        self._screen.progress("start", words, step=event.state)

    def _stage_words(self, ready_s: float) -> str:
        spans = [(state, end - begin) for (state, begin), (_, end) in pairwise(self._stages) if state in _TOLD]
        return " . ".join([*(f"{state} {span:.1f} s" for state, span in spans), f"ready in {ready_s:.1f} s"])


def stopped_words(proof: Stopped) -> str:
    """Return the proof of a stop in one line."""
    port = "free" if proof.port_free else "still taken by another program"
    gpu = f"   {format_gib(proof.gpu_released_bytes)} of GPU memory released" if proof.gpu_released_bytes else ""
    held = f"   {format_gib(proof.gpu_left_bytes)} of GPU memory STILL HELD" if proof.gpu_left_bytes else ""
    memory = f"{format_bytes(proof.released_bytes)} of memory released"
    return f"{proof.slug} in {proof.seconds:.1f} s   port {proof.port} {port}   {memory}{gpu}{held}   no process left"

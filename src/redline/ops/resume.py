"""Going on with a run that was cut off: the new run holds what the earlier one found, and then only the rest is asked.

Only of the same server: what is measured of two servers is no single measurement.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from redline.errors import RefusedError, UsageError
from redline.probe.target import Target
from redline.record.codec import from_json
from redline.record.event import Envelope, payload, payload_type
from redline.record.manifest import RunManifest
from redline.record.reading import read_events, read_manifest

T = TypeVar("T")


@payload("run.resumed")
@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What follows was taken over from an earlier run, so many records of it."""

    run_id: str
    taken: int


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run to go on with."""

    manifest: RunManifest
    events: tuple[Envelope, ...]

    def all_of(self, kind: type[T]) -> tuple[T, ...]:
        """Return the payloads of a class, in order."""
        return tuple(from_json(kind, event.payload) for event in self.events if payload_type(event.kind) is kind)


def read_earlier_run(runs_dir: Path, run_id: str, target: Target, command: str) -> EarlierRun:
    """Return a run to go on with.

    Raises:
        UsageError: no such run, or one of another command.
        RefusedError: it was of another server, or the server was started anew since.
    """
    folder = runs_dir / run_id
    try:
        manifest = read_manifest(folder)
    except ValueError as error:
        raise UsageError(f"There is no run {run_id} to go on with: {error}.", next_step="`redline runs`.") from None
    if manifest.command != command:
        raise UsageError(
            f"Run {run_id} is of `{manifest.command}`, and not of `{command}`.", next_step="`redline runs` lists them."
        )
    if (manifest.url, manifest.server_id) != (target.url, target.server_id):
        raise RefusedError(
            f"Run {run_id} was of {manifest.slug or manifest.url}, started as {manifest.server_id or 'unmanaged'}; "
            "that is not this server.",
            next_step="What is measured of two servers is no single measurement: begin anew, without --resume.",
        )
    return EarlierRun(manifest, tuple(read_events(folder)))

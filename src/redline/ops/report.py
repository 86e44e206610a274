"""Puts a report together: which runs, redacted how; or the rig and its last boots when nothing was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import redline.ops.payloads  # noqa: F401 -- so that every kind of record is known
from redline import __version__
from redline.checks.stages import StageBegan, StageEnded
from redline.errors import MissingError
from redline.launch.outcome import stage_times
from redline.launch.server import running_servers
from redline.launch.state import ServerRecord, ServerState, list_servers, read_history
from redline.ops.boot_record import failure_of
from redline.record.codec import from_json, jsonable
from redline.record.disclose import disclose
from redline.record.identity import find_identity
from redline.record.index import RunFilter, RunIndex, RunRow
from redline.record.manifest import DEFINITIONS_VERSION, MANIFEST_SCHEMA, RunManifest
from redline.record.reading import RunRecord, load_run
from redline.record.redact import NoRedactor, Redactor
from redline.record.run import now_utc
from redline.report.build import build_report, build_rig_report, rig_facts
from redline.report.extract import failed_boot
from redline.report.grouping import of_slug
from redline.report.model import BootFact, Fact, ReportModel
from redline.report.words import rig_words
from redline.rig.detect import detect_rig
from redline.rig.links import rig_record
from redline.settings import Settings

_MAX_RUNS_OF_A_TIER: Final = 50
_MAX_BOOTS: Final = 8


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Runs that could be read, and sentences about those that could not."""

    records: tuple[RunRecord, ...]
    problems: tuple[str, ...]


def make_redactor(*, redact: bool) -> Redactor:
    """Return the redactor of this machine and user, or one that leaves everything as it is."""
    return Redactor(find_identity()) if redact else NoRedactor()


def report_runs(settings: Settings, names: Sequence[str], *, redact: bool = True) -> ReportModel:
    """Return the report of runs, each named by id, folder, ending or `last`; a slug stands for all runs of a tier.

    Raises:
        UsageError: no such run.
        MissingError: none of them can be read.
    """
    chosen = load_runs(settings, names, make_redactor(redact=redact))
    return build_report(chosen.records, made_at=now_utc(), redacted=redact, problems=chosen.problems)


def load_runs(settings: Settings, names: Sequence[str], redactor: Redactor | None = None) -> _Chosen:
    """Return the records behind names, without repeats.

    Raises:
        UsageError: no such run.
        MissingError: none of them can be read.
    """
    records: dict[tuple[str, str | None], RunRecord] = {}
    problems: list[str] = []
    with RunIndex(settings.runs_dir) as index:
        chosen = [(name, row) for name in names for row in _rows(index, name)]
    for name, row in chosen:
        try:
            record = load_run(settings.runs_dir / row.folder, redactor)
        except ValueError as error:
            problems.append(f"run {row.run_id}: {error}")
            continue
        if run_ids := stage_runs(record):
            records |= _stage_records(settings, run_ids, redactor, problems)
        # A run that measured two tiers in turns counts for a slug with its own part only.
        parts = of_slug([record], name) if "/" in name and row.slug != name else [record]
        records |= {(row.folder, part.manifest.slug): part for part in parts}
    if not records:
        raise MissingError("No run could be read.", details=tuple(problems), next_step="`redline runs` lists them.")
    return _Chosen(tuple(records.values()), tuple(problems))


def stage_runs(record: RunRecord) -> tuple[str, ...]:
    """Return the runs that the stages of a whole report were recorded as; of one gone through twice the last."""
    last = {row.stage: row.run_id for row in record.payloads(StageBegan)}
    last |= {row.stage: row.run_id for row in record.payloads(StageEnded) if row.run_id is not None}
    return tuple(last.values())


def _stage_records(
    settings: Settings, run_ids: Sequence[str], redactor: Redactor | None, problems: list[str]
) -> dict[tuple[str, str | None], RunRecord]:
    found = {}
    for run_id in run_ids:
        if Path(run_id).name != run_id:  # a record is data: it names no folder but its neighbours
            problems.append(f"a stage names {run_id[:40]!r}, which is no run")
            continue
        try:
            record = load_run(settings.runs_dir / run_id, redactor)
        except ValueError as error:
            problems.append(f"run {run_id}: {error}")
            continue
        found[run_id, record.manifest.slug] = record
    return found


def _rows(index: RunIndex, name: str) -> Sequence[RunRow]:
    if "/" in name:
        found = index.rows(RunFilter(slug=name))
        rows = [row for row in found if row.problem is None and name in (row.slug or "").split(" against ")]
        if rows:
            return rows[:_MAX_RUNS_OF_A_TIER]
    return [index.find(name)]


def report_rig(settings: Settings, *, redact: bool = True) -> ReportModel:
    """Return the report of this rig and the last boots on it, failed ones with the end of their logs."""
    redactor = make_redactor(redact=redact)
    rig = detect_rig()
    manifest = _shared(
        RunManifest(
            schema_version=MANIFEST_SCHEMA,
            run_id="rig",
            command="report",
            started_at=now_utc(),
            redline_version=__version__,
            definitions_version=DEFINITIONS_VERSION,
            url=None,
            driver_version=rig.driver_version,
            rig=rig_record(rig, load=True),
        ),
        redactor,
    )
    running = {folder for folder, _ in running_servers(settings.servers_dir)}
    boots = [
        _boot(folder, record, redactor, running=folder in running)
        for folder, record in reversed(list_servers(settings.servers_dir))
    ]
    facts = [Fact(label, value) for label, value in rig_facts(manifest)]
    facts += [Fact("Kernel", redactor.text(rig.kernel)), Fact("redline", __version__)]
    return build_rig_report(facts, rig_words(manifest.rig), boots[:_MAX_BOOTS], made_at=now_utc(), redacted=redact)


def _shared(manifest: RunManifest, redactor: Redactor) -> RunManifest:
    return from_json(RunManifest, disclose(jsonable(manifest), redactor))


def _boot(folder: Path, record: ServerRecord, redactor: Redactor, *, running: bool) -> BootFact:
    """Return a boot as the server's own folder tells it."""
    when = datetime.fromtimestamp(record.created_at, UTC).isoformat(timespec="seconds")
    if record.state is ServerState.FAILED and record.ready_at is None:
        failed = failure_of(folder, record)
        return failed_boot(from_json(type(failed), disclose(jsonable(failed), redactor)), record.slug, when)
    return BootFact(
        server_id=record.server_id,
        slug=record.slug,
        when=when,
        state="running" if running else "ended",
        ready_s=None if record.ready_at is None else record.ready_at - record.created_at,
        stages=stage_times(record, read_history(folder)),
        reason=redactor.text(record.reason) if record.reason else None,
    )

"""`runs` and `runs prune`: what was done and measured on this machine."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Final

import click

from redline.cli.options import json_option
from redline.cli.screen import program
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings

_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_OUTCOMES: Final = ["complete", "failed", "interrupted", "running", "cut off"]


@click.group(invoke_without_command=True)
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), help="How many of the latest.")
@click.option("--slug", help="Tiers whose name holds this.")
@click.option("--command", "word", help="Runs of one command: up, verify, bench.")
@click.option("--outcome", type=click.Choice(_OUTCOMES))
@click.option("--since", metavar="TIME", help="2026-11-29, or an age: 30m, 12h, 2d, 1w.")
@click.option("--text", help="Words that occur anywhere in the row.")
@json_option
@click.pass_context
def runs(
    context: click.Context,
    limit: int,
    slug: str | None,
    word: str | None,
    outcome: str | None,
    since: str | None,
    text: str | None,
    *,
    as_json: bool,
) -> int:
    """List what was done and measured, newest first."""
    from redline.cli.catalog import write_table
    from redline.record.codec import jsonable
    from redline.record.index import RunFilter, RunIndex

    if context.invoked_subcommand is not None:
        return ExitCode.DONE
    chosen = RunFilter(slug=slug, command=word, outcome=outcome, since=parse_since(since), text=text)
    with RunIndex(load_settings().runs_dir) as index:
        rows = index.rows(chosen, limit)
        every = bool(index.rows(limit=1))
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        click.echo("No run matches." if every else "Nothing was recorded yet.")
        return ExitCode.DONE
    table: list[tuple[str, ...]] = [("RUN", "WHAT", "WHEN (UTC)", "TIER", "OUTCOME", "SUMMARY")]
    table += [_cells(row) for row in rows]
    write_table(table)
    return ExitCode.DONE


def _cells(row: object) -> tuple[str, ...]:
    from redline.record.index import RunRow
    from redline.record.plain import plain_line

    assert isinstance(row, RunRow)
    if row.problem is not None:
        return (plain_line(row.folder, 40), "-", "-", "-", "unreadable", plain_line(row.problem, 100))
    when = row.started_at.replace("T", " ").removesuffix("+00:00")
    note = f" (folder {row.folder}; {row.twin} has the same id)" if row.twin else ""
    cells = (row.run_id, row.command, when, row.slug or row.url or "-", row.outcome, row.summary + note)
    return tuple(plain_line(cell, 120) for cell in cells)


@runs.command()
@click.option("--keep", metavar="N", type=click.IntRange(0), help="Spare the N newest.")
@click.option("--older-than", "age", metavar="AGE", help="Spare what is younger: 30d, 12h, or a date.")
@click.option("--unreadable", is_flag=True, help="Remove folders that cannot be read, too.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option
def prune(keep: int | None, age: str | None, *, unreadable: bool, dry_run: bool, as_json: bool) -> int:
    """Remove old runs. One that is being recorded is never removed."""
    from redline.record.codec import jsonable
    from redline.record.index import RunIndex
    from redline.record.prune import plan_prune, remove_runs
    from redline.units import format_bytes

    if keep is None and age is None:
        raise UsageError("Say what to spare: --keep N, --older-than AGE, or both.", next_step=f"`{program()} runs`")
    runs_dir = load_settings().runs_dir
    with RunIndex(runs_dir) as index:
        plan = plan_prune(index.rows(), keep=keep, before=parse_since(age), unreadable=unreadable)
    gone = () if dry_run else remove_runs(runs_dir, plan)
    if as_json:
        click.echo(json.dumps({"dry_run": dry_run, "plan": jsonable(plan), "removed": jsonable(gone)}))
        return ExitCode.DONE
    for row in plan.remove:
        click.echo(f"{'would remove' if dry_run else 'removed'}  {' '.join(_cells(row)[:4])}")
    shown, verb = (plan.remove, "would go") if dry_run else (gone, "removed")
    click.echo(f"{len(shown)} runs {verb}, {format_bytes(sum(row.bytes for row in shown))}")
    if plan.running:
        click.echo(f"{len(plan.running)} still being recorded: left alone")
    if plan.unreadable:
        click.echo(f"{len(plan.unreadable)} unreadable: left alone (--unreadable removes them)")
    return ExitCode.DONE


def parse_since(text: str | None, now: datetime | None = None) -> str | None:
    """Return a date or an age as ISO 8601 in UTC, in the form that manifests use.

    Raises:
        UsageError: it is neither.
    """
    if text is None:
        return None
    if found := re.fullmatch(r"(\d{1,6})([mhdw])", text):
        moment = (now or datetime.now(UTC)) - timedelta(**{_UNITS[found[2]]: int(found[1])})
        return moment.isoformat(timespec="seconds")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time.", next_step="Write 2026-11-29, or an age: 30m, 12h, 2d, 1w.") from None
    local = moment if moment.tzinfo else moment.astimezone()
    return local.astimezone(UTC).isoformat(timespec="seconds")

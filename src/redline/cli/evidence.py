"""`evidence import`: what somebody measured becomes part of your catalogue, if it can be true."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings

if TYPE_CHECKING:
    from redline.report.submission import Doubt


@click.group()
def evidence() -> None:
    """Take submissions into the catalogue."""


@evidence.command("import")
@click.argument("bundle", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--source", default="", help="Where it came from: the issue or pull request.")
@click.option("--dry-run", is_flag=True, help="Judge it, and write nothing.")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), help="Catalogue folder; default: your own.")
@json_option
def import_(bundle: Path, source: str, into: Path | None, *, dry_run: bool, as_json: bool) -> int:
    """Judge a submission and take it in: its form, its own consistency, physics, the planner, duplicates.

    BUNDLE is the .json of `submit`, or a .yaml of numbers that were published without their samples: these stand as
    reported and count towards no status. Ends with 1 when it is refused.
    """
    if bundle.suffix in (".yaml", ".yml"):
        return _import_published(bundle, into, dry_run=dry_run, as_json=as_json)
    from redline.catalog.load import load_catalog
    from redline.ops.evidence import import_submission, read_submission
    from redline.record.codec import jsonable

    folder = into or load_settings().user_catalog_dir
    found = import_submission(load_catalog(folder), read_submission(bundle), folder, source=source, dry_run=dry_run)
    code = ExitCode.CHECK_FAILED if found.refused else ExitCode.DONE
    if as_json:
        parts = {"doubts": found.doubts, "evidence": found.evidence, "path": found.path, "standing": found.standing}
        click.echo(json.dumps({**jsonable(parts), "refused": found.refused, "exit_code": code}))
        return code
    _show_doubts(found.doubts)
    if found.evidence is None:
        click.echo("nothing was taken in")
        return code
    _show(found, dry_run=dry_run)
    return code


def _import_published(bundle: Path, into: Path | None, *, dry_run: bool, as_json: bool) -> int:
    from redline.catalog.load import load_catalog
    from redline.ops.published import import_published, read_published
    from redline.record.codec import jsonable

    folder = into or load_settings().user_catalog_dir
    found = import_published(load_catalog(folder), read_published(bundle), folder, dry_run=dry_run)
    code = ExitCode.CHECK_FAILED if found.refused else ExitCode.DONE
    if as_json:
        click.echo(json.dumps({**jsonable(found), "refused": found.refused, "exit_code": code}))
        return code
    _show_doubts(found.doubts)
    for one in found.sets:
        click.echo(f"  {one.id}: {len(one.numbers)} numbers, {one.kind.value}, {one.rig}; {one.source}")
    click.echo(
        "nothing was taken in" if found.refused else f"taken in: {found.path}" if found.path else "nothing was written"
    )
    return code


def _show_doubts(doubts: "tuple[Doubt, ...]") -> None:
    for doubt in doubts:
        colour = "red" if doubt.refuses else "yellow"
        word = "refused  " if doubt.refuses else "doubt    "
        click.echo(click.style(word, fg=colour) + f"{doubt.rule}: {doubt.message}")


def _show(found: object, *, dry_run: bool) -> None:
    from redline.catalog.evidence import METRICS
    from redline.ops.evidence import Imported

    assert isinstance(found, Imported)
    assert found.evidence is not None
    for row in found.evidence.numbers:
        interval = f" ({row.low:.1f} to {row.high:.1f})" if row.low is not None and row.high is not None else ""
        click.echo(f"  {row.metric:<20} {row.value:.1f} {METRICS.get(row.metric, '')}{interval}".rstrip())
    if found.evidence.setup:
        click.echo(f"  it does not count towards a status: {found.evidence.setup}")
    click.echo("nothing was written" if dry_run else f"taken in: {found.path}")
    if found.standing is not None and found.standing.missing:
        target = found.standing.next_status
        click.echo(
            f"for {target.value if target else 'more'} the tier still needs: {'; '.join(found.standing.missing)}"
        )

"""`evidence import`: what somebody measured becomes part of your catalogue, if it can be true."""

import json
from pathlib import Path

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings


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

    Ends with 1 when it is refused.
    """
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
    for doubt in found.doubts:
        colour = "red" if doubt.refuses else "yellow"
        click.echo(
            click.style("refused  " if doubt.refuses else "doubt    ", fg=colour) + f"{doubt.rule}: {doubt.message}"
        )
    if found.evidence is None:
        click.echo("nothing was taken in")
        return code
    _show(found, dry_run=dry_run)
    return code


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

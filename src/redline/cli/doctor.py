"""`doctor`."""

import json

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings

_COLOURS = {"ok": "green", "warn": "yellow", "bad": "red"}


@click.command()
@json_option
def doctor(*, as_json: bool) -> int:
    """Look at this machine for what would get in the way. Ends with 1 when something is bad."""
    from redline.ops.doctor import Health, diagnose_host
    from redline.record.codec import jsonable

    rows = []
    for row in diagnose_host(load_settings()):
        rows.append(row)
        if not as_json:
            click.echo(
                f"  {click.style(f'{row.health.value:<5}', fg=_COLOURS[row.health])} {row.topic:<16} {row.message}"
            )
            if row.fix:
                click.echo(f"        {'':<16} {row.fix}")
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
    return ExitCode.CHECK_FAILED if any(row.health is Health.BAD for row in rows) else ExitCode.DONE

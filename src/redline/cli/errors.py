"""Shows what went wrong: a sentence, the next step, and for redline's own faults where the traceback lies."""

import json
import os
import tempfile
import time
import traceback
from pathlib import Path

import click

from redline.errors import RedlineError


def show_error(error: RedlineError, *, as_json: bool) -> None:
    """Write an error to standard error, or as one JSON object to standard output."""
    findings = getattr(error, "findings", ())
    if as_json:
        from redline.record.codec import jsonable

        click.echo(
            json.dumps(
                {
                    "error": error.message,
                    "next_step": error.next_step,
                    "details": list(error.details),
                    "findings": jsonable(findings),
                    "exit_code": int(error.exit_code),
                }
            )
        )
        return
    if findings:
        from redline.cli.findings import write_findings

        write_findings(findings, err=True)
        click.echo(f"nothing was stopped or started{' ' * 40}exit {int(error.exit_code)}", err=True)
        return
    click.echo(click.style("error    ", fg="red") + error.message, err=True)
    for line in error.details:
        click.echo(f"         | {line}", err=True)
    if error.next_step:
        click.echo(f"         {error.next_step}", err=True)


def show_fault(error: Exception) -> None:
    """Write a fault of redline itself, with the whole traceback in a file that only the user can read."""
    descriptor, name = tempfile.mkstemp(prefix=f"redline-fault-{time.strftime('%Y%m%d-%H%M%S')}-", suffix=".txt")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(traceback.format_exception(error)))
    click.echo(click.style("fault    ", fg="red") + f"{type(error).__name__}: {error}", err=True)
    click.echo(
        "         This is a fault of redline, not of yours. Servers keep running; `redline ps` shows them.",
        err=True,
    )
    click.echo(f"         The traceback is in {Path(name)}; please report it.", err=True)

"""Shows what guards said, each with its reason, its remedy and the switch that lifts it."""

import textwrap
from collections.abc import Iterable

import click

from redline.guard.finding import Finding, Severity
from redline.settings import Layers

_COLOURS = {Severity.REFUSE: "red", Severity.WARN: "yellow", Severity.NOTE: "cyan"}
_WORDS = {Severity.REFUSE: "refused", Severity.WARN: "warning", Severity.NOTE: "note"}


def write_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Write findings, refusals first."""
    order = [Severity.REFUSE, Severity.WARN, Severity.NOTE]
    for finding in sorted(findings, key=lambda item: order.index(item.severity)):
        word = "lifted" if finding.overridden else _WORDS[finding.severity]
        click.echo(
            click.style(f"{word:<9}", fg=_COLOURS[finding.severity]) + _wrap(f"{finding.rule_id}: {finding.message}"),
            err=err,
        )
        click.echo("         " + _wrap(finding.remedy), err=err)
        tail = [f"To do it anyway: {finding.override}."] if finding.override and not finding.overridden else []
        if finding.severity is Severity.REFUSE and not finding.override:
            tail = ["No switch lifts this."]
        click.echo("         " + _wrap(" ".join([*tail, f"source: {finding.source}"])), err=err)


def _wrap(text: str) -> str:
    return textwrap.fill(text, width=100, subsequent_indent=" " * 9, break_on_hyphens=False, break_long_words=False)


def write_setting_warnings(layers: Layers) -> None:
    """Write a warning for every name in `.env` that redline does not read."""
    from redline.catalog.knobs import dotenv_warnings

    for text in dotenv_warnings(layers):
        click.echo(click.style("warning  ", fg="yellow") + _wrap(text), err=True)

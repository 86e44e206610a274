"""`config`: the config file. A secret is read from standard input, and never shown."""

import json
import sys

import click

from redline.cli.options import json_option
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings


@click.group()
def config() -> None:
    """Settings that hold for every command: show them, set them, find the file."""


@config.command()
@click.option("--all", "everything", is_flag=True, help="Also those that have their default.")
@json_option
def show(*, everything: bool, as_json: bool) -> int:
    """Show the settings that have a value, and where each comes from. Secrets are named, not shown."""
    from redline.cli.catalog import write_table
    from redline.ops.config import list_settings
    from redline.record.codec import jsonable

    settings = load_settings()
    rows = list_settings(settings, everything=everything)
    if as_json:
        click.echo(json.dumps({"file": str(settings.config_file), "settings": jsonable(rows)}))
        return ExitCode.DONE
    click.echo(f"{settings.config_file}{'' if settings.config_file.exists() else ' (not there yet)'}\n")
    if not rows:
        click.echo("Everything has its default. `redline config show --all` lists what can be set.")
        return ExitCode.DONE
    table: list[tuple[str, ...]] = [("SETTING", "VALUE", "FROM", "WHAT IT IS")]
    for row in rows:
        value = "-" if row.origin is None else "set, not shown" if row.secret else row.value or ""
        table.append((row.name, value, row.origin or "default", row.doc))
    write_table(table)
    return ExitCode.DONE


@config.command("set")
@click.argument("name")
@click.argument("value", required=False)
def set_(name: str, value: str | None) -> int:
    """Write a setting into the config file. A secret is typed when asked for, or piped in: it is no argument."""
    from redline.ops.config import is_secret, set_value

    if is_secret(name):
        if value is not None:
            raise UsageError(
                f"{name} is a secret, and an argument can be read by others on this machine.",
                next_step=f"Leave it out, and type it when asked; or pipe it in: redline config set {name} < FILE.",
            )
        value = _read_secret(name)
    elif value is None:
        raise UsageError(f"{name} needs a value.", next_step=f"redline config set {name} VALUE")
    path = set_value(load_settings(), name, value)
    click.echo(f"  config   {name} is set in {path}")
    return ExitCode.DONE


def _read_secret(name: str) -> str:
    if sys.stdin.isatty():
        typed: str = click.prompt(name, hide_input=True, err=True)
        return typed.strip()
    given = sys.stdin.read().strip()
    if not given:
        raise UsageError(f"Nothing came on standard input for {name}.", next_step="Pipe the secret in, or type it.")
    return given


@config.command()
@click.argument("name")
def unset(name: str) -> int:
    """Take a setting out of the config file."""
    from redline.ops.config import set_value

    path = set_value(load_settings(), name, None)
    click.echo(f"  config   {name} is not set in {path}")
    return ExitCode.DONE


@config.command()
@json_option
def path(*, as_json: bool) -> int:
    """Print where the config file lies, whether it is there or not."""
    found = load_settings().config_file
    click.echo(json.dumps({"file": str(found), "exists": found.exists()}) if as_json else str(found))
    return ExitCode.DONE

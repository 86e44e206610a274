"""`up`, `down`, `ps` and `logs`."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from redline.cli.options import json_option, override_options, overrides_from, settings_from, tier_options
from redline.cli.screen import Screen, program
from redline.errors import ExitCode
from redline.settings import Settings, load_settings


@click.command()
@click.argument("slug", required=False)
@tier_options
@override_options
@click.option("--beside", is_flag=True, help="Stop nothing, unless it holds the same port.")
@click.option("--measure/--no-measure", default=True, help="Measure a few prompts after the checks.")
@click.option("--replicas", type=click.IntRange(1, 16), default=1, help="Several copies behind a router.")
@json_option
def up(slug: str | None, *, beside: bool, measure: bool, replicas: int, as_json: bool, **options: Any) -> int:
    """Serve a tier: check, fetch, start, verify, measure. Without SLUG: the tier that suits this machine.

    The new tier is checked before anything that runs is stopped.
    """
    from redline.catalog.load import load_catalog
    from redline.cli.up_view import UpView
    from redline.ops.up import UpRequest

    overrides = overrides_from(options)
    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    request = UpRequest(slug=slug, overrides=overrides, beside=beside, measure=measure)
    with Screen(quiet=as_json) as screen:
        view = UpView(screen)
        for event in _steps(catalog, settings, request, replicas):
            view.show(event)
        if as_json:
            click.echo(json.dumps(view.as_json()))
        else:
            view.finish()
    return view.exit_code


def _steps(catalog: Any, settings: Settings, request: Any, replicas: int) -> Iterator[Any]:
    if replicas > 1:
        from redline.ops.replicas import up_replicas

        return up_replicas(catalog, settings, request, replicas)
    from redline.ops.up import up as run_up

    return run_up(catalog, settings, request)


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Stop every server.")
@json_option
def down(name: str | None, *, everything: bool, as_json: bool) -> int:
    """Stop a server (by slug, id or port; needless when only one runs) and prove that it is gone."""
    from redline.ops.servers import down as run_down
    from redline.record.codec import jsonable
    from redline.units import MIB

    stopped = []
    with Screen(quiet=as_json) as screen:
        for proof in run_down(load_settings(), name, everything=everything):
            stopped.append(proof)
            port = "free" if proof.port_free else "still taken by another program"
            screen.line(
                "stopped",
                f"{proof.slug} in {proof.seconds:.1f} s   port {proof.port} {port}   "
                f"{proof.released_bytes / MIB:.0f} MiB released   no process left",
                colour="green",
            )
    if as_json:
        click.echo(json.dumps(jsonable(stopped)))
    return ExitCode.DONE if all(proof.port_free for proof in stopped) else ExitCode.INCONCLUSIVE


@click.command()
@json_option
def ps(*, as_json: bool) -> int:
    """List the running servers."""
    from redline.ops.servers import list_rows
    from redline.record.codec import jsonable
    from redline.units import MIB, format_seconds

    rows = list_rows(load_settings(), time.time())
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        click.echo(f"No server is running. Start one with `{program()} up`.")
    for row in rows:
        click.echo(
            f"{row.slug}   {row.role + '   ' if row.role else ''}{row.state}   {row.url}/v1   "
            f"model {row.served_model}   pid {row.pid or '-'}   {row.memory_bytes / MIB:.0f} MiB   "
            f"up {format_seconds(row.uptime_s)}"
        )
    return ExitCode.DONE


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as the engine prints more.")
@click.option("-n", "--lines", default=50, show_default=True, help="How many of the last lines.")
@json_option
def logs(name: str | None, *, follow: bool, lines: int, as_json: bool) -> int:
    """Show what an engine printed: of the running server, or of the last one that ran."""
    from redline.launch.logfile import tail
    from redline.launch.state import LOG_FILE
    from redline.ops.servers import latest_server

    folder, record = latest_server(load_settings(), name)
    path = folder / LOG_FILE
    shown = tail(path, lines)
    if as_json:
        click.echo(json.dumps({"slug": record.slug, "state": record.state.value, "log": str(path), "lines": shown}))
        return ExitCode.DONE
    for line in shown:
        click.echo(line)
    if not follow:
        return ExitCode.DONE
    with path.open("rb") as file:
        file.seek(0, 2)
        while True:
            data = file.read()
            if data:
                sys.stdout.write(data.decode("utf-8", errors="replace"))
                sys.stdout.flush()
            elif path.stat().st_ino != _inode(file):
                return ExitCode.DONE  # rotated away; the user can call again
            else:
                time.sleep(0.2)


def _inode(file: Any) -> int:
    import os

    return os.fstat(file.fileno()).st_ino

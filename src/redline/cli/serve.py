"""`up` and `restart`."""

import json
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
@click.option("--gpus", metavar="LIST", help="Which GPUs, as 0,1 (GPUS).")
@click.option("--via", type=click.Choice(["embedded", "native", "docker"]), help="The form of the engine.")
@click.option("--engine-home", "home", metavar="NAME", help="Which engine home; `engine list` shows them.")
@click.option("--beside", is_flag=True, help="Stop nothing, unless it holds the same port.")
@click.option("--rollback", is_flag=True, help="When the new server fails, start again what it replaced.")
@click.option("--measure/--no-measure", default=True, help="Measure a few prompts after the checks.")
@click.option("--replicas", type=click.IntRange(1, 16), default=1, help="Several copies behind a router.")
@json_option
def up(
    slug: str | None,
    *,
    via: Any,
    home: str | None,
    beside: bool,
    rollback: bool,
    measure: bool,
    replicas: int,
    as_json: bool,
    **options: Any,
) -> int:
    """Serve a tier: check, fetch, start, verify, measure. Without SLUG: the tier that suits this machine.

    The new tier is checked before anything that runs is stopped; only what holds its GPUs, its memory, its processors
    or its port is replaced.
    """
    from redline.catalog.load import load_catalog
    from redline.cli.up_view import UpView
    from redline.ops.prepare import UpRequest

    overrides = overrides_from(options)
    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    request = UpRequest(
        slug=slug, overrides=overrides, beside=beside, measure=measure, via=via, home=home, rollback=rollback
    )
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
@click.option("--beside", is_flag=True, help="Stop nothing else, unless it holds the same port.")
@click.option("--rollback", is_flag=True, help="When it fails, start again what it replaced.")
@json_option
def restart(name: str | None, *, beside: bool, rollback: bool, as_json: bool) -> int:
    """Start a server again as it was: NAME is a slug, an id or a port, of one that runs or ran.

    Without NAME: the one that runs, else the last that was ready. Nothing is resolved anew.
    """
    from redline.cli.server_view import ServerView
    from redline.ops.restart import RestartRequest
    from redline.ops.restart import restart as run_restart
    from redline.record.codec import jsonable

    with Screen(quiet=as_json) as screen:
        view = ServerView(screen)
        for event in run_restart(load_settings(), RestartRequest(name, beside, rollback)):
            view.show(event)
        server = view.server
        assert server is not None
        if as_json:
            pid = server.engine_process.pid if server.engine_process else None
            row = {"slug": server.slug, "url": server.url, "pid": pid, "server_id": server.server_id}
            click.echo(json.dumps({**row, "stopped": jsonable(view.stopped)}))
        else:
            screen.text(f"\n  {server.url}/v1   model {server.served_model}")
            screen.text(f"  next   {program()} verify      {program()} logs")
    return ExitCode.DONE

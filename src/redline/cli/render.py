"""`render`: the same plan as text."""

import json
from typing import Any

import click

from redline.cli.layout import layout_from, layout_options
from redline.cli.options import json_option, settings_from, tier_options
from redline.errors import ExitCode, UsageError


@click.command()
@click.argument("slugs", nargs=-1, metavar="SLUG...")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["argv", "docker", "compose", "systemd", "sbatch", "lws", "replicas", "multinode"]),
    default="argv",
    show_default=True,
    help="A command line, a docker command, a compose file, a systemd user unit, a Slurm script, Kubernetes objects "
    "(LeaderWorkerSet), several copies behind a router, or the commands of several machines.",
)
@click.option("--all", "everything", is_flag=True, help="Every tier that has this form.")
@layout_options
@tier_options
@json_option
def render(slugs: tuple[str, ...], kind: Any, *, everything: bool, as_json: bool, **options: Any) -> int:
    """Write what serving a tier would run, as text. Starts nothing and needs no files on disk.

    With --json: one object for one SLUG, a list for several or --all; `argv` is the command as a list.
    """
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import resolve
    from redline.cli.findings import write_findings
    from redline.guard.finding import GuardRefusal
    from redline.ops.cluster import CLUSTER_KINDS, render_cluster
    from redline.ops.render import render_tier
    from redline.record.codec import jsonable
    from redline.rig.detect import detect_rig

    layout = layout_from(options)
    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    if not slugs and not everything:
        raise UsageError("Name a tier, or --all.", next_step="`redline tiers --all` lists them.")
    rig, done = detect_rig(), []
    for slug in [*slugs, *(catalog.tiers if everything else ())]:
        try:
            if kind in CLUSTER_KINDS:
                where = (rig, settings.models_dir)
                done.append(render_cluster(catalog, slug, settings.layers, *where, kind, layout))
                continue
            tier = resolve(catalog, slug, settings.layers)
            done.append(render_tier(catalog, tier, rig, settings.models_dir, kind, settings.layers))
        except (UsageError, GuardRefusal):
            if slug in slugs:
                raise
    if as_json:
        data = jsonable(done)
        click.echo(json.dumps(data[0] if len(done) == 1 and not everything else data))
        return ExitCode.DONE
    for number, rendering in enumerate(done):
        write_findings(rendering.findings, err=True)
        for note in rendering.notes:
            click.echo(click.style("note     ", fg="cyan") + note, err=True)
        if len(done) > 1:
            click.echo(("\n" if number else "") + f"# {rendering.slug}")
        click.echo(rendering.text, nl=False)
    return ExitCode.DONE

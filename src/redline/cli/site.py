"""`site build`: the matrix of tiers and the reports of this machine's runs, as files that any web server can show."""

import json
from pathlib import Path

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings


@click.group()
def site() -> None:
    """Make pages of the catalogue and of recorded runs."""


@site.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("site"),
    show_default=True,
    help="Folder to write into: an empty one, or an earlier site.",
)
@json_option
def build(out: Path, *, as_json: bool) -> int:
    """Write the matrix page and a report of each tier that was measured here, redacted."""
    from redline.catalog.load import load_catalog
    from redline.ops.site import build_site
    from redline.record.codec import jsonable
    from redline.units import format_bytes

    settings = load_settings()
    written = []
    for page in build_site(load_catalog(settings.user_catalog_dir), settings, out):
        written.append(page)
        if not as_json:
            click.echo(f"{page.path}   {format_bytes(page.size_bytes)}")
    if as_json:
        click.echo(json.dumps(jsonable(written)))
    return ExitCode.DONE

"""`gpu-bundle`: everything a GPU host without network needs, in parts."""

import json
from pathlib import Path

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen
from redline.errors import ExitCode
from redline.settings import load_settings


@click.command("gpu-bundle")
@click.argument("out", metavar="OUT_FOLDER", type=click.Path(path_type=Path, file_okay=False))
@click.option("--part-mib", default=44, show_default=True, help="Most MiB of a part, at most 60.")
@click.option(
    "--with", "extra", multiple=True, type=click.Path(path_type=Path), help="A file or folder to bring along."
)
@click.option("--wheel", type=click.Path(path_type=Path, exists=True), help="redline's own wheel, if not built here.")
@click.option("--without-engine", is_flag=True, help="redline alone, for a host that has vLLM.")
@click.option("--without-model", is_flag=True, help="No model.")
@click.option("--without-router", is_flag=True, help="No router, for a host with one GPU.")
@json_option
def gpu_bundle(
    out: Path,
    *,
    part_mib: int,
    extra: tuple[Path, ...],
    wheel: Path | None,
    without_engine: bool,
    without_model: bool,
    without_router: bool,
    as_json: bool,
) -> int:
    """Pack redline, vLLM, what both need and a small model for a GPU host without network. Takes minutes."""
    from redline.catalog.load import load_catalog
    from redline.ops.gpu_bundle import Bundle, make_bundle, summary
    from redline.record.codec import jsonable
    from redline.units import format_seconds

    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    steps = make_bundle(
        catalog,
        settings,
        out,
        part_mib=part_mib,
        extra=extra,
        wheel=wheel,
        engine=not without_engine,
        model=not without_model,
        router=not without_router,
    )
    with Screen(quiet=as_json) as screen:
        for item in steps:
            if isinstance(item, Bundle):
                screen.line("bundle", f"{summary(item)}   {item.folder}", colour="green")
                screen.line("next", "bring each part to the host and run: python3 partN/unpack.py FOLDER")
                if as_json:
                    click.echo(json.dumps(jsonable(item)))
            else:
                screen.progress("pack", f"{format_seconds(item.seconds):>12}  {item.text}", step=item.text)
    return ExitCode.DONE

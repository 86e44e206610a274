"""`plan`: what a tier needs on a rig, all tiers of a model, a local config, or what a boot log implies."""

import json
from pathlib import Path
from typing import Any

import click

from redline.cli.options import json_option
from redline.errors import ExitCode, UsageError


@click.command()
@click.argument("slug", required=False)
@click.option("--rig", metavar="RIG", help="2x3090, 1x5090+1x3090, or a rig file; without it this machine.")
@click.option("--model", metavar="MODEL", help="Plan every tier of a model.")
@click.option("--hf", metavar="CONFIG_JSON", help="Plan a local config.json (and the index beside it) on vLLM.")
@click.option("--from-log", metavar="FILE", help="Say what a vLLM boot log implies, and how far off its plan was.")
@click.option("--ctx", metavar="TOKENS", help="Context window (MAX_MODEL_LEN).")
@click.option("--spec-n", metavar="N", help="Tokens drafted a step; 0 switches drafting off (SPEC_N).")
@click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Any other setting, by its name.")
@click.option("--svg", metavar="FILE", help="Write the picture as SVG too.")
@json_option
def plan(
    slug: str | None, *, rig: str | None, model: str | None, svg: str | None, as_json: bool, **options: Any
) -> int:
    """Plan the memory of a tier: what fits, how much context, and what would help. Starts nothing."""
    from redline.catalog.load import load_catalog
    from redline.settings import load_settings

    config, log = options.pop("hf"), options.pop("from_log")
    _check_one_question(slug, model, config, log)
    if config and not log:
        settings, sets = load_settings(), _sets(options)
    else:
        from redline.cli.options import settings_from

        settings, sets = settings_from(options), ()
    catalog = load_catalog(settings.user_catalog_dir)
    if log:
        return _from_log(catalog, settings.layers, log, slug, config, rig, as_json=as_json)
    from redline.ops.plan import plan_config, plan_model, plan_slug, read_rig_option

    where = read_rig_option(catalog, rig)
    if model:
        return _show_model(plan_model(catalog, settings.layers, model, where), as_json=as_json)
    report = (
        plan_config(catalog, Path(config), where, sets)
        if config
        else plan_slug(catalog, settings.layers, slug or "", where)
    )
    if svg:
        _write_svg(Path(svg), report.fit)
    if as_json:
        from redline.record.codec import jsonable

        click.echo(json.dumps(jsonable(report)))
        return ExitCode.DONE
    from redline.cli.plan_view import report_lines

    for line in report_lines(report, catalog):
        click.echo(line)
    return ExitCode.DONE


def _check_one_question(slug: str | None, model: str | None, config: str | None, log: str | None) -> None:
    if log and not model:
        return
    given = [name for name, value in (("SLUG", slug), ("--model", model), ("--hf", config)) if value]
    if len(given) == 1 and not (log and model):
        return
    said = " and ".join(given) if given else "nothing"
    raise UsageError(
        f"plan needs exactly one of SLUG, --model, --hf or --from-log, and was given {said}.",
        next_step="For example: redline plan --model qwen3.8-27b --rig 2x3090",
    )


def _sets(options: dict[str, Any]) -> tuple[str, ...]:
    pairs = (("MAX_MODEL_LEN", options.get("ctx")), ("SPEC_N", options.get("spec_n")))
    return (*options.get("sets", ()), *(f"{name}={value}" for name, value in pairs if value is not None))


def _show_model(found: Any, *, as_json: bool) -> int:
    if as_json:
        from redline.record.codec import jsonable

        click.echo(json.dumps(jsonable(found)))
        return ExitCode.DONE
    from redline.cli.catalog import write_table
    from redline.cli.plan_view import model_rows

    click.echo(f"{found.model} on {found.rig}\n")
    write_table(model_rows(found))
    return ExitCode.DONE


def _from_log(
    catalog: Any, layers: Any, log: str, slug: str | None, config: str | None, rig: str | None, *, as_json: bool
) -> int:
    from redline.ops.plan import read_rig_option
    from redline.ops.plan_log import plan_log

    where = read_rig_option(catalog, rig) if rig else None
    solved = plan_log(catalog, layers, Path(log), slug=slug, config=Path(config) if config else None, rig=where)
    if as_json:
        from redline.record.codec import jsonable

        click.echo(json.dumps(jsonable(solved)))
        return ExitCode.DONE
    from redline.cli.plan_view import log_lines

    for line in log_lines(solved):
        click.echo(line)
    return ExitCode.DONE


def _write_svg(path: Path, fit: Any) -> None:
    from redline.errors import AccessError
    from redline.plan.picture import svg

    try:
        path.write_text(svg(fit), encoding="utf-8")
    except OSError as error:
        raise AccessError(f"{path} cannot be written: {error.strerror}.", next_step="Give another path.") from None

"""`tune`."""

import json
from typing import Any

import click

from redline.cli.options import json_option, override_options, overrides_from, settings_from, tier_options
from redline.errors import ExitCode, UsageError

_CLASSES = ("prose", "code", "chat", "structured", "edit", "summary")


@click.command()
@click.argument("slug", required=False)
@tier_options
@click.option("--vary", multiple=True, metavar="NAME=V1,V2", help="A setting and its values; repeatable.")
@click.option("--class", "classes", multiple=True, type=click.Choice(_CLASSES), help="Default: edit, code, prose.")
@click.option("--prompts", type=click.IntRange(2, 12), default=4, show_default=True, help="Of each class.")
@click.option("--tokens", type=click.IntRange(32, 1024), default=128, show_default=True, help="Tokens an answer.")
@click.option("--boots", type=click.IntRange(1, 9), default=1, show_default=True, help="Starts of each point.")
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="MIN", help="Begin no start after it.")
@click.option("--dry-run", is_flag=True, help="Show which points are feasible, and start nothing.")
@click.option("--resume", metavar="RUN", help="Go on with a search that was cut off.")
@override_options
@json_option
def tune(*, slug: str | None, as_json: bool, **options: Any) -> int:
    """Search a tier's settings jointly, and show which combinations are worth having: rate, context, memory.

    Without --vary how the tier drafts is searched. What does not fit is shown as refused and never started.
    Ends with 3 when the search was cut short or a point gave nothing.
    """
    from redline.bench.tune import Measured, TunePlan
    from redline.catalog.load import load_catalog
    from redline.catalog.resolve import find_tier
    from redline.cli.tune_view import run_search, show_points
    from redline.ops.prepare import DEFAULT_SLUG
    from redline.ops.prove import new_seed
    from redline.ops.tune import TuneJob, default_axes, plan_points, read_earlier
    from redline.record.codec import jsonable
    from redline.workload.prompts import PromptClass

    overrides = overrides_from(options)
    settings = settings_from(options)
    catalog = load_catalog(settings.user_catalog_dir)
    earlier = Measured()
    if options["resume"]:
        if slug or options["vary"]:
            raise UsageError("--resume goes on with the tier and the settings of that run; name neither.")
        plan, earlier = read_earlier(settings.runs_dir, options["resume"])
    else:
        name = find_tier(catalog, slug or DEFAULT_SLUG.replace("-fast", "-superfast")).slug
        plan = TunePlan(
            slug=name,
            vary=_axes(options["vary"]) or default_axes(catalog, settings, name),
            classes=tuple(PromptClass(word) for word in options["classes"] or ("edit", "code", "prose")),
            prompts=options["prompts"],
            max_tokens=options["tokens"],
            boots=options["boots"],
            seed=new_seed(),
        )
    budget_s = None if options["budget"] is None else 60 * options["budget"]
    job = TuneJob(plan=plan, overrides=overrides, budget_s=budget_s, earlier=earlier)
    if options["dry_run"]:
        points = plan_points(catalog, settings, job)
        if as_json:
            click.echo(json.dumps({"slug": plan.slug, "points": jsonable(points)}))
        else:
            show_points(plan, points)
        return ExitCode.DONE
    return run_search(catalog, settings, job, as_json=as_json)


def _axes(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    from redline.catalog.knobs import tier_knobs

    axes: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        words = tuple(dict.fromkeys(word.strip() for word in values.split(",") if word.strip()))
        if not equals or not words:
            raise UsageError(f"--vary {text}: expected NAME=V1,V2, for example SPEC_N=0,3,7.")
        if name.upper() not in tier_knobs():
            raise UsageError(
                f"--vary {text}: no tier has a setting {name}.", next_step="`redline show SLUG --explain`."
            )
        axes[name.upper()] = words
    return axes

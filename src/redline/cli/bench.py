"""`bench`."""

import json
from typing import Any

import click

from redline.cli.options import json_option, override_options, overrides_from
from redline.cli.prove import resume_option, target_options
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings

_CLASSES = ("prose", "code", "chat", "structured", "edit", "summary")


@click.command()
@target_options
@click.option("--quick", is_flag=True, help="A few short prompts of each class; under 45 s.")
@click.option("--canonical", is_flag=True, help="One prose and one code prompt, 3 warm and 5 measured, as published.")
@click.option("--sampled", is_flag=True, help="The honest regime with sampling instead of greedy.")
@click.option("--class", "classes", multiple=True, type=click.Choice(_CLASSES), help="Only this class; repeatable.")
@click.option("--width", type=click.FloatRange(0.001, 0.5), help="Asked half width of the interval; default 0.01.")
@click.option("--boots", type=click.IntRange(min=1), default=None, help="Boots to measure (with --ab: an arm; 3).")
@click.option("--prefill/--no-prefill", default=True, help="Read prompts of 10,000 and 90,000 tokens, or what fits.")
@click.option("--ab", nargs=2, metavar="SLUG_A SLUG_B", help="Two tiers, boots in the order A B B A.")
@click.option("--beside", is_flag=True, help="With --ab: both at once, requests in turn; tiers, or two URLs.")
@click.option(
    "--settle",
    "settle_s",
    type=click.FloatRange(0, 7200),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Work a GPU at most so long until it is warm, before measuring; without a GPU nothing is done.",
)
@click.option("--margin", type=click.FloatRange(0.001, 0.5), default=0.03, show_default=True, help="What is equal.")
@click.option("--allow-difference", "allowed", multiple=True, metavar="FIELD", help="With --ab: measure it knowingly.")
@click.option("--request-timeout", "timeout_s", type=float, default=300.0, show_default=True, help="Seconds an answer.")
@resume_option
@override_options
@json_option
def bench(*, name: str | None, url: str | None, model: str | None, as_json: bool, **options: Any) -> int:
    """Measure a server, with 95 % intervals; rates come from the server's token counts.

    Without --quick or --canonical: the honest regime, six classes, each prompt once, until the interval is narrow.
    With --ab ends with 0 when every class has a verdict, 3 when one is undetermined.
    """
    from redline.bench.quick import QuickRegime
    from redline.catalog.load import load_catalog
    from redline.cli.bench_run import run_ab, run_boots, run_quick
    from redline.workload.prompts import SHORT_CLASSES, PromptClass

    quick, canonical, ab = options["quick"], options["canonical"], options["ab"]
    if quick + canonical + options["sampled"] > 1:
        raise UsageError("--quick, --canonical and --sampled exclude each other.")
    if options["resume"] and (quick or ab or (options["boots"] or 1) > 1):
        raise UsageError(
            "--resume goes on with one boot of one server.",
            next_step="What compares boots is begun anew, since no boot may be measured in two halves.",
        )
    if options["beside"] and not ab:
        raise UsageError("--beside goes with --ab A B.")
    if ab and (quick or name or url):
        raise UsageError("--ab starts its own servers: no --quick, no NAME and no --url with it.")
    options["overrides"] = overrides_from(options)
    options["kinds"] = tuple(PromptClass(word) for word in options["classes"])
    settings = load_settings()
    catalog = load_catalog(settings.user_catalog_dir)
    if ab:
        return run_ab(catalog, settings, options, as_json=as_json)
    where = (name, url, model)
    if quick:
        regime = QuickRegime(classes=options["kinds"] or SHORT_CLASSES)
        return run_quick(catalog, settings, where, regime, as_json=as_json)
    return run_boots(catalog, settings, where, options, as_json=as_json)


def exit_of(summaries: tuple[Any, ...]) -> ExitCode:
    """Return 1 where no class has a rate, 3 where some class has none."""
    without = sum(row.decode_tok_s is None for row in summaries)
    if not summaries or without == len(summaries):
        return ExitCode.CHECK_FAILED
    return ExitCode.INCONCLUSIVE if without else ExitCode.DONE


def write_json(**values: Any) -> None:
    """Write the outcome as one JSON object."""
    from redline.record.codec import jsonable

    click.echo(json.dumps(jsonable(values)))

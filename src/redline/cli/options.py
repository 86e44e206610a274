"""Options that several commands share, and how they become settings."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from redline.errors import UsageError
from redline.settings import Settings, Sourced, load_settings

F = TypeVar("F", bound=Callable[..., Any])

_KNOB_FLAGS: Final = {"port": "PORT", "host": "BIND_HOST", "ctx": "MAX_MODEL_LEN", "spec_n": "SPEC_N", "gpus": "GPUS"}


def json_option(function: F) -> F:
    """Add `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")(function)


def tier_options(function: F) -> F:
    """Add the options that change a tier's values."""
    options = (
        click.option("--port", metavar="N", help="Port of the server (PORT)."),
        click.option("--host", metavar="ADDRESS", help="Address to listen on (BIND_HOST)."),
        click.option("--ctx", metavar="TOKENS", help="Context window (MAX_MODEL_LEN)."),
        click.option("--spec-n", metavar="N", help="Tokens drafted a step; 0 switches drafting off (SPEC_N)."),
        click.option("--set", "sets", metavar="NAME=VALUE", multiple=True, help="Any other setting, by its name."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def override_options(function: F) -> F:
    """Add the switches that lift refusals."""
    options = (
        click.option("--allow-experimental", is_flag=True, help="Serve a tier that is not proven."),
        click.option("--ignore-vram", is_flag=True, help="Start although the plan says it does not fit."),
        click.option("--ignore-hardware", is_flag=True, help="Start although the hardware does not match."),
        click.option("--ignore-integrity", is_flag=True, help="Use files that cannot be verified."),
        click.option("--experiment", "experiments", metavar="RULE", multiple=True, help="Break one rule, labelled."),
        click.option("--force", is_flag=True, hidden=True, help="The older spelling of --allow-experimental."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def overrides_from(options: dict[str, Any]) -> tuple[str, ...]:
    """Take the override switches out of a command's options, in the form guards compare with."""
    names = ("allow_experimental", "ignore_vram", "ignore_hardware", "ignore_integrity")
    given = {f"--{name.replace('_', '-')}" for name in names if options.pop(name, False)}
    if options.pop("force", False):
        given.add("--allow-experimental")
    given |= {f"--experiment {rule}" for rule in options.pop("experiments", ())}
    return tuple(sorted(given))


def settings_from(options: dict[str, Any]) -> Settings:
    """Take tier options out of a command's options and load all settings with them on top.

    Raises:
        UsageError: `--set` without `=`, or with a name that no setting has.
    """
    from redline.catalog.knobs import tier_knobs
    from redline.settings import SETTINGS_KNOBS

    cli = {
        knob: Sourced(value, f"cli:--{flag.replace('_', '-')}")
        for flag, knob in _KNOB_FLAGS.items()
        if (value := options.pop(flag, None)) is not None
    }
    known = tier_knobs() | {knob.name for knob in SETTINGS_KNOBS if not knob.secret}
    for text in options.pop("sets", ()):
        name, equals, value = text.partition("=")
        if not equals or name not in known:
            import difflib

            near = difflib.get_close_matches(name.upper(), sorted(known), n=3)
            raise UsageError(
                f"--set {text}: expected NAME=VALUE with the name of a setting.",
                next_step=f"Nearest: {', '.join(near)}." if near else f"Names: {', '.join(sorted(known))}.",
            )
        cli[name] = Sourced(value, f"cli:--set {name}")
    return load_settings(cli)

"""`engine`: the homes of engines that are not redline's own."""

import json

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen, program
from redline.errors import ExitCode, UsageError
from redline.settings import load_settings


@click.group()
def engine() -> None:
    """Where engines live: make an environment, adopt one, list them."""


@engine.command()
@click.argument("pin", metavar="NAME==VERSION")
@click.option("--python", help="The interpreter to build it with; default: the one that runs redline.")
@json_option
def install(pin: str, *, python: str | None, as_json: bool) -> int:
    """Install an engine, as in vllm==0.33.0, into an environment of its own. Takes gigabytes and minutes."""
    from redline.engine.home import EngineHome
    from redline.ops.engine_install import install as run_install
    from redline.record.codec import jsonable
    from redline.units import format_seconds

    home: EngineHome | None = None
    with Screen(quiet=as_json) as screen:
        for step in run_install(load_settings(), pin, python):
            if isinstance(step, EngineHome):
                home = step
                screen.line("engine", f"{step.name}   {step.program}", colour="green")
            else:
                words = f"{format_seconds(step.seconds):>12}  {step.text}"
                screen.progress("install", words, step=step.text.split(" (")[0][:60])
    assert home is not None
    if as_json:
        click.echo(json.dumps(jsonable(home)))
    return ExitCode.DONE


@engine.command()
@click.option("--python", help="An interpreter that has vLLM, or finds it in --path.")
@click.option("--path", multiple=True, metavar="DIR", help="A folder that it is to find packages in.")
@click.option("--binary", help="A llama-server.")
@click.option("--name", help="What to call it; default: engine and version.")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="Set for this engine.")
@json_option
def add(
    python: str | None,
    path: tuple[str, ...],
    binary: str | None,
    name: str | None,
    variables: tuple[str, ...],
    *,
    as_json: bool,
) -> int:
    """Adopt an engine that is here: vLLM of an interpreter (--python), or a llama-server (--binary)."""
    from redline.ops.engines import add_binary, add_python
    from redline.record.codec import jsonable

    if (python is None) == (binary is None) or (binary is not None and path):
        raise UsageError("Give --python (with --path where it needs one), or --binary.")
    pairs = [text.partition("=") for text in variables]
    for given, equals, _ in pairs:
        if not equals or not given.isidentifier():
            raise UsageError(f"--env {given}: expected NAME=VALUE.")
    environment = {given: value for given, _, value in pairs}
    settings = load_settings()
    if python is not None:
        home = add_python(settings, python, path, name, environment)
    else:
        assert binary is not None
        home = add_binary(settings, binary, name, environment)
    if as_json:
        click.echo(json.dumps(jsonable(home)))
    else:
        click.echo(f"  engine   {home.name}: {home.kind} {home.version}, {home.program}")
    return ExitCode.DONE


@engine.command("list")
@json_option
def list_(*, as_json: bool) -> int:
    """List the engine homes, and which cannot be used."""
    from redline.cli.catalog import write_table
    from redline.ops.engines import list_homes
    from redline.record.codec import jsonable

    rows = list_homes(load_settings())
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        click.echo(
            f"No engine home yet. `{program()} engine install vllm==VERSION` makes one, `engine add` adopts one."
        )
        return ExitCode.DONE
    table: list[tuple[str, ...]] = [("NAME", "ENGINE", "VERSION", "STATE", "PROGRAM")]
    table += [(row.name, row.kind, row.version, row.problem or "usable", row.program) for row in rows]
    write_table(table)
    return ExitCode.DONE


@engine.command()
@click.argument("name")
def remove(name: str) -> int:
    """Forget an engine home; an environment that redline made is deleted with it."""
    from redline.ops.engines import remove_home

    deleted = remove_home(load_settings(), name)
    click.echo(f"  engine   {name} is forgotten{', and its environment deleted' if deleted else ''}")
    return ExitCode.DONE

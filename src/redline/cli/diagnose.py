"""`diagnose`: what an engine's log says went wrong, and what to do about it."""

import json
from typing import TYPE_CHECKING, Final

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings

if TYPE_CHECKING:
    from redline.engine.diagnose import Diagnosis

_SHOWN_CHARS: Final = 300


@click.command()
@click.argument("log", required=False)
@click.option("--engine", type=click.Choice(["vllm", "llamacpp"]), help="Whose log it is; it is recognised otherwise.")
@click.option("--list", "listing", is_flag=True, help="List the known faults, and how each is known.")
@json_option
def diagnose(log: str | None, *, engine: str | None, listing: bool, as_json: bool) -> int:
    """Say what went wrong by an engine's log: LOG, `-` for standard input, or that of the last server.

    Ends with 3 when the log shows trouble that is not known.
    """
    from redline.engine.diagnose import DiagnosisVerdict
    from redline.ops.diagnose import diagnose_file, diagnose_server
    from redline.record.codec import jsonable

    if listing:
        return _list_known(engine, as_json=as_json)
    if log is None:
        path, found = diagnose_server(load_settings(), None)
        log = str(path)
    else:
        found = diagnose_file(log, engine)
    if as_json:
        click.echo(json.dumps({"log": log, **jsonable(found)}))
    else:
        for label, text in diagnosis_lines(found):
            click.echo(f"  {label:<8} {text}")
    return ExitCode.INCONCLUSIVE if found.verdict is DiagnosisVerdict.UNKNOWN else ExitCode.DONE


def _list_known(engine: str | None, *, as_json: bool) -> int:
    from redline.engine.signatures import signature_book

    known = signature_book().of_engine(engine)
    if as_json:
        names = ("id", "engine", "versions", "text", "meaning", "remedies", "kind", "source")
        click.echo(json.dumps([{name: getattr(item, name) for name in names} for item in known]))
        return ExitCode.DONE
    for item in known:
        click.echo(f"{item.id:<32} {item.engine:<9} {item.kind.value:<14} {item.source}")
    return ExitCode.DONE


def diagnosis_lines(found: "Diagnosis") -> list[tuple[str, str]]:
    """Return a diagnosis as labelled lines."""
    rows = [("cause", found.cause)]
    if found.evidence:
        shown = found.evidence if len(found.evidence) <= _SHOWN_CHARS else found.evidence[:_SHOWN_CHARS] + " ..."
        rows.append((f"line {found.line_number}", shown))
    rows += [("try" if number == 0 else "", text) for number, text in enumerate(found.remedies)]
    if found.signature_id:
        rows.append(("known as", f"{found.signature_id}   {found.kind}: {found.source}"))
    elif found.tail:
        rows += [("log" if number == 0 else "", text) for number, text in enumerate(found.tail)]
    return rows

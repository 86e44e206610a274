"""`ask`."""

import json

import click

from redline.cli.options import json_option
from redline.errors import ExitCode
from redline.settings import load_settings


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--server", "name", metavar="NAME", help="Which server, when several run.")
@click.option("--max-tokens", default=400, show_default=True, help="Where to cut the answer off.")
@json_option
def ask(words: tuple[str, ...], name: str | None, max_tokens: int, *, as_json: bool) -> int:
    """Ask the running model and stream the answer. A server that is still loading is waited for."""
    from redline.ops.ask import ask as run_ask
    from redline.ops.servers import pick_server, target_of, wait_ready

    settings = load_settings()
    folder, record = pick_server(settings, name)
    for _ in wait_ready(folder):
        pass
    pieces = run_ask(target_of(record, settings), " ".join(words), max_tokens=max_tokens)
    if as_json:
        click.echo(json.dumps({"slug": record.slug, "model": record.served_model, "answer": "".join(pieces)}))
        return ExitCode.DONE
    for piece in pieces:
        click.echo(piece, nl=False)
    click.echo()
    return ExitCode.DONE

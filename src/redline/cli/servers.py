"""`ps`, `logs` and `down`. These answer at once: they load no client, no catalogue and no checks."""

import json
import sys
import time

import click

from redline.cli.options import json_option
from redline.cli.screen import Screen, program
from redline.errors import ExitCode
from redline.settings import load_settings

_FOLLOW_S = 0.2


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Stop every server.")
@click.option("--now", is_flag=True, help="Do not wait for requests that are being answered.")
@json_option
def down(name: str | None, *, everything: bool, now: bool, as_json: bool) -> int:
    """Stop a server (by slug, id or port; needless when only one runs) and prove that it is gone."""
    from redline.cli.server_view import ServerView
    from redline.ops.down import down as run_down
    from redline.record.codec import jsonable

    with Screen(quiet=as_json) as screen:
        view = ServerView(screen)
        for event in run_down(load_settings(), name, everything=everything, now=now):
            view.show(event)
    if as_json:
        click.echo(json.dumps(jsonable(view.stopped)))
    return ExitCode.DONE if all(proof.clean for proof in view.stopped) else ExitCode.INCONCLUSIVE


@click.command()
@json_option
def ps(*, as_json: bool) -> int:
    """List the running servers, and engines that outlived their supervisor."""
    from redline.ops.servers import OUTLIVED, list_rows
    from redline.record.codec import jsonable
    from redline.units import MIB, format_seconds

    rows, unreadable = list_rows(load_settings())
    for item in unreadable:
        click.echo(f"note     {item.folder} is left out: {item.why}", err=True)
    if as_json:
        click.echo(json.dumps(jsonable(rows)))
        return ExitCode.DONE
    if not rows:
        click.echo(f"No server is running. Start one with `{program()} up`.")
    for row in rows:
        where = f"container {row.container[:12]}" if row.container else f"pid {row.pid or '-'}"
        words = [
            row.slug,
            *([row.role] if row.role else []),
            row.state,
            f"{row.url}/v1",
            f"model {row.served_model}",
            where,
        ]
        words += [f"{row.memory_bytes / MIB:.0f} MiB", f"up {format_seconds(row.uptime_s)}"]
        if row.progress is not None:
            words.append(f"{100 * row.progress:.0f} %")
        if row.remaining_s is not None:
            words.append(f"ready in about {format_seconds(row.remaining_s)}")
        if row.restarts:
            words.append(f"{row.restarts} restarts")
        click.echo("   ".join(words))
        if row.state == OUTLIVED:
            click.echo(f"  its supervisor is gone and this is left of it; `{program()} down {row.server_id}` ends it")
        if row.lost_log_bytes:
            click.echo(f"  {row.lost_log_bytes} bytes of its log were lost: is the disk full?")
    return ExitCode.DONE


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on as the engine prints more, until it ends.")
@click.option("-n", "--lines", default=50, show_default=True, help="How many of the last lines.")
@json_option
def logs(name: str | None, *, follow: bool, lines: int, as_json: bool) -> int:
    """Show what an engine printed: of the running server, or of the last one that ran."""
    from redline.launch.logfile import follow_file, tail
    from redline.launch.state import LOG_FILE, read_record
    from redline.ops.servers import latest_server

    folder, record = latest_server(load_settings(), name)
    path = folder / LOG_FILE
    shown = tail(path, lines)
    if as_json:
        click.echo(json.dumps({"slug": record.slug, "state": record.state.value, "log": str(path), "lines": shown}))
        return ExitCode.DONE
    for line in shown:
        click.echo(line)
    if not follow:
        return ExitCode.DONE
    for data in follow_file(path):
        if data:
            sys.stdout.write(data.decode("utf-8", errors="replace"))
            sys.stdout.flush()
            continue
        current = read_record(folder)
        if current is None or not current.running:
            return ExitCode.DONE
        time.sleep(_FOLLOW_S)
    return ExitCode.DONE

"""`submit`: two files to attach to an issue or a pull request, looked through before they are written."""

import json
import sys
from pathlib import Path

import click

from redline.cli.options import json_option
from redline.errors import ExitCode, RefusedError
from redline.settings import load_settings


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path("submission"), show_default=True)
@click.option("--note", default="", help="A sentence of yours about the rig or the runs.")
@click.option("--yes", is_flag=True, help="Write without asking: you have seen what is in it.")
@json_option
def submit(runs: tuple[str, ...], out: Path, note: str, *, yes: bool, as_json: bool) -> int:
    """Make a submission of runs: JSON with every sample, and Markdown for people. Nothing is sent.

    RUN is an id, its last letters, `last`, or a slug. What redaction took out is shown first.
    """
    from redline.ops.submit import draft_submissions, write_draft

    written = []
    for draft in draft_submissions(load_settings(), runs, note):
        if not as_json:
            click.echo(f"{draft.submission.slug}   {len(draft.submission.samples)} samples, submission {draft.name}")
            click.echo(draft.taken_out or "redaction took nothing out")
        if not yes and not as_json and not _agreed():
            raise RefusedError("Nothing was written.", next_step="Look through it, then run it again with --yes.")
        data, text = write_draft(draft, out)
        written.append({"submission_id": draft.submission.submission_id, "json": str(data), "markdown": str(text)})
        if not as_json:
            click.echo(f"\nwrote {data} and {text}: read the second, attach both")
    if as_json:
        click.echo(json.dumps(written))
    return ExitCode.DONE


def _agreed() -> bool:
    return sys.stdin.isatty() and click.confirm("Write these files?", default=False)

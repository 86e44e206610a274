"""The `redline` command. Commands are loaded when they are called, so that `redline --help` stays instant."""

import importlib
import os
import signal
import sys
from types import FrameType
from typing import Any, Final, NoReturn

import click

from redline import __version__
from redline.cli.errors import show_error, show_fault
from redline.errors import ExitCode, RedlineError

# Command name -> (module, attribute, one line for the list of commands), in the order a newcomer meets them.
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "up": ("redline.cli.serve", "up", "Serve a tier: check, fetch, start, verify, measure."),
    "down": ("redline.cli.servers", "down", "Stop a server and prove that port and memory are free."),
    "ps": ("redline.cli.servers", "ps", "List the running servers."),
    "logs": ("redline.cli.servers", "logs", "Show what an engine printed."),
    "restart": ("redline.cli.serve", "restart", "Start a server again as it was."),
    "ask": ("redline.cli.ask", "ask", "Ask the running model and stream the answer."),
    "tiers": ("redline.cli.catalog", "tiers", "List the tiers, and which fit here."),
    "show": (
        "redline.cli.catalog",
        "show",
        "Show one tier in full; --explain says where each value comes from.",
    ),
    "plan": ("redline.cli.plan", "plan", "Plan a tier's memory on a rig: fit, context, what would help."),
    "map": ("redline.cli.map", "map_", "Show a model's tiers as the grid they form."),
    "render": ("redline.cli.render", "render", "Write what serving a tier would run: a command, docker, compose."),
    "get": ("redline.cli.catalog", "get", "Fetch and verify the files of a tier."),
    "verify": ("redline.cli.prove", "verify", "Check that a server does what it should."),
    "bench": ("redline.cli.bench", "bench", "Measure a server, with intervals; or two tiers against each other."),
    "soak": ("redline.cli.soak", "soak", "Talk to a server for long and watch what changes."),
    "ramp": ("redline.cli.ramp", "ramp", "Play an agent at work: is the growing conversation reused?"),
    "concurrency": ("redline.cli.concurrency", "concurrency", "Measure streams side by side, against the slots."),
    "tune": ("redline.cli.tune", "tune", "Search a tier's settings: rate, context and memory of each combination."),
    "runs": ("redline.cli.runs", "runs", "List what was done and measured."),
    "report": ("redline.cli.report", "report", "Describe runs, or this rig, ready to be shared."),
    "submit": ("redline.cli.submit", "submit", "Make files of runs to hand in, looked through first."),
    "evidence": ("redline.cli.evidence", "evidence", "Take in what others have measured."),
    "site": ("redline.cli.site", "site", "Make pages of the tiers and of recorded runs."),
    "compare": ("redline.cli.compare", "compare", "Compare two runs or tiers, with intervals."),
    "diagnose": ("redline.cli.diagnose", "diagnose", "Say what went wrong, from an engine's log."),
    "fake-engine": (
        "redline.cli.fake_engine",
        "fake_engine",
        "Play an engine, behaving or not: for trying and testing.",
    ),
    "engine": ("redline.cli.engine", "engine", "Where engines live: install, add, list, remove."),
    "gpu-bundle": ("redline.cli.gpu_bundle", "gpu_bundle", "Pack what a GPU host without network needs, in parts."),
    "config": ("redline.cli.config", "config", "Settings that hold for every command: show, set, unset, path."),
    "doctor": ("redline.cli.doctor", "doctor", "Look at this machine for what would get in the way."),
}
_ALIASES: Final = {"switch": "up"}
_GUIDE: Final = """\
redline serves a large language model on the hardware you have, and proves what it does.

  redline up        serve the tier that suits this machine, verify it, measure it
  redline ask TEXT  ask the running model
  redline tiers     what there is, and what fits here
  redline down      stop, and prove that it stopped
  redline --help    everything else
"""


class LazyGroup(click.Group):
    """A group whose commands are imported only when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command; None when there is no such name."""
        entry = COMMANDS.get(_ALIASES.get(cmd_name, cmd_name))
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry[0]), entry[1])
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, naming near ones when there is none."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], [*COMMANDS, *_ALIASES], n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else " `redline --help` lists them."
            ctx.fail(f"There is no command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table, importing none of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, _, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="redline")
@click.pass_context
def cli(context: click.Context) -> None:
    """Serve a large language model on the hardware you have, in named tiers, and prove what each tier does."""
    if context.invoked_subcommand is None:
        click.echo(_GUIDE, nl=False)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run one command and end the process with its exit code."""
    signal.signal(signal.SIGTERM, _on_terminate)
    sys.exit(int(_run(arguments)))


def _run(arguments: list[str] | None) -> int:
    try:
        result: Any = cli.main(arguments, prog_name="redline", standalone_mode=False)
        return result if isinstance(result, int) else ExitCode.DONE
    except click.UsageError as error:
        error.show()
        return ExitCode.USAGE
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except RedlineError as error:
        show_error(error, as_json="--json" in (arguments or sys.argv))
        return error.exit_code
    except BrokenPipeError:
        # The reader of our output went away (`redline logs | head`); Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.DONE
    except Exception as error:
        show_fault(error)
        return ExitCode.FAULT


def _on_terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(int(ExitCode.TERMINATED))

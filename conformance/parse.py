"""Feeds rendered vLLM commands to vLLM's own parser and configuration classes, without a GPU.

    redline render SLUG --as argv --json | .conformance/venv/bin/python -m conformance.parse
    .conformance/venv/bin/python -m conformance.parse conformance/sample_argv.jsonl --probes

In: JSON lines with `slug`, `argv` (`vllm serve ...` or `python -m vllm.entrypoints.openai.api_server ...`) and perhaps
`env`. The model and the drafter are replaced by the local config.json that shapes/stand_ins.json names. Out: a table by
slug; exit 1 when a command is not taken, or when a probe (probes.json) is judged otherwise than recorded. Drift means a
flag, or a VLLM_ variable, that this version does not know. Not known: what the flags do.
"""

import argparse
import contextlib
import fnmatch
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from conformance.engine import HERE, SHAPES, engine_config, prepare

PROBES: Final = HERE / "probes.json"


class NotACommandError(ValueError):
    """The argument list is none that starts a vLLM server."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What vLLM said of one command. `drift` holds flags it does not know; `reason` is its first complaint,
    `weights` the quantisation method that it settled on."""

    slug: str
    drift: tuple[str, ...]
    parsed: bool
    configured: bool
    reason: str = ""
    weights: str = ""

    @property
    def taken(self) -> bool:
        return self.parsed and self.configured and not self.drift


def serve_arguments(argv: Sequence[str]) -> list[str]:
    """Return what follows the program in a command that starts a vLLM server.

    Raises:
        NotACommandError: it does not.
    """
    if len(argv) >= 2 and Path(argv[0]).name == "vllm" and argv[1] == "serve":
        return list(argv[2:])
    if "-m" in argv and argv.index("-m") + 1 < len(argv):
        at = argv.index("-m") + 1
        if argv[at] == "vllm.entrypoints.openai.api_server":
            return list(argv[at + 1 :])
        if argv[at : at + 2] == ["vllm.entrypoints.cli.main", "serve"] or argv[at : at + 2] == ["vllm", "serve"]:
            return list(argv[at + 2 :])
    raise NotACommandError(f"not a vLLM server command: {' '.join(argv[:4])} ...")


def stand_in(kind: str, slug: str) -> str:
    """Return the folder whose config.json stands for the `target` or `drafter` of a slug."""
    patterns = json.loads((SHAPES / "stand_ins.json").read_text())[kind]
    return str(SHAPES / next(folder for pattern, folder in patterns if fnmatch.fnmatch(slug, pattern)))


class Parser:
    """vLLM's serve parser, made once."""

    def __init__(self) -> None:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.entrypoints.common import cli_args
        from vllm.platforms import current_platform
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        # The CPU platform takes few weight formats and says so before anything else; a GPU takes those of our tiers.
        type(current_platform).supported_quantization = []
        self.parser = cli_args.make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
        self.engine_args, self.checks = AsyncEngineArgs, cli_args

    def judge(self, slug: str, argv: Sequence[str], env: Mapping[str, str] | None = None) -> Outcome:
        """Return what vLLM says of a command and its environment."""
        try:
            arguments = serve_arguments(argv)
        except NotACommandError as error:
            return Outcome(slug, (), parsed=False, configured=False, reason=str(error))
        drift = (*self.unknown_flags(arguments), *unknown_variables(env or {}))
        complaint = io.StringIO()
        try:
            with contextlib.redirect_stderr(complaint), contextlib.redirect_stdout(complaint):
                parsed = self.parser.parse_args(arguments)
                self.checks.validate_parsed_serve_args(parsed)
        except SystemExit:
            said = [line for line in complaint.getvalue().splitlines() if "error:" in line] or ["it exited"]
            return Outcome(slug, drift, parsed=False, configured=False, reason=said[-1].split("error:")[-1].strip())
        except Exception as error:
            return Outcome(slug, drift, parsed=False, configured=False, reason=first_line(error))
        try:
            config = engine_config(self.with_stand_ins(slug, parsed), tokenizer=True)
            self.checks.validate_api_server_args(parsed)
        except Exception as error:
            return Outcome(slug, drift, parsed=True, configured=False, reason=first_line(error))
        weights = config.model_config.quantization or str(config.model_config.dtype).removeprefix("torch.")
        return Outcome(slug, drift, parsed=True, configured=True, weights=weights)

    def unknown_flags(self, arguments: Sequence[str]) -> list[str]:
        """Return the flags that the parser does not have; an abbreviation counts, a later version may refuse it."""
        flags = [word.split("=")[0] for word in arguments if re.match(r"--?[a-zA-Z]", word)]
        # --compilation-config.mode is vLLM's way to set one key; underscores count as dashes.
        roots = {flag: flag.split(".")[0].replace("_", "-") for flag in flags}
        return [flag for flag, root in roots.items() if root not in self.parser._option_string_actions]

    def with_stand_ins(self, slug: str, parsed: argparse.Namespace) -> Any:
        parsed.model, parsed.model_tag, parsed.tokenizer = stand_in("target", slug), None, str(SHAPES / "tokenizer")
        if isinstance(parsed.speculative_config, dict) and "model" in parsed.speculative_config:
            parsed.speculative_config = parsed.speculative_config | {"model": stand_in("drafter", slug)}
        return self.engine_args.from_cli_args(parsed)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """Return the VLLM_ variables that this version does not have, or whose value it refuses."""
    from vllm.envs import environment_variables

    found = []
    for name, value in env.items():
        if not name.startswith("VLLM_"):
            continue
        before = os.environ.get(name)
        os.environ[name] = value
        try:
            environment_variables[name]()
        except (KeyError, ValueError):
            found.append(f"{name}={value}")
        finally:
            os.environ.pop(name)
            if before is not None:
                os.environ[name] = before
    return found


def first_line(error: Exception) -> str:
    """Return the sentence of an exception that says what is wrong; pydantic puts it on the third line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not re.match(r"\d+ validation error", line)]
    # pydantic: field name, then the message with the input in brackets
    message = next((line for line in telling if " " in line), telling[0] if telling else repr(error))
    where = f"{telling[0]}: " if telling and telling[0] != message else ""
    return where + re.sub(r"\s*\[type=.*", "", message).removeprefix("Value error, ")


def read_rows(lines: Iterable[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines if line.strip()]


def table(outcomes: Sequence[Outcome]) -> str:
    width = max(len(outcome.slug) for outcome in outcomes)
    lines = [f"{'slug':<{width}}  parsed  config  weights       drift"]
    for outcome in outcomes:
        drift = " ".join(outcome.drift) or "-"
        parsed, configured = ("yes" if yes else "NO" for yes in (outcome.parsed, outcome.configured))
        marks = f"{outcome.slug:<{width}}  {parsed:<6}  {configured:<6}  {outcome.weights or '-':<12}"
        lines.append(f"{marks}  {drift}  {outcome.reason}".rstrip())
    return "\n".join(lines)


def run_probes(parser: Parser) -> bool:
    """Print what vLLM says to each deliberate fault and whether that is what probes.json records."""
    probes = json.loads(PROBES.read_text())
    base = {row["slug"]: row["argv"] for row in read_rows((HERE / "sample_argv.jsonl").read_text().splitlines())}
    as_recorded = True
    for probe in probes["probes"]:
        outcome = parser.judge(probe["slug"], changed(base[probe["slug"]], probe["with"]))
        verdict = "taken" if outcome.taken else "config rejects" if outcome.parsed else "parser rejects"
        same = verdict == probe["verdict"]
        as_recorded &= same
        note = outcome.reason if verdict != "taken" else probe["note"]
        print(f"{'' if same else 'NOT AS RECORDED: '}{verdict:<15} {' '.join(probe['with'])}\n{'':<15} {note[:160]}")
    return as_recorded


def changed(argv: Sequence[str], extra: Sequence[str]) -> list[str]:
    """Return a command with flags added; a flag that it already has is replaced, value included."""
    result, kept = list(argv), list(extra)
    if kept and kept[0] in result and len(kept) == 2:
        result[result.index(kept[0]) + 1] = kept[1]
        return result
    return result + kept


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("rows", nargs="?", type=Path, help="JSON lines; standard input when left out")
    options.add_argument("--probes", action="store_true", help="also try deliberate faults")
    chosen = options.parse_args()
    lines = chosen.rows.read_text().splitlines() if chosen.rows else sys.stdin.readlines()
    prepare()
    parser = Parser()
    outcomes = [parser.judge(row["slug"], row["argv"], row.get("env")) for row in read_rows(lines)]
    print(table(outcomes))
    taken = sum(outcome.taken for outcome in outcomes)
    print(f"{taken} of {len(outcomes)} commands taken by vLLM's parser and configuration classes")
    probes_hold = run_probes(parser) if chosen.probes else True
    return 0 if taken == len(outcomes) and probes_hold else 1


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # vLLM leaves threads behind that hold up a plain exit

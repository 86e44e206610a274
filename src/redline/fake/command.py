"""The command line of the fake engine, for `redline fake-engine` and `python -m redline.fake` alike.

What follows `--` is an engine's own command line: port, host, model name and context are taken from it, everything
else is ignored, so that the fake can stand where a real engine is started.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from redline.fake.scenario import Model, Scenario, load_scenario, scenario_names, with_settings
from redline.fake.typed_yaml import DataError

# Spellings of vLLM (vllm/entrypoints/common/cli_args.py, vllm/engine/arg_utils.py) and llama.cpp (common/arg.cpp).
_ENGINE_FLAGS: Final = {
    "--port": "port",
    "--host": "host",
    "--served-model-name": "model",
    "--alias": "model",
    "-a": "model",
    "--max-model-len": "context",
    "--ctx-size": "context",
    "-c": "context",
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="redline fake-engine", description="A scripted engine for trying and testing.")
    found.add_argument("scenario", nargs="?", help="a name from --list, or the path of a scenario file")
    found.add_argument("--port", type=int, help="port to listen on; 0 (the default) takes any free one")
    found.add_argument("--host", help="address to listen on (127.0.0.1)")
    found.add_argument("--dialect", choices=("vllm", "llamacpp"), help="which engine to speak as")
    found.add_argument("--model", help="the name the model is served under")
    found.add_argument("--set", dest="settings", action="append", default=[], metavar="FIELD=VALUE")
    found.add_argument("--seed", type=int, default=0, help="seed of texts, timing and drafting")
    found.add_argument("--truth", type=Path, metavar="FILE", help="write down when each chunk was really written")
    found.add_argument("--list", action="store_true", help="list the scenarios")
    found.add_argument("--describe", action="store_true", help="say what a scenario plays")
    found.add_argument("--json", action="store_true", help="with --list or --describe: write JSON")
    found.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit status: 2 when what was asked for does not exist."""
    own, _, engine = _split(list(arguments))
    options = parser().parse_args(own)
    try:
        if options.list:
            print(list_text(as_json=options.json))
            return 0
        scenario = with_settings(load_scenario(options.scenario or ""), options.settings)
        if options.describe:
            print(describe_text(options.scenario, scenario, as_json=options.json))
            return 0
        return _play(options, scenario, _engine_values(engine))
    except DataError as error:
        print(f"error    {error}", file=sys.stderr)
        return 2


def list_text(*, as_json: bool) -> str:
    """Return all scenarios, by kind."""
    found = {name: load_scenario(name) for name in scenario_names()}
    if as_json:
        rows = [
            {"name": name, "kind": item.kind, "fault": item.fault, "title": item.title, "dialects": item.dialects}
            for name, item in found.items()
        ]
        return json.dumps(rows)
    lines = []
    for kind in ("healthy", "start", "stop", "transport", "traffic"):
        lines.append(kind)
        lines += [f"  {name:<26} {item.title}" for name, item in found.items() if item.kind == kind]
    return "\n".join([*lines, "", "`redline fake-engine NAME --describe` says more of one."])


def describe_text(name: str, scenario: Scenario, *, as_json: bool) -> str:
    """Return one scenario in words, with every value that differs from a healthy engine's."""
    if as_json:
        return json.dumps({"name": name, **asdict(scenario)})
    lines = [f"{name}: {scenario.title}", "", scenario.about.strip(), "", f"expect   {scenario.expect.strip()}"]
    lines.append(f"speaks   {', '.join(scenario.dialects)}")
    plain = Scenario(title="", about="", kind="healthy", fault="", expect="")
    for part in ("model", "speed", "drafter", "boot", "answer", "wire", "depth", "life"):
        record, usual = getattr(scenario, part), getattr(plain, part)
        if record is None:
            continue
        changed = _changed(asdict(record), asdict(usual) if usual else {})
        lines += [f"{part + '.' + key:<32} {value}" for key, value in changed.items()]
    lines += [f"source   {source}" for source in scenario.sources]
    return "\n".join(lines)


def _changed(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key not in usual or value != usual[key]}


def _play(options: argparse.Namespace, scenario: Scenario, engine: dict[str, str]) -> int:
    from redline.fake.process import Options, run

    dialect = options.dialect or scenario.dialects[0]
    if dialect not in scenario.dialects:
        raise DataError(f"{options.scenario} plays {', '.join(scenario.dialects)}, not {dialect}.")
    return run(
        Options(
            scenario=replace(scenario, model=_named(scenario.model, options.model or engine.get("model"), engine)),
            dialect=dialect,
            host=options.host or engine.get("host") or "127.0.0.1",
            port=options.port if options.port is not None else _port(engine.get("port", "0")),
            seed=options.seed,
            truth=options.truth,
            ready_fd=options.ready_fd,
        )
    )


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise DataError(f"--port {text}: a port is a number from 0 to 65535.")
    return int(text)


def _named(model: Model, name: str | None, engine: dict[str, str]) -> Model:
    """Return the model under the name and with the context it was asked to have."""
    context = engine.get("context", "")
    changed = replace(model, context=int(context)) if context.isdigit() else model
    return replace(changed, id=name) if name else changed


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], "--", arguments[at + 1 :]


def _engine_values(arguments: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for at, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag in _ENGINE_FLAGS:
            following = arguments[at + 1] if at + 1 < len(arguments) else ""
            values[_ENGINE_FLAGS[flag]] = value if equals else following
    return values

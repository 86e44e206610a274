"""What a scenario can say: which engine, how fast, and which one thing goes wrong. Knows no socket and no process.

Every field has a default that behaves; a scenario file names only what differs, so the file is the description of
the fault. `--set speed.step_s=0.01` changes a number without a new file. Tokens are those of `tokens.py`, times are
seconds, sizes bytes.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from redline.fake.typed_yaml import DataError, load_typed, parse_typed

SCENARIOS_DIR: Final = Path(__file__).parent / "scenarios"
Dialect = Literal["vllm", "llamacpp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is served and what it can do."""

    id: str = "redline-fake"
    listed_id: str | None = None  # the id it really goes by, when that is not the one asked for
    context: int = 32768
    real_context: int | None = None  # prompts beyond this are refused, whatever `context` says
    slots: int = 4
    block_tokens: int = 16
    pool_tokens: int | None = None  # of the KV cache; by default every slot can hold a full context
    tools: bool = True
    tool_history: bool = True  # whether the template takes a conversation in which a tool has answered
    vision: bool = True
    thinking: Literal["none", "switch", "always"] = "switch"
    thinks_unasked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The timing model. A decode step yields one token, and those of the drafter that were accepted."""

    overhead_s: float = 0.002
    prefill_tok_s: float = 40_000.0
    step_s: float = 0.003
    spread: float = 0.05  # share by which a step varies, evenly to both sides
    batch_cost: float = 0.1  # share by which each further running request lengthens a step
    slow_above_tokens: int | None = None  # context depth from which a step takes `slow_factor` times as long
    slow_factor: float = 1.0
    first_request_s: float = 0.0  # what the first request waits for kernels that are compiled when first used
    age_factor: float = 0.0  # share by which each answered request lengthens the steps of later ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """How tokens are drafted. `acceptance` is the chance of each position, given that the one before was accepted."""

    method: Literal["mtp", "dflash", "ngram"] = "mtp"
    depth: int = 3
    acceptance: float = 0.7
    mode: Literal["steady", "dead", "idle", "collapse", "corrupt"] = "steady"  # corrupt: accepted tokens are wrong
    collapse_after_tokens: int = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class BootFault:
    """Where a boot goes wrong: the phase it stops in, the words it stops with (a key of `data/messages.yaml`)."""

    phase: str
    kind: Literal["exit", "hang"] = "exit"
    message: str = ""
    exit_code: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    """From start to the first answer. `line_s` passes before each line of the log."""

    line_s: float = 0.001
    slow_phase: str | None = None
    slow_s: float = 5.0
    fault: BootFault | None = None
    restarts: bool = False  # as under a restart policy: whenever it ends, it is started again
    stats_s: float = 10.0  # how often vLLM sums up what it does, while it does something
    stranger_s: float | None = None  # another program takes the port first, and keeps it that long
    omits: str = ""  # lines that contain this are not printed


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model says. `empty_every` n: every n-th answer is empty in the given way."""

    text: Literal["normal", "repeats"] = "normal"
    tool_calls: Literal["normal", "text", "lost_after_reasoning", "unasked"] = "normal"  # unasked: none is ignored
    tool_calls_lost_every: int = 1  # of lost_after_reasoning: every n-th request
    json: Literal["normal", "prose"] = "normal"
    images: Literal["normal", "unseen"] = "normal"
    empty: Literal["no", "reasoning_budget", "no_tokens", "closed", "masked"] = "no"
    empty_every: int = 1
    stops_after_tokens: int | None = None  # the answer ends there, whatever was asked
    recall_tokens: int | None = None  # what stands further than this from the end of a prompt is not found again


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How an answer travels."""

    reasoning_field: Literal["dialect", "reasoning", "reasoning_content", "inline"] = "dialect"
    stream_interval: int = 1  # tokens that are kept back until a chunk is sent
    buffered: bool = False  # something in between hands the stream on in one piece
    cut_after_chunks: int | None = None
    endless: bool = False
    hang: Literal["no", "before_headers", "mid_stream"] = "no"
    usage: Literal["normal", "missing", "zero"] = "normal"
    cached_tokens: Literal["reported", "unreported"] = "reported"
    body: Literal["normal", "error_in_200", "html"] = "normal"
    messages: Literal["normal", "as_chat"] = "normal"  # as_chat: /v1/messages answers in the form of another API


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """What happens to a prompt that is longer than `above_tokens` and was promised to fit."""

    above_tokens: int
    outcome: Literal["status_500", "dies"] = "status_500"
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What changes as the server ages, and how it ends."""

    leak_bytes_per_request: int = 0
    counters_reset_every: int | None = None  # requests after which every counter starts at nought
    dies_after_requests: int | None = None
    cache: Literal["normal", "everything", "off"] = "normal"
    ignores_sigterm: bool = False
    log_noise: Literal["none", "invalid_utf8", "huge_lines"] = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scripted engine. `fault` names the class of failure it plays, `expect` what an observer should say."""

    title: str
    about: str
    kind: Literal["healthy", "start", "stop", "traffic", "transport"]
    fault: str
    expect: str
    dialects: tuple[Dialect, ...] = ("vllm", "llamacpp")
    model: Model = field(default_factory=Model)
    speed: Speed = field(default_factory=Speed)
    drafter: Drafter | None = None
    boot: Boot = field(default_factory=Boot)
    answer: Answer = field(default_factory=Answer)
    wire: Wire = field(default_factory=Wire)
    depth: Depth | None = None
    life: Life = field(default_factory=Life)
    sources: tuple[str, ...] = ()


def scenario_names() -> list[str]:
    """Return the names of the shipped scenarios in order."""
    return sorted(path.stem for path in SCENARIOS_DIR.glob("*.yaml"))


def load_scenario(name: str) -> Scenario:
    """Return a shipped scenario by name, or any by the path of its file.

    Raises:
        DataError: there is none of that name, or its file is wrong; names near ones.
    """
    if not name:
        raise DataError("Which scenario? `redline fake-engine --list` lists them.")
    path = Path(name)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise DataError(f"there is no file {name}")
        return load_typed(Scenario, path)
    if name not in scenario_names():
        import difflib

        near = difflib.get_close_matches(name, scenario_names(), n=3, cutoff=0.4)
        hint = f" Nearest: {', '.join(near)}." if near else ""
        raise DataError(f"there is no scenario {name!r}.{hint}")
    return load_typed(Scenario, SCENARIOS_DIR / f"{name}.yaml")


def with_settings(scenario: Scenario, settings: Sequence[str]) -> Scenario:
    """Return the scenario with values changed: each setting is `path.to.field=value`, the value in YAML.

    Raises:
        DataError: no such field, or a value of another type.
    """
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals:
            raise DataError(f"--set {setting}: expected field=value, for example speed.step_s=0.01")
        scenario = _replaced(scenario, path.split("."), value, setting)
    return scenario


def _replaced(record: Any, path: list[str], value: str, setting: str) -> Any:
    names = [item.name for item in dataclasses.fields(record)]
    if path[0] not in names:
        raise DataError(f"--set {setting}: there is no field {path[0]!r}; fields: {', '.join(names)}")
    if len(path) == 1:
        # One-line YAML of the record's own type, so that a value here means what it means in a file.
        required = {item.name: getattr(record, item.name) for item in dataclasses.fields(record) if _required(item)}
        lines = [f"{name}: {_yaml(old)}" for name, old in required.items() if name != path[0]]
        parsed = parse_typed(type(record), "\n".join([f"{path[0]}: {value}", *lines]), f"--set {setting}")
        return dataclasses.replace(record, **{path[0]: getattr(parsed, path[0])})
    inner = getattr(record, path[0])
    if not dataclasses.is_dataclass(inner):
        raise DataError(f"--set {setting}: this scenario has no {path[0]}")
    return dataclasses.replace(record, **{path[0]: _replaced(inner, path[1:], value, setting)})


def _required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def _yaml(value: Any) -> str:
    import json

    return json.dumps(value)

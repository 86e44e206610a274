"""Settings from the command line, the environment, `.env` of the working directory and the config file, in that order.

Knows where each value came from and how a name is spelt in each place; does not know what a tier is. A `.env` file
is read literally: nothing in it is ever evaluated or expanded.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Generic, TypeVar

from redline.errors import AccessError, UsageError

T = TypeVar("T")
U = TypeVar("U")

TRUE_WORDS: Final = frozenset({"1", "true", "yes", "on"})
FALSE_WORDS: Final = frozenset({"0", "false", "no", "off"})


@dataclass(frozen=True, slots=True)
class Sourced(Generic[T]):
    """A value and where it came from: `rule:<id>`, `env:SPEC_N`, `cli:--ctx`, `pin:<evidence id>`, `model:<id>`."""

    value: T
    origin: str

    def map(self, function: Callable[[T], U]) -> "Sourced[U]":
        """Return the converted value with the same origin."""
        return Sourced(function(self.value), self.origin)


@dataclass(frozen=True, slots=True)
class Knob:
    """A name that redline reads from its surroundings, with the sentence that documents it."""

    name: str
    doc: str
    secret: bool = False


SETTINGS_KNOBS: Final = (
    Knob("MODEL_DIR", "Folder of models, one folder an artifact. Default: $XDG_DATA_HOME/redline/models."),
    Knob("BIND_HOST", "Address a server listens on. Default: 127.0.0.1, reachable from this machine only."),
    Knob("PORT", "Port of the server. Default: the tier's own port."),
    Knob("HF_ENDPOINT", "Address of a mirror of the Hugging Face hub. Default: the hub itself."),
    Knob("HF_HUB_OFFLINE", "1: fetch nothing from the hub, use what is in MODEL_DIR."),
    Knob("READY_TIMEOUT", "Seconds after which a server that is not ready has failed. Default: the engine's own."),
    Knob("CHECK_PATIENCE", "Factor on the time limits of every check, 0.05 to 100. Default: 1."),
    Knob("HF_TOKEN", "Hugging Face token for gated repositories; never printed.", secret=True),
    Knob("REDLINE_API_KEY", "Key that clients must send to the server, and that redline sends.", secret=True),
)


@dataclass(frozen=True, slots=True)
class Layers:
    """One lookup order for every name. Keys of `cli` are knob names; their origin is the flag that set them."""

    cli: Mapping[str, Sourced[str]] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    dotenv: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)

    def get(self, *names: str) -> Sourced[str] | None:
        """Return the first layer's value of a name; in one layer an earlier name wins over a later spelling of it.

        An empty value counts as absent in every layer but the first.
        """
        for name in names:
            if name in self.cli:
                return self.cli[name]
        for label, layer in (("env", self.environ), (".env", self.dotenv), ("config", self.config)):
            for name in names:
                value = layer.get(name if label != "config" else name.lower())
                if value:
                    return Sourced(value, f"{label}:{name}")
        return None


def parse_bool(raw: Sourced[str], name: str) -> Sourced[bool]:
    """Read 1/true/yes/on or 0/false/no/off.

    Raises:
        UsageError: the word is none of these.
    """
    word = raw.value.strip().lower()
    if word not in TRUE_WORDS | FALSE_WORDS:
        raise _bad_value(raw, name, "yes or no")
    return Sourced(word in TRUE_WORDS, raw.origin)


def parse_int(raw: Sourced[str], name: str, *, minimum: int, maximum: int) -> Sourced[int]:
    """Read a whole number within bounds; digits may be grouped with `_` or `,`.

    Raises:
        UsageError: not a whole number, or out of bounds.
    """
    try:
        value = int(raw.value.replace(",", "").replace("_", "").strip())
    except ValueError:
        raise _bad_value(raw, name, "a whole number") from None
    if not minimum <= value <= maximum:
        raise _bad_value(raw, name, f"between {minimum} and {maximum}")
    return Sourced(value, raw.origin)


def parse_float(raw: Sourced[str], name: str, *, minimum: float, maximum: float) -> Sourced[float]:
    """Read a number within bounds.

    Raises:
        UsageError: not a number, or out of bounds.
    """
    try:
        value = float(raw.value.strip())
    except ValueError:
        raise _bad_value(raw, name, "a number") from None
    if not minimum <= value <= maximum:
        raise _bad_value(raw, name, f"between {minimum:g} and {maximum:g}")
    return Sourced(value, raw.origin)


def _bad_value(raw: Sourced[str], name: str, wanted: str) -> UsageError:
    return UsageError(
        f"{name}={raw.value!r} ({raw.origin}) is not usable: it must be {wanted}.",
        next_step=f"Correct {name}, or remove it to use the default.",
    )


def parse_dotenv(text: str, path: str) -> dict[str, str]:
    """Read `NAME=value` lines literally: no expansion, no escapes; quotes around a whole value are dropped.

    CRLF, blank lines, `#` lines and a leading `export ` are accepted.

    Raises:
        UsageError: a line has no `=` or no usable name; the message gives file and line.
    """
    values: dict[str, str] = {}
    for number, raw_line in enumerate(text.splitlines(), start=1):
        line = raw_line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise UsageError(
                f"{path}:{number}: expected NAME=value, found {line[:60]!r}.",
                next_step="Correct or remove that line; redline reads the file literally and never runs it.",
            )
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        values[name] = value
    return values


def parse_config(text: str, path: str) -> dict[str, str]:
    """Read the TOML config file into strings keyed by lower-case knob name.

    Raises:
        UsageError: not TOML, or a value that is a table or a list.
    """
    try:
        loaded = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.", next_step="Correct or remove the file.") from None
    values: dict[str, str] = {}
    for key, value in loaded.items():
        if isinstance(value, dict | list):
            raise UsageError(f"{path}: {key} must be one value.", next_step=f"Write {key} = ... as text or a number.")
        values[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return values


@dataclass(frozen=True, slots=True)
class Settings:
    """Where things live on this user's disk, and the layers every other value is looked up in."""

    config_dir: Path
    state_dir: Path
    models_dir: Path
    layers: Layers
    dotenv_file: Path | None = None

    @property
    def servers_dir(self) -> Path:
        """One folder a server: its plan, state, events and log."""
        return self.state_dir / "servers"

    @property
    def runs_dir(self) -> Path:
        """One folder a run: manifest and events."""
        return self.state_dir / "runs"

    @property
    def config_file(self) -> Path:
        """Kept at mode 0600 when it holds a secret."""
        return self.config_dir / "config.toml"

    @property
    def engines_dir(self) -> Path:
        """One TOML file an engine home, and the environments that redline made, each in a folder of its home's name."""
        return _data_dir(self.layers.environ) / "engines"

    @property
    def user_catalog_dir(self) -> Path:
        """YAML files here extend or override the catalogue."""
        return self.config_dir / "catalog"

    def secret(self, name: str) -> str | None:
        """Return a secret's text; it must go no further than a request header or an environment of a child."""
        found = self.layers.get(name)
        return found.value if found else None

    def secret_file(self, name: str) -> Path | None:
        """Return the file that a secret was read from, or None where it came from elsewhere or there is none."""
        found = self.layers.get(name)
        layer = found.origin.partition(":")[0] if found else ""
        return {".env": self.dotenv_file, "config": self.config_file}.get(layer)


def load_settings(
    cli: Mapping[str, Sourced[str]] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    working_dir: Path | None = None,
) -> Settings:
    """Read all layers once. Nothing is created on disk.

    Raises:
        UsageError: a malformed `.env` or config file.
        AccessError: one of them cannot be read.
    """
    env = dict(os.environ if environ is None else environ)
    here = working_dir or Path.cwd()
    home = Path(env.get("HOME") or Path.home())
    config_dir = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "redline"
    state_dir = Path(env.get("XDG_STATE_HOME") or home / ".local" / "state") / "redline"
    dotenv_path, config_path = here / ".env", config_dir / "config.toml"
    layers = Layers(
        cli=dict(cli or {}),
        environ=env,
        dotenv=parse_dotenv(_read_optional(dotenv_path), str(dotenv_path)),
        config=parse_config(_read_optional(config_path), str(config_path)),
    )
    model_dir = layers.get("MODEL_DIR")
    models_dir = Path(model_dir.value).expanduser() if model_dir else _data_dir(env) / "models"
    return Settings(
        config_dir=config_dir, state_dir=state_dir, models_dir=models_dir, layers=layers, dotenv_file=dotenv_path
    )


def _data_dir(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or Path.home())
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "redline"


def _read_optional(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.", next_step="Save the file as UTF-8 or remove it.") from None
    except OSError as error:
        raise AccessError(
            f"{path} cannot be read: {error.strerror}.",
            next_step="Give yourself read permission, or remove the file.",
        ) from None

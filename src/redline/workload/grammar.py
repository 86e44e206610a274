"""A small grammar of text with slots, read from a data file and expanded by a seeded generator. Knows no genre.

The slots are described at the head of `data/corpus.yaml`. A slot whose name starts with a capital letter gives its
text a capital letter.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

_DATA: Final = Path(__file__).parent / "data"
_SLOT: Final = re.compile(r"\{\{|\}\}|\{(?:(?P<bind>[a-z]+)=)?(?P<what>=?[\w#-]+)\}")
_AN: Final = re.compile(r"\b([Aa]) (?=[aeiou])")
_RANGE: Final = re.compile(r"(\d+)-(\d+)")

Form = str | Sequence[str]
Part = str | tuple[str | None, str]  # literal text, or a slot: the name it is remembered by and what it holds


@dataclass(frozen=True, slots=True)
class Grammar:
    """Lists of forms by name; a form is a text, or a row of texts that are expanded with one memory."""

    forms: Mapping[str, Sequence[Form]]

    def line(self, name: str, index: int, generator: random.Random) -> str:
        """Return the form at `index` of a list with every slot filled.

        Raises:
            KeyError: no such list, or nothing remembered under a name.
        """
        form = self.forms[name][index]
        assert isinstance(form, str), f"{name} is a list of rows"
        return _AN.sub(r"\1n ", self._fill(form, generator, {}))

    def row(self, name: str, index: int, generator: random.Random) -> tuple[str, ...]:
        """Return the row form at `index` of a list, counted round and round."""
        form = self.forms[name][index % len(self.forms[name])]
        memory: dict[str, str] = {}
        return tuple(self._fill(cell, generator, memory) for cell in form)

    def _fill(self, form: str, generator: random.Random, memory: dict[str, str]) -> str:
        pieces: list[str] = []
        for part in _parts(form):
            if isinstance(part, str):
                pieces.append(part)
                continue
            name, what = part
            text = memory[what[1:]] if what[0] == "=" else self._slot(what, generator, memory)
            if name is not None:
                memory[name] = text
            pieces.append(text)
        return "".join(pieces)

    def _slot(self, what: str, generator: random.Random, memory: dict[str, str]) -> str:
        if what[0] == "#":
            return f"{generator.getrandbits(4 * int(what[1:])):0{int(what[1:])}x}"
        if what[0].isdigit():
            low, high = what.split("-")
            return str(generator.randint(int(low), int(high))).zfill(len(low) if low[0] == "0" else 0)
        forms = self.forms[what.lower()]
        form = forms[int(generator.random() * len(forms))]
        assert isinstance(form, str), f"{what} is a list of rows"
        text = self._fill(form, generator, memory) if "{" in form else form
        return text[0].upper() + text[1:] if what[0].isupper() else text


@lru_cache(maxsize=4096)
def _parts(form: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    end = 0
    for match in _SLOT.finditer(form):
        parts.append(form[end : match.start()])
        parts.append(match[0][0] if match["what"] is None else (match["bind"], match["what"]))
        end = match.end()
    return (*(part for part in parts if part), form[end:])


@lru_cache(maxsize=4)
def load_grammar(name: str) -> Grammar:
    """Return the grammar of `data/<name>.yaml`; every slot in it is known to have a list.

    Raises:
        ValueError: a slot names a list that the file does not have, or a range that is none.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    forms: dict[str, list[Form]] = yaml.load((_DATA / f"{name}.yaml").read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- safe
    for listed, entries in forms.items():
        for entry in entries:
            for text in [entry] if isinstance(entry, str) else entry:
                _require_known(listed, text, forms)
    return Grammar(forms)


def _require_known(listed: str, text: str, forms: Mapping[str, Sequence[Form]]) -> None:
    for part in _parts(text):
        if isinstance(part, str) or part[1][0] in "=#":
            continue
        if part[1][0].isdigit():
            found = _RANGE.fullmatch(part[1])
            if found is None or int(found[1]) > int(found[2]):
                raise ValueError(f"{{{part[1]}}} in {listed} is no range")
        elif part[1].lower() not in forms:
            raise ValueError(f"{{{part[1]}}} in {listed} names no list")

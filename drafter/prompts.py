"""Own-written prompt templates for the data that the target makes itself: prose, code, chat, extraction, edits.

Seeded; none of them is a prompt that redline measures with (`redline.workload`), which is what is held out.
"""

import random
from pathlib import Path
from typing import Any, Final

import yaml

_WORDS: Final[dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8"))
_PERSON: Final[list[str]] = _WORDS["person"]
_PLACE: Final[list[str]] = _WORDS["place"]
_EVENT: Final[list[str]] = _WORDS["event"]
_SUBJECT: Final[list[str]] = _WORDS["subject"]
_LANGUAGE: Final[list[str]] = _WORDS["language"]
_TASK: Final[list[str]] = _WORDS["task"]
_STYLE: Final[list[str]] = _WORDS["style"]
_ASK: Final[list[str]] = _WORDS["ask"]
_NAME: Final[list[str]] = _WORDS["name"]
_SURNAME: Final[list[str]] = _WORDS["surname"]
_TOWN: Final[list[str]] = _WORDS["town"]
_GOODS: Final[list[str]] = _WORDS["goods"]
_NOUN: Final[list[str]] = _WORDS["noun"]
_VERB: Final[list[str]] = _WORDS["verb"]
_ADJECTIVE: Final[list[str]] = _WORDS["adjective"]
_REST: Final[list[str]] = _WORDS["rest"]
_KEY: Final[list[str]] = _WORDS["key"]
_FILL: Final[dict[str, list[str]]] = {**_WORDS["fill"], "topic": _SUBJECT}


def _sentence(rng: random.Random) -> str:
    c = rng.choice
    return c(
        (
            f"The {c(_ADJECTIVE)} {c(_NOUN)} {c(_VERB)} the {c(_NOUN)} {c(_REST)}.",
            f"{c(_NAME)} {c(_VERB)} a {c(_ADJECTIVE)} {c(_NOUN)} {c(_REST)}.",
            f"In {c(_TOWN)} the {c(_NOUN)} is {c(_ADJECTIVE)} and the {c(_NOUN)} is {c(_ADJECTIVE)}.",
            f"{c(_NAME)} {c(_SURNAME)} bought {rng.randint(2, 90)} {c(_GOODS)} in {c(_TOWN)}.",
            (
                f"There were {rng.randint(2, 60)} {c(_GOODS)} on the {c(_NOUN)}, and the {c(_NOUN)} {c(_VERB)} them "
                f"{c(_REST)}."
            ),
        )
    )


def _text(rng: random.Random) -> str:
    form = rng.randrange(5)
    if form == 0:
        return " ".join(_sentence(rng) for _ in range(rng.randint(3, 7)))
    if form == 1:
        return "\n".join(f"{i + 1}. {_sentence(rng)}" for i in range(rng.randint(3, 6)))
    if form == 2:
        keys = rng.sample(_KEY, 6)
        values = [rng.choice((str(rng.randint(1, 9999)), f'"{rng.choice(_NOUN)}"', "true", "false")) for _ in keys]
        return f"[{rng.choice(_NOUN)}]\n" + "\n".join(f"{k} = {v}" for k, v in zip(keys, values, strict=True))
    if form == 3:
        return "\n".join(
            f"- {rng.choice(_GOODS)}: {rng.randint(1, 99)} ({rng.choice(_ADJECTIVE)})" for _ in range(rng.randint(4, 8))
        )
    return (
        f"Dear {rng.choice(_NAME)},\n\n"
        + " ".join(_sentence(rng) for _ in range(3))
        + f"\n\nYours, {rng.choice(_NAME)}"
    )


def _prose(rng: random.Random) -> str:
    c = rng.choice
    return c(
        (
            (
                f"Write a {c(('short ', '', 'funny ', 'sad ', 'long '))}story about {c(_PERSON)} who {c(_EVENT)} "
                f"in {c(_PLACE)}."
            ),
            f"Write {c(('an essay', 'a paragraph', 'an article', 'a blog post', 'a speech'))} about {c(_SUBJECT)}.",
            f"Describe {c(_PLACE)} through the eyes of {c(_PERSON)}.",
            f"Explain {c(('how', 'why', 'when'))} {c(_SUBJECT)} changed the world.",
            f"Write {c(('a letter', 'a diary entry', 'a monologue'))} by {c(_PERSON)} from {c(_PLACE)}.",
            f"Tell me about {c(_SUBJECT)} and {c(_SUBJECT)}.",
            f"Describe in detail how {c(_PERSON)} spends a day in {c(_PLACE)}.",
        )
    )


def _code(rng: random.Random) -> str:
    c = rng.choice
    language, task, style = c(_LANGUAGE), c(_TASK), c(_STYLE)
    return c(
        (
            f"Write a {language} function that {task}.{style}",
            f"Write a {language} program that {task}.{style}",
            f"Create a {language} script which {task}.{style}",
            f"How do I write a {language} function that {task}?",
            f"In {language}, write code that {task} and then code that {c(_TASK)}.{style}",
            f"Write a class in {language} that {task}.{style}",
        )
    )


def _chat(rng: random.Random) -> str:
    text = rng.choice(_ASK)
    for name, values in _FILL.items():
        text = text.replace("{" + name + "}", rng.choice(values))
    return text


def _structured(rng: random.Random) -> str:
    c = rng.choice
    rows = [f"{c(_NAME)} {c(_SURNAME)}, {rng.randint(18, 80)}, {c(_TOWN)}" for _ in range(rng.randint(2, 6))]
    lines = "\n".join(rows)
    bought = " ".join(f"{c(_NAME)} bought {rng.randint(1, 50)} {c(_GOODS)}." for _ in range(rng.randint(2, 6)))
    return c(
        (
            f'Convert these lines to a JSON list of objects with the keys "name", "age" and "town".\n\n{lines}',
            f"Write this table as CSV with a header line:\n\n{lines}",
            f"Extract who bought what from this text as JSON.\n\n{bought}",
            f"List all numbers in this text as a JSON array.\n\n{bought}",
            f"Write a JSON object that describes {c(_PERSON)}: name, age, town, three hobbies.",
            f"Make a Markdown table of these people:\n\n{lines}",
            (
                f"Write a YAML file for a service called {c(_NOUN)} with port {rng.randint(1000, 9999)}, "
                f"{rng.randint(1, 9)} replicas and logging."
            ),
            f"Write this as XML:\n\n{lines}",
            f"Write a JSON array of {rng.randint(3, 8)} {c(_GOODS)} with id, price and colour.",
        )
    )


def _edit(rng: random.Random) -> str:
    ask = rng.choice(
        (
            "Repeat the following text:",
            "Repeat the following text:",
            "Copy this text exactly:",
            "Repeat this word for word.",
            "Correct the spelling of this text and print it again:",
            "Print the following lines again:",
            "Rewrite this text in the present tense:",
            f"Replace the word {rng.choice(_NOUN)} by {rng.choice(_NOUN)} in this text:",
        )
    )
    return f"{ask}\n\n{_text(rng)}"


CLASSES: Final = {"prose": _prose, "code": _code, "chat": _chat, "structured": _structured, "edit": _edit}
_SHARES: Final = {"prose": 0.32, "code": 0.33, "chat": 0.17, "structured": 0.09, "edit": 0.09}


def training_prompts(seed: int, count: int) -> list[str]:
    """Return prompts drawn by seed."""
    rng = random.Random(f"drafter/{seed}")
    kinds = rng.choices(list(_SHARES), list(_SHARES.values()), k=count)
    return [CLASSES[kind](rng) for kind in kinds]

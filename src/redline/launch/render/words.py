"""Words of commands: flags taken out and put in. Knows no engine."""

from collections.abc import Collection, Sequence


def drop_flags(argv: Sequence[str], names: Collection[str]) -> tuple[str, ...]:
    """Return a command without flags of one value, in either spelling, `--port 1` or `--port=1`."""
    kept: list[str] = []
    skip = False
    for word in argv:
        if skip and not word.startswith("-"):
            skip = False
            continue
        skip = word in names
        if not skip and word.partition("=")[0] not in names:
            kept.append(word)
    return tuple(kept)


def set_flag(argv: Sequence[str], name: str, value: str) -> tuple[str, ...]:
    """Return a command with a flag's value replaced where it stands, or added at the end."""
    words = list(argv)
    if name in words:
        words[words.index(name) + 1] = value
        return tuple(words)
    return (*words, name, value)

"""What secrets and personal marks look like in free text, as data for the redactor.

Each rule names the group `x` that is taken out; what stands around it stays. Patterns have bounded repeats only, so
that a hostile log costs no more time than a long one.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

_WORDS: Final = Path(__file__).parent / "data" / "ordinary_words.txt"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of mark. `numbered` kinds keep apart what differs: `<ip-1>`, `<ip-2>`; `accept` has the last word."""

    kind: str
    pattern: re.Pattern[str]
    numbered: bool = False
    accept: Callable[[re.Match[str]], bool] = lambda _: True


@lru_cache(maxsize=1)
def _words() -> frozenset[str]:
    lines = _WORDS.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def is_ordinary(name: str) -> bool:
    """Whether a name is also a common word, a common word with a number, or too short to tell: `gpu`, `node1`, `b`."""
    found = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)?", name.lower(), re.DOTALL)
    stem = found[1] if found else name.lower()
    return len(stem) <= 2 or stem in _words()


_VALUE: Final = (
    r"(?:\"(?P<q1>[^\"\n]{1,512})\"|'(?P<q2>[^'\n]{1,512})'|\[(?P<q3>[^\]\n]{1,2048})\]"
    r"|(?P<x>[^\s\"',;&<>\[\](){}]{1,4096}))"
)
_NO_SECRET: Final = frozenset({"none", "null", "true", "false", "yes", "no", "unset", "***", "...", "redacted", "str"})
_KEYS: Final = (
    r"(?:api[_-]?key|apikey|secret(?:[_-]?(?:access[_-]?)?key)?|passw(?:or)?d|passphrase|private[_-]?key"
    r"|access[_-]?key(?:[_-]?id)?|credentials?"
    r"|(?:hf|hub|access|auth|refresh|bearer|session|github|gh|gitlab|wandb|hugging[_-]?face|deploy|bot)[_-]?token)"
)

# `--spec-key 4` is no secret; a key that opens something is called by what it opens.
HIDING_FLAG: Final = r"--?(?:[a-z]{1,20}[-_]){0,3}(?:token|(?:api|access|secret|private|auth)[-_]?key|password|secret)"


def _is_secret_value(match: re.Match[str]) -> bool:
    """After `key=` anything but none, true and the like; after `key: ` in prose an ordinary word may follow."""
    quoted = next((match[name] for name in ("q1", "q2", "q3") if match[name] is not None), None)
    value = quoted if quoted is not None else match["x"]
    if value.strip("'\"").lower() in _NO_SECRET:
        return False
    prose = quoted is None and match["sep"].strip() in (":", "") and match["sep"][-1:].isspace()
    return not (prose and is_ordinary(value.rstrip(".,!?")) and not any(map(str.isdigit, value)))


def _mixed(match: re.Match[str]) -> bool:
    """Long, or of letters and digits: what a random string is and `hf_transfer` is not."""
    value = match["x"]
    return len(value) >= 24 or (any(map(str.isdigit, value)) and any(map(str.isalpha, value)))


def _is_serial(match: re.Match[str]) -> bool:
    return any(map(str.isdigit, match["x"]))


def _is_foreign_ipv4(match: re.Match[str]) -> bool:
    """Not loopback, mask or wildcard; and no version number such as `cudnn 9.10.2.21`, unless it is a private one."""
    try:
        address = ipaddress.IPv4Address(match["x"])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or match["x"].startswith("255."):
        return False
    return match["version"] is None or (address.is_private and match["version"] != "==")


def _is_foreign_ipv6(match: re.Match[str]) -> bool:
    """Global, local or multicast; `::1` and C++ names such as `c10::add` are none of these."""
    try:
        address = ipaddress.IPv6Address(match["x"])
    except ValueError:
        return False
    ranges = ("2000::/3", "fc00::/7", "fe80::/10", "ff00::/8")
    return any(address in ipaddress.IPv6Network(network) for network in ranges)


def _compile(pattern: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(pattern, flags)


# In this order: what is most telling first, so that a token is not half taken for a name.
RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "private-key",
        re.compile(
            r"(?P<x>-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z))", re.DOTALL
        ),
    ),
    Rule("login", _compile(r"(?<=://)(?P<x>[^\s/@'\"<>]{1,512})(?=@)")),
    Rule(
        "secret",
        _compile(
            r"\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:bearer|basic|token)\s{1,3})?"
            r"(?!(?:bearer|basic|token)\s)(?P<x>[^\s\"',;<>]{4,4096})"
        ),
    ),
    Rule("secret", _compile(r"\bbearer\s{1,3}(?P<x>[A-Za-z0-9._~+/=-]{6,4096})"), accept=_mixed),
    Rule(
        "secret",
        _compile(_KEYS + r"[\"']?(?P<sep>\s{0,3}(?:=>|[:=])\s{0,3})" + _VALUE),
        accept=_is_secret_value,
    ),
    Rule(
        "secret",
        _compile(HIDING_FLAG + r"(?P<sep>(?:\s{1,3}|=))" + _VALUE),
        accept=_is_secret_value,
    ),
    Rule("secret", _compile(r"token[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<x>[A-Za-z0-9._~+/=-]{12,4096})"), accept=_mixed),
    Rule(
        "secret",
        _compile(
            r"[?&](?:key|sig|signature|token|auth|policy|key-pair-id|x-amz-[a-z-]{1,30})=(?P<x>[^&\s\"'<>]{4,4096})"
        ),
    ),
    Rule("secret", _compile(r"(?<![A-Za-z0-9])hf_(?P<x>[A-Za-z0-9]{8,512})(?![A-Za-z0-9])", re.NOFLAG), accept=_mixed),
    Rule("secret", _compile(r"(?<![A-Za-z0-9])sk-(?P<x>[A-Za-z0-9_-]{8,512})", re.NOFLAG), accept=_mixed),
    Rule(
        "secret",
        _compile(
            r"(?<![A-Za-z0-9])(?P<x>(?:gh[oprsu]_[A-Za-z0-9]{16,255}|github_pat_[A-Za-z0-9_]{16,255}"
            r"|glpat-[A-Za-z0-9_-]{16,64}|nvapi-[A-Za-z0-9_-]{16,128}|gsk_[A-Za-z0-9]{16,128}"
            r"|xox[abeprs]-[A-Za-z0-9-]{10,255}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,40}"
            r"|eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{4,8192}\.[A-Za-z0-9_-]{4,4096}))(?![A-Za-z0-9])",
            re.NOFLAG,
        ),
    ),
    Rule(
        "email",
        _compile(
            r"(?<![\w.+-])(?!git@)(?P<x>[A-Z0-9][\w.+-]{0,63}@[A-Z0-9](?:[A-Z0-9-]{0,62}\.){1,8}[A-Z]{2,24})(?![\w@])"
        ),
        numbered=True,
    ),
    Rule(
        "uuid",
        _compile(r"(?<![A-Z0-9])(?P<x>(?:GPU-|MIG-(?:GPU-)?)?[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})(?![A-Z0-9])"),
        numbered=True,
    ),
    Rule(
        "serial",
        _compile(
            r"(?:\bserial(?:[ _-]?(?:number|num|no\.?|#))?|\bS/N|\bservice[ _-]tag|\basset[ _-]tag|\bmachine[ _-]?id)"
            r"[\"']?\s{0,40}[:=]\s{0,10}[\"']?(?P<x>[A-Z0-9][A-Z0-9./_-]{3,63})"
        ),
        numbered=True,
        accept=_is_serial,
    ),
    Rule(
        "mac",
        _compile(r"(?<![0-9A-Z:-])(?P<x>[0-9A-F]{2}(?:(?::[0-9A-F]{2}){5,7}|(?:-[0-9A-F]{2}){5,7}))(?![0-9A-Z:-])"),
        numbered=True,
    ),
    Rule(
        "ip",
        _compile(r"(?<![\w:.])(?P<x>[0-9A-F:]{2,39})(?![\w:])"),
        numbered=True,
        accept=_is_foreign_ipv6,
    ),
    Rule(
        "ip",
        _compile(
            r"(?P<version>==|\bversion[\"']?[ :=]{1,3}|\b(?:cudnn|nccl|cuda|cublas|driver)[ :=]{1,3}|(?<=\d)-)?"
            r"(?<![\w.])(?P<x>\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d)"
        ),
        numbered=True,
        accept=_is_foreign_ipv4,
    ),
)

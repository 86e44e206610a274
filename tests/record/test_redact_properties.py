"""Redaction over generated texts: no secret survives, every ordinary fragment does, and twice is as good as once.

`REDLINE_REDACTION_EXAMPLES=10000 .venv/bin/pytest tests/record/test_redact_properties.py` is the long run.
"""

import os
import string

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from redline.record.identity import Identity, make_identity
from redline.record.redact import Redactor

EXAMPLES = int(os.environ.get("REDLINE_REDACTION_EXAMPLES", "500"))

USERS = ("b", "gpu", "capital", "noonghunna", "ana-maria", "zoë", "max", "user1", "x99")
HOSTS = ("gpu", "root", "bench", "attic-rig", "tower.lan", "rig01", "b", "node")
DISTINCT = ("noonghunna", "ana-maria", "zoë", "attic-rig", "rig01")

ORDINARY = (
    "bridge", "capital", "root-capped", "gpu 0", "GPU", "b = 3", "a 7b model", "benchmark", "the bench", "user",
    "max_tokens=512", "0000:01:00.0", "[10de:2204]", "127.0.0.1:8120", "[::1]", "19:56:01", "node 0", "0.92", "-",
    "gpu_memory_utilization=0.9", "c10::add", "hf_transfer", "eos_token: '<|im_end|>'", "100 %", "root", "84.1 tok/s",
    "nvidia-cudnn-cu12==9.10.2.21", "llamacpp/smollm2-135m-cpu-fast", "api_key=None", "serial execution", "x99_board",
)  # fmt: skip

alnum = st.text(string.ascii_letters + string.digits, min_size=20, max_size=40).filter(
    lambda text: any(map(str.isdigit, text)) and any(map(str.isalpha, text))
)
hexes = st.text("0123456789abcdef", min_size=32, max_size=32)
octet = st.integers(1, 254)


def _fragment(template: str, secret: str) -> tuple[str, tuple[str, ...]]:
    return template.replace("@@", secret), (secret,)


@st.composite
def secrets(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    """Return a fragment, and what of it must not survive."""
    kind = draw(st.sampled_from(["hf", "sk", "key", "flag", "bearer", "uuid", "ipv4", "ipv6", "mac", "mail", "serial"]))
    random = draw(alnum)
    digits = draw(hexes)
    match kind:
        case "hf":
            return _fragment("hf_@@", random)
        case "sk":
            return _fragment("sk-@@", random)
        case "key":
            template = draw(st.sampled_from(["HF_TOKEN=@@", 'api_key: "@@"', "OPENAI_API_KEY='@@'", "password=@@"]))
            return _fragment(template, random)
        case "flag":
            return _fragment("--api-key @@", random)
        case "bearer":
            return _fragment("Authorization: Bearer @@", random)
        case "uuid":
            parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
            return _fragment("GPU-@@", "-".join(parts))
        case "ipv4":
            return _fragment(
                draw(st.sampled_from(["@@", "http://@@:8000", "(@@)"])), f"10.{draw(octet)}.{draw(octet)}.7"
            )
        case "ipv6":
            return _fragment("[@@]:8000", f"2001:db8:{digits[:4]}::{digits[4:8]}")
        case "mac":
            return _fragment("ether @@", ":".join(digits[at : at + 2] for at in range(0, 12, 2)))
        case "mail":
            return _fragment("<@@>", f"q{random[:8]}@{random[8:14]}.example.org")
        case _:
            return _fragment("Serial Number : @@", f"{digits[:4]}9{digits[4:10]}")


@st.composite
def names(draw: st.DrawFn, identity: Identity) -> tuple[str, tuple[str, ...]]:
    """Return a fragment that names a user or a host, in a place where any word is a name."""
    user, host = draw(st.sampled_from(identity.users)), draw(st.sampled_from(identity.hosts))
    prompt = f"{user}@{host}:~$"
    text = draw(
        st.sampled_from(
            [
                f"/home/{user}/models",
                prompt,
                f"ls {identity.homes[0]}/x",
                f"USER={user}",
                f"hostname: {host}",
                f"Linux {host} 6.8.0",
                f"~{user}/bin",
            ]
        )
    )
    return text, (f" {user}@", f"@{host}:~") if text == prompt else (text,)


@st.composite
def documents(draw: st.DrawFn) -> tuple[Identity, str, tuple[str, ...], list[str]]:
    identity = make_identity(
        users=[draw(st.sampled_from(USERS)), "root"],
        hosts=[draw(st.sampled_from(HOSTS))],
        homes=[draw(st.sampled_from(["/home/b", "/data/people/q", "/root"]))],
    )
    identity = Identity(identity.users, identity.hosts or ("attic-rig",), identity.homes)
    pieces: list[str] = []
    taken: list[str] = []
    kept: list[str] = []
    for _ in range(draw(st.integers(1, 12))):
        if draw(st.booleans()):
            word = draw(st.sampled_from(ORDINARY))
            kept.append(word)
            pieces.append(word)
        else:
            text, parts = draw(st.one_of(secrets(), names(identity)))
            pieces.append(text)
            taken.extend(parts)
        pieces.append(draw(st.sampled_from([" ", "\n", ", ", " | ", "\t", "; "])))
    return identity, "".join(pieces), tuple(taken), kept


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_secrets_go_and_words_stay(document: tuple[Identity, str, tuple[str, ...], list[str]]) -> None:
    identity, text, taken, kept = document
    shown = Redactor(identity).text(text)
    for secret in taken:
        assert secret not in shown
    position = 0
    for word in kept:  # all of them, in their order
        position = shown.index(word, position) + len(word)
    assert Redactor(identity).text(shown) == shown


@settings(max_examples=max(100, EXAMPLES // 5), deadline=None)
@given(st.text(max_size=300), st.sampled_from(DISTINCT))
def test_a_distinct_name_never_stands_alone(text: str, name: str) -> None:
    identity = make_identity([name], [], [])
    shown = Redactor(identity).text(f"{text} {name} {text}")
    assert f" {name} " not in shown


@settings(max_examples=max(100, EXAMPLES // 5), deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_any_text_is_redacted_without_error_and_stably(text: str) -> None:
    redactor = Redactor(make_identity(["b"], ["gpu"], ["/home/b"]))
    once = redactor.text(text)
    assert redactor.text(once) == once

"""Which recorded fields may leave this machine as they are. Everything else is redacted, contained, or left out.

Numbers, truth values and the fields named here pass, each only in its own shape; every other text is free text and
passes the redactor. A kind of record that this version does not know is never shared.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from redline.record.plain import plain_line, plain_text
from redline.record.redact import Redactor

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,80}")
_SLUG: Final = re.compile(r"[a-z0-9]{1,40}/[a-z0-9.-]{1,120}")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[0-9.:+-]{0,12}Z?")
_ORIGIN: Final = re.compile(
    r"(?:rule|pin|model|sampler|engine):[A-Za-z0-9._/-]{1,80}|(?:env|cli|\.env|config):[-A-Za-z_ ]{1,40}"
)
_HASH: Final = re.compile(r"[0-9a-f]{12,64}|not published")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

# Field name -> the shape in which it passes. These come from the catalogue, from enums, or from redline itself.
PASSING_FIELDS: Final[Mapping[str, re.Pattern[str]]] = {
    "slug": _SLUG,
    "run_id": _ID,
    "server_id": _ID,
    "command": _NAME,
    "started_at": _TIME,
    "time": _TIME,
    "redline_version": _ID,
    "engine": _ID,
    "engine_version": _ID,
    "driver_version": _ID,
    "digest": _HASH,
    "origin": _ORIGIN,
    "kind": _ID,
    "regime": _ID,
    "prompt_class": _NAME,
    "check_id": _ID,
    "status": _NAME,
    "skip_reason": _NAME,
    "outcome": _NAME,
    "state": _NAME,
    "stage": _NAME,
}
_MAX_ITEMS: Final = 200_000


def disclose(value: Any, redactor: Redactor, *, name: str = "") -> Any:
    """Return a JSON value as it may be shared; `name` is the field that holds it.

    Lists of arguments named `argv` are redacted as command lines, so that the word after `--api-key` goes too.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _disclose_text(value, redactor, name)
    if isinstance(value, Mapping):
        return {
            _disclose_key(str(key), redactor): disclose(item, redactor, name=str(key))
            for key, item in list(value.items())[:_MAX_ITEMS]
        }
    items = list(value)[:_MAX_ITEMS]
    if name == "argv":
        return list(redactor.argv(plain_line(str(item)) for item in items))
    return [disclose(item, redactor, name=name) for item in items]


def _disclose_text(text: str, redactor: Redactor, name: str) -> str:
    shape = PASSING_FIELDS.get(name)
    if shape is not None and shape.fullmatch(text):
        return text
    return redactor.text(plain_text(text))


def _disclose_key(key: str, redactor: Redactor) -> str:
    return key if _NAME.fullmatch(key) else redactor.text(plain_line(key, 200))

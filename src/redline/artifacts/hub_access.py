"""How the hub is reached: which hub, with whose token, or not at all. Knows settings; talks to nobody.

The token goes into a request header and nowhere else: it is kept out of `repr`, of every message and of every argv.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from redline.errors import AccessError, MissingError, UsageError
from redline.settings import Settings, parse_bool

HUB: Final = "https://huggingface.co"
PACKAGE: Final = "huggingface-hub==2.4.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubAccess:
    """An endpoint, whether it may be asked, and a token where the user has one.

    `token_origin` is where the token stands, in words, or None where there is none. `login` looks one up that `hf`
    keeps; it is asked only when redline itself was given none.
    """

    endpoint: str = HUB
    offline: bool = False
    token: str | None = field(default=None, repr=False)
    token_origin: str | None = None
    login: Callable[[], str | None] | None = field(default=None, repr=False)

    def find_token(self) -> tuple[str | None, str | None]:
        """Return the token to send and where it stands."""
        if self.token is not None:
            return self.token, self.token_origin
        found = self.login() if self.login else None
        return (found, "the login of `hf`") if found else (None, None)

    def page(self, repo: str) -> str:
        """Return the address of a repository's page."""
        return f"{self.endpoint}/{repo}"


def hub_access(settings: Settings) -> HubAccess:
    """Return how this user reaches the hub: HF_ENDPOINT, HF_HUB_OFFLINE, HF_TOKEN, or the login of `hf`.

    Raises:
        AccessError: the token stands in a config file that others may read.
        UsageError: a setting that cannot be used.
    """
    layers = settings.layers
    endpoint, offline, token = layers.get("HF_ENDPOINT"), layers.get("HF_HUB_OFFLINE"), layers.get("HF_TOKEN")
    if endpoint is not None and urlsplit(endpoint.value).scheme not in ("http", "https"):
        raise UsageError(
            f"HF_ENDPOINT={endpoint.value!r} ({endpoint.origin}) is no address.",
            next_step=f"Give the whole address of the mirror, such as {HUB}, or remove it.",
        )
    if token is not None and token.origin.startswith("config:") and settings.config_file.stat().st_mode & 0o077:
        raise AccessError(
            f"{settings.config_file} holds your hub token, and others may read it.",
            next_step=f"chmod 600 {settings.config_file}",
        )
    return HubAccess(
        endpoint=endpoint.value.rstrip("/") if endpoint else HUB,
        offline=parse_bool(offline, "HF_HUB_OFFLINE").value if offline else False,
        token=token.value if token else None,
        token_origin=_place(token.origin) if token else None,
        login=saved_login,
    )


def saved_login() -> str | None:
    """Return the token that `hf auth login` keeps, or None."""
    need_library()
    from huggingface_hub import get_token

    return get_token()


def need_library() -> None:
    """Check that the hub's library is there, and keep it quiet: its bars and warnings would break redline's own.

    Raises:
        MissingError: it is not installed; says how to install it.
    """
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        from huggingface_hub.utils import disable_progress_bars, logging
    except ImportError:
        import sys

        raise MissingError(
            "Files from the hub come through the package huggingface-hub, which is not installed.",
            next_step=f"{sys.executable} -m pip install {PACKAGE}",
        ) from None
    disable_progress_bars()
    logging.set_verbosity(logging.ERROR)


def _place(origin: str) -> str:
    layer, _, name = origin.partition(":")
    return {"env": f"{name} in the environment", "config": "the config file"}.get(layer, f"{name} in {layer}")

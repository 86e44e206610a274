"""The server that is talked to: its address and model, and its identity where redline started it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server. `server_id` and `slug` are None for an endpoint that redline does not manage.

    The API key is kept out of `repr`, and so out of every log.
    """

    url: str
    model: str
    engine: str | None = None
    slug: str | None = None
    server_id: str | None = None
    api_key: "Secret | None" = None

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Request headers that carry the key, where there is one."""
        return (("Authorization", f"Bearer {self.api_key.reveal()}"),) if self.api_key else ()


class Secret:
    """Text that shows itself only when asked by name."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

"""What the server needs of an engine's dialect, and what both have in common. The engines: `vllm.py`, `llamacpp.py`."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from redline.fake.core import Core, Job
from redline.fake.scenario import Scenario
from redline.fake.tokens import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal(Exception):  # noqa: N818 -- an answer, in the engine's own words
    """A request that is answered with an error status."""

    status: int
    body: dict[str, Any]


Get = Callable[[], tuple[int, Any]]


class Dialect(Protocol):
    """One engine's manner of speaking."""

    name: str
    version: str
    headers: Mapping[str, str]
    metrics_type: str
    merges_steps: bool  # a step's tokens travel in one chunk
    serves_while_loading: bool
    role_content: str | None

    @property
    def reasoning_field(self) -> str:
        """The field that carries reasoning."""

    def envelope(self, data: dict[str, Any]) -> dict[str, Any]:
        """See `shapes.Style`."""

    def choice(self, data: dict[str, Any], *, last: bool) -> dict[str, Any]:
        """See `shapes.Style`."""

    def usage(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`."""

    def extras(self, job: Job) -> dict[str, Any]:
        """See `shapes.Style`."""

    def answer_id(self, kind: str) -> str:
        """Return an id for an answer of a kind: `chat`, `text`, `messages`."""

    def health(self) -> tuple[int, Any]:
        """Return status and body (None: empty) of `/health`."""

    def gets(self) -> dict[str, Get]:
        """Return what answers GET, by path, next to `/health` and `/metrics`."""

    def tokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the tokens of a text, or of messages where the engine takes them."""

    def detokenize(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the text of tokens."""

    def metrics(self) -> str:
        """Return the counters in the Prometheus text format."""

    def error(self, status: int, message: str, kind: str = "") -> dict[str, Any]:
        """Return the body of an error."""

    def unknown_model(self, name: str) -> Refusal | None:
        """Return the refusal of a model's name, where the engine looks at it."""

    def too_long(self, prompt_tokens: int, asked_tokens: int | None, limit: int) -> Refusal:
        """Return the refusal of a prompt that is too long."""

    def no_images(self) -> Refusal:
        """Return the refusal of an image."""

    def no_tools(self) -> Refusal | None:
        """Return the refusal of tools, where the engine refuses them."""


class BaseDialect:
    """State that both dialects read."""

    def __init__(self, scenario: Scenario, core: Core, version: str) -> None:
        self.scenario, self.core, self.version = scenario, core, version
        self.tokenizer = Tokenizer()

    @property
    def model(self) -> str:
        """The id the model goes by."""
        return self.scenario.model.listed_id or self.scenario.model.id

    def _cached(self, job: Job) -> dict[str, int] | None:
        reported = self.scenario.wire.cached_tokens == "reported"
        return {"cached_tokens": job.cached_tokens} if reported else None

    def _made(self, job: Job) -> int:
        return 0 if self.scenario.wire.usage == "zero" else job.made_tokens

    @staticmethod
    def _random_id(prefix: str) -> str:
        return prefix + secrets.token_hex(16)


def sample(name: str, value: float, labels: dict[str, str] | None = None) -> str:
    """Return one line of the Prometheus text format; whole numbers as vLLM's client writes them (`3.0`)."""
    text = ",".join(f'{key}="{item}"' for key, item in (labels or {}).items())
    return f"{name}{{{text}}} {value}" if text else f"{name} {value}"

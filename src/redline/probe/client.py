"""What redline asks of a server: measured chats over its own protocol, everything else over httpx2."""

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import httpx2

from redline.engine.counters import Counters
from redline.engine.metrics import read_metrics
from redline.errors import EndpointError
from redline.probe.exchange import ChatRequest, Exchange
from redline.probe.parse import read_exchange
from redline.probe.spending import GENERATES, Spending, usage_of_text
from redline.probe.target import Target
from redline.probe.wire import exchange_bytes

_CONTROL_TIMEOUT_S = 10.0
# Whoever listens answers a connection at once; a dead address is to be named within two seconds.
_CONNECT_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a POST that is not measured. `status` is None when none came; `text` then says why."""

    status: int | None
    text: str

    @property
    def data(self) -> Any:
        """The text as JSON, None where it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class Client:
    """Talks to one target. Use as an async context manager, within one event loop.

    `spent` is what its requests took so far, by the server's own counts.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.spent = Spending()
        self._http = httpx2.AsyncClient(
            base_url=target.url,
            headers=dict(target.headers),
            timeout=httpx2.Timeout(_CONTROL_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def chat(self, request: ChatRequest, *, timeout_s: float = 120.0) -> Exchange:
        """Stream a chat completion and return all that was seen of it. Never raises for what the server does."""
        body = json.dumps(request.body(self.target.model, stream=True)).encode()
        url = f"{self.target.url}/v1/chat/completions"
        exchange = read_exchange(await exchange_bytes(url, body, headers=self.target.headers, timeout_s=timeout_s))
        self.spent.add(exchange.usage)
        return exchange

    async def get_json(self, path: str) -> Any:
        """Return the JSON of a control path.

        Raises:
            EndpointError: no answer, a status other than 200, or no JSON.
        """
        response = await self._get(path)
        try:
            return response.json()
        except ValueError:
            raise EndpointError(
                f"{self.target.url}{path} answered, but not with JSON: {response.text[:80]!r}.",
                next_step="Is this the address of an OpenAI-compatible server?",
            ) from None

    async def post(self, path: str, body: dict[str, Any], *, timeout_s: float = 60.0) -> Reply:
        """POST a JSON body and return whatever came back. Never raises for what the server does."""
        try:
            response = await self._http.post(path, json=body, timeout=timeout_s)
        except httpx2.TimeoutException:
            return Reply(None, f"no answer within {timeout_s:g} s")
        except httpx2.HTTPError as error:
            return Reply(None, str(error) or type(error).__name__)
        if path in GENERATES:
            self.spent.add(usage_of_text(response.text))
        return Reply(response.status_code, response.text)

    async def model_ids(self) -> tuple[str, ...]:
        """Return the ids that the server lists.

        Raises:
            EndpointError: no answer, or not in the shape of `/v1/models`.
        """
        data = await self.get_json("/v1/models")
        try:
            return tuple(str(item["id"]) for item in data["data"])
        except (KeyError, TypeError):
            raise EndpointError(
                f"{self.target.url}/v1/models does not list models.",
                next_step="Is this the address of an OpenAI-compatible server?",
            ) from None

    async def healthy(self) -> bool:
        """Whether the server answers at all and says it is well."""
        try:
            return (await self._http.get("/health")).status_code == 200
        except httpx2.HTTPError:
            return False

    async def counters(self) -> Counters | None:
        """Return the engine's counters, or None where it offers none or the engine is not known."""
        text = await self.metrics_text()
        try:
            return None if text is None else read_metrics(text)
        except ValueError:
            return None

    async def metrics_text(self) -> str | None:
        """Return what the engine says of itself in Prometheus' form, or None where it says nothing."""
        try:
            response = await self._http.get("/metrics")
        except httpx2.HTTPError:
            return None
        return response.text if response.status_code == 200 else None

    async def post_json(self, path: str, body: Any) -> Any | None:
        """Return the JSON answer of a control path that not every server has, or None where this one has it not."""
        try:
            response = await self._http.post(path, json=body)
            return response.json() if response.status_code == 200 else None
        except (httpx2.HTTPError, ValueError):
            return None

    async def _get(self, path: str) -> httpx2.Response:
        try:
            response = await self._http.get(path)
        except httpx2.ConnectTimeout:
            raise EndpointError(
                f"{self.target.url} cannot be reached: no connection within {_CONNECT_TIMEOUT_S:g} s.",
                next_step="Start a server with `redline up`, or correct --url.",
            ) from None
        except httpx2.TimeoutException:
            raise EndpointError(
                f"{self.target.url} does not answer within {_CONTROL_TIMEOUT_S:g} s.",
                next_step="`redline ps` and `redline logs` show what the server is doing.",
            ) from None
        except httpx2.HTTPError as error:
            raise EndpointError(
                f"{self.target.url} cannot be reached: {error}.",
                next_step="Start a server with `redline up`, or correct --url.",
            ) from None
        if response.status_code != 200:
            raise EndpointError(
                f"{self.target.url}{path} answered with status {response.status_code}.",
                next_step="`redline logs` shows what the server says about it.",
            )
        return response

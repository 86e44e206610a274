"""What a router says of the servers behind it, and waiting until it counts them all."""

import json
import time
import urllib.request
from dataclasses import dataclass
from typing import Final

from redline.engine.router import WORKERS_PATH
from redline.errors import EndpointError, EngineStartError
from redline.launch.state import ServerRecord

_TIMEOUT_S: Final = 5.0
_LIMIT_S: Final = 30.0
_POLL_S: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A server as the router sees it."""

    url: str
    healthy: bool


def read_workers(router_url: str) -> tuple[Worker, ...]:
    """Return the servers that a router knows.

    Raises:
        EndpointError: it does not answer, or not as vllm-router does.
    """
    try:
        with urllib.request.urlopen(f"{router_url}{WORKERS_PATH}", timeout=_TIMEOUT_S) as answer:  # noqa: S310 -- our own server's http address
            data = json.load(answer)
        return tuple(Worker(url=item["url"], healthy=bool(item["is_healthy"])) for item in data["workers"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EndpointError(
            f"The router at {router_url} does not say which servers it has: {error}.",
            next_step="`redline ps` and `redline logs` show whether it runs.",
        ) from None


def await_members(router: ServerRecord, count: int) -> tuple[Worker, ...]:
    """Return the router's servers once it counts `count` of them, all well.

    Raises:
        EngineStartError: it does not within half a minute.
    """
    deadline = time.monotonic() + _LIMIT_S
    while True:
        workers = read_workers(router.url)
        if len(workers) == count and all(worker.healthy for worker in workers):
            return workers
        if time.monotonic() > deadline:
            seen = ", ".join(f"{worker.url} {'well' if worker.healthy else 'not well'}" for worker in workers)
            raise EngineStartError(
                f"The router counts {len(workers)} of {count} copies: {seen or 'none'}.",
                next_step=f"`redline logs {router.server_id}` shows why.",
            )
        time.sleep(_POLL_S)

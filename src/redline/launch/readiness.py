"""Whether a server that is starting can be used yet: its health path, its list of models, one real token.

Standard library only: this runs inside every supervisor, whose memory is counted in tens of megabytes.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from redline.engine.launch_plan import LaunchPlan

_CONNECT_TIMEOUT_S: Final = 5.0
_POLL_S: Final = 0.05
_SLOW_POLL_S: Final = 0.5
_SLOWING: Final = 1 / 60  # of the time waited: 50 ms for the first 3 s, half a second after 30 s


@dataclass(frozen=True, slots=True)
class Readiness:
    """The outcome: ready, or why not."""

    ready: bool
    reason: str = ""


class ReadinessWatch(threading.Thread):
    """Polls until the server is ready or its time is up, then calls back once, from this thread."""

    def __init__(self, plan: LaunchPlan, api_key: str | None, done: Callable[[Readiness], None]) -> None:
        super().__init__(daemon=True)
        self._plan, self._api_key, self._done = plan, api_key, done
        self._stop = threading.Event()

    def cancel(self) -> None:
        """Stop polling; the callback is not called after that."""
        self._stop.set()

    def run(self) -> None:
        """Poll; see the class."""
        started = time.monotonic()
        while not self._stop.is_set():
            waited = time.monotonic() - started
            if waited > self._plan.readiness.timeout_s:
                return self._finish(Readiness(ready=False, reason=f"not ready within {waited:.0f} s"))
            try:
                status, _ = self._request("GET", self._plan.readiness.health_path, None, _CONNECT_TIMEOUT_S)
                if status == 200:
                    return self._finish(self._first_token())
            except (OSError, http.client.HTTPException):
                pass  # not listening yet
            self._stop.wait(min(_SLOW_POLL_S, max(_POLL_S, waited * _SLOWING)))
        return None

    def _finish(self, outcome: Readiness) -> None:
        if not self._stop.is_set():
            self._done(outcome)

    def _first_token(self) -> Readiness:
        wanted = self._plan.readiness.model
        try:
            _, body = self._request("GET", "/v1/models", None, _CONNECT_TIMEOUT_S)
            listed = [str(item.get("id")) for item in json.loads(body)["data"]]
            if wanted not in listed:
                return Readiness(ready=False, reason=f"it serves {', '.join(listed) or 'no model'}, not {wanted}")
            request = {"model": wanted, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
            status, body = self._request("POST", "/v1/chat/completions", request, self._plan.readiness.timeout_s)
            if status != 200 or not json.loads(body).get("choices"):
                return Readiness(ready=False, reason=f"its first request was answered with {status}: {body[:200]!r}")
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError) as error:
            return Readiness(ready=False, reason=f"its first request failed: {error}")
        return Readiness(ready=True)

    def _request(self, method: str, path: str, body: object, timeout_s: float) -> tuple[int, bytes]:
        host = self._plan.url.removeprefix("http://").rpartition(":")[0].strip("[]")
        connection = http.client.HTTPConnection(host, self._plan.port, timeout=timeout_s)
        headers = {"Content-Type": "application/json"}
        if self._api_key:
            headers["Authorization"] = f"Bearer {self._api_key}"
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

"""Asks the running model one question and passes on the pieces of its answer as they come."""

import json
from collections.abc import Iterator

import httpx2

from redline.errors import EndpointError
from redline.probe.target import Target


def ask(target: Target, text: str, *, max_tokens: int) -> Iterator[str]:
    """Yield the answer piece by piece, with the server's own sampling defaults.

    Raises:
        EndpointError: the server cannot be reached, refuses, or its answer breaks off.
    """
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": max_tokens,
        "stream": True,
    }
    url = f"{target.url}/v1/chat/completions"
    try:
        with (
            httpx2.Client(trust_env=False, timeout=httpx2.Timeout(10.0, read=300.0)) as client,
            client.stream("POST", url, json=body, headers=dict(target.headers)) as response,
        ):
            if response.status_code != 200:
                response.read()
                raise EndpointError(
                    f"The server answered with status {response.status_code}: {response.text[:200]}",
                    next_step="`redline ps` shows whether it is still loading; `redline logs` what it says.",
                )
            for line in response.iter_lines():
                if line.startswith("data:") and (data := line[5:].strip()) != "[DONE]":
                    yield _piece(data)
    except httpx2.HTTPError as error:
        raise EndpointError(
            f"{target.url} stopped answering: {error}.",
            next_step="`redline ps` shows whether the server still runs.",
        ) from None


def _piece(data: str) -> str:
    try:
        event = json.loads(data)
    except ValueError:
        raise EndpointError(f"The server sent something unreadable: {data[:80]!r}.") from None
    if "error" in event:
        raise EndpointError(f"The server reports: {event['error']}", next_step="`redline logs` shows more.")
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return str(delta.get("content") or "")

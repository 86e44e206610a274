"""What the hub's refusals and failures mean for a user, each with its next step. Knows no file of this machine."""

import re
from collections.abc import Callable
from typing import Any, Final

from redline.artifacts.hub_access import HubAccess
from redline.errors import NetworkError, RedlineError
from redline.units import format_seconds

_KEPT: Final = "What was fetched so far is kept, and the next try goes on from there."


def explain(error: Exception, repo: str, access: HubAccess, what: str) -> RedlineError:
    """Return redline's own error for what the hub's library raised while `what` was being fetched."""
    import httpx2
    from huggingface_hub import errors

    if isinstance(error, RedlineError):
        return error
    if isinstance(error, errors.HfHubHTTPError):
        return _refused(error, repo, access, what)
    if isinstance(error, errors.FileMetadataError):
        return NetworkError(
            f"{access.endpoint} answered for {what}, and not as a hub does.",
            next_step="Check HF_ENDPOINT; or a proxy or firewall answered in the hub's place.",
            details=(plain(str(error)),),
        )
    if isinstance(error, httpx2.TransportError | errors.OfflineModeIsEnabled):
        return NetworkError(
            f"{access.endpoint} cannot be reached for {what}: {plain(str(error)) or type(error).__name__}.",
            next_step=f"Check the network and try again, or set HF_ENDPOINT to a mirror. {_KEPT}",
        )
    return NetworkError(f"{what} could not be fetched: {plain(str(error))}.", next_step=f"Try again. {_KEPT}")


def _refused(error: Any, repo: str, access: HubAccess, what: str) -> NetworkError:
    from huggingface_hub import errors

    token, place = access.find_token()
    for kind, words in (
        (errors.GatedRepoError, _gated),
        (errors.RevisionNotFoundError, _no_revision),
        (errors.RemoteEntryNotFoundError, _no_entry),
        (errors.DisabledRepoError, _disabled),
    ):
        if isinstance(error, kind):
            return words(repo, access, what, place)
    status = error.response.status_code
    said = plain(error.response.headers.get("X-Error-Message") or "")
    if status == 401 and token is not None and "Invalid credentials" in said:
        return NetworkError(
            f"The hub does not accept the token from {place}.",
            next_step=f"Make a new one at {access.endpoint}/settings/tokens, or remove it if {repo} is public.",
        )
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 404):
        return _no_repo(repo, access, what, place)
    handler = _BY_STATUS.get(status, _unexpected)
    return handler(error.response, repo, access, what, said)


def _gated(repo: str, access: HubAccess, what: str, place: str | None) -> NetworkError:
    if place is None:
        return NetworkError(
            f"{repo} is gated: its publisher asks who fetches {what}, and you gave no token.",
            next_step=f"Accept the terms at {access.page(repo)}, make a token with read access, and set HF_TOKEN (or "
            "run `hf auth login`).",
        )
    return NetworkError(
        f"{repo} is gated, and the owner of the token from {place} has not been let in.",
        next_step=f"Accept the terms at {access.page(repo)} with that account, wait until it is let in, and try again.",
    )


def _no_revision(repo: str, access: HubAccess, what: str, _place: str | None) -> NetworkError:
    return NetworkError(
        f"{repo} has no such revision for {what}: its history was rewritten, or the catalogue is wrong.",
        next_step=f"See {access.page(repo)}/commits/main and correct the artifact's revision.",
    )


def _no_entry(repo: str, access: HubAccess, what: str, _place: str | None) -> NetworkError:
    return NetworkError(
        f"{what} is not in {repo}: its publisher removed or renamed it.",
        next_step=f"See {access.page(repo)}/tree/main; name a revision that has it, or choose another tier.",
    )


def _disabled(repo: str, access: HubAccess, _what: str, _place: str | None) -> NetworkError:
    return NetworkError(
        f"The hub has closed {repo} to everyone.", next_step=f"See {access.page(repo)}, or choose another tier."
    )


def _no_repo(repo: str, access: HubAccess, what: str, place: str | None) -> NetworkError:
    if place is None:
        return NetworkError(
            f"{repo} is not to be seen without a token: it does not exist, is private, or is gated.",
            next_step=f"Open {access.page(repo)}; if it is there for you, set HF_TOKEN or run `hf auth login`.",
        )
    return NetworkError(
        f"{repo}, which should hold {what}, does not exist, or the token from {place} does not reach it.",
        next_step=f"Open {access.page(repo)} with the same account; check the name and the token's rights.",
    )


def _forbidden(_response: Any, repo: str, access: HubAccess, what: str, said: str) -> NetworkError:
    return NetworkError(
        f"The hub forbids fetching {what} from {repo}{f': {said}' if said else ''}.",
        next_step=f"See {access.page(repo)}; a fine-grained token needs read access to gated repositories.",
    )


def _too_many(response: Any, repo: str, access: HubAccess, what: str, _said: str) -> NetworkError:
    wait = wait_seconds(response.headers)
    when = f"in {format_seconds(wait)}" if wait else "in a few minutes"
    login = "" if access.find_token()[0] else " A token (HF_TOKEN) has a higher limit."
    return NetworkError(
        f"The hub answers no more for now: too many requests from here (429), at {what} of {repo}.",
        next_step=f"Try again {when}.{login} {_KEPT}",
    )


def _unexpected(response: Any, repo: str, access: HubAccess, what: str, said: str) -> NetworkError:
    fault = "is in trouble" if response.status_code >= 500 else "answered unexpectedly"
    return NetworkError(
        f"{access.endpoint} {fault} ({response.status_code}) for {what} of {repo}{f': {said}' if said else ''}.",
        next_step=f"Try again later, or set HF_ENDPOINT to a mirror. {_KEPT}",
    )


_BY_STATUS: Final[dict[int, Callable[[Any, str, HubAccess, str, str], NetworkError]]] = {
    403: _forbidden,
    429: _too_many,
}


def wait_seconds(headers: Any) -> int | None:
    """Return the seconds a 429 asks to wait: `Retry-After`, or `t` of the hub's `RateLimit` header."""
    found = re.search(r"\bt=(\d+)", headers.get("RateLimit") or "")
    text = found[1] if found else headers.get("Retry-After") or ""
    return int(text) if text.isdigit() else None


def plain(text: str) -> str:
    """Return the first line of a message without addresses: those of stored files carry signatures."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return re.sub(r"https?://\S+", "(address)", first).strip().rstrip(".")

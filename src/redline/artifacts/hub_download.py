"""One file from the hub onto this disk, going on where an earlier try ended. Knows bytes; judges no content.

The hub's library downloads under a name of its own for each process and throws a part away when it fails
(huggingface_hub 2.4.0 file_download.py:1993-2044), so a kill would cost a whole file of gigabytes. Here the part keeps
its name. Session, headers and the meaning of refusals are the library's. The token goes to the hub alone: the client
drops it where the hub redirects to another host.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from redline.artifacts.hub_access import HubAccess
from redline.artifacts.hub_errors import explain, plain, wait_seconds
from redline.artifacts.hub_listing import HubFile, HubListing
from redline.errors import NetworkError, RedlineError
from redline.record.files import explain_os_error

OnBytes = Callable[[int], None]
OnWait = Callable[[str], None]

_CHUNK_BYTES: Final = 2**20
_READ_TIMEOUT_S: Final = 60.0
_CONNECT_TIMEOUT_S: Final = 15.0
_FIRST_WAIT_S: Final = 0.5
_TRIES_WITHOUT_A_BYTE: Final = 4
_LONGEST_WAIT_S: Final = 60
_TICK_S: Final = 0.1


class _CutOff(Exception):  # noqa: N818 -- it becomes an error only when it happens again and again
    """The answer ended before the file did."""


def download(
    listing: HubListing, file: HubFile, part: Path, access: HubAccess, on_bytes: OnBytes, on_wait: OnWait
) -> None:
    """Complete `part`, which may hold the beginning of the file already; `on_bytes` is told its size as it grows.

    A line that breaks is taken up again for as long as bytes arrive. What is there when this raises is kept.

    Raises:
        NetworkError: the hub refuses, or cannot be reached.
        DiskSpaceError, AccessError: the part cannot be written.
    """
    failures = 0
    while (have := _size(part)) != file.size_bytes:
        if have > file.size_bytes:
            part.unlink()
            have = 0
        on_bytes(have)
        try:
            _take(listing, file, part, access, have, on_bytes)
        except RedlineError:
            raise
        except Exception as error:
            failures = 0 if _size(part) > have else failures + 1
            wait_s = _patience(error, failures)
            if wait_s is None:
                raise _final(error, listing, file, part, access) from None
            _wait(wait_s, plain(str(error)) or type(error).__name__, on_wait)
    on_bytes(file.size_bytes)


def _take(listing: HubListing, file: HubFile, part: Path, access: HubAccess, have: int, on_bytes: OnBytes) -> None:
    import httpx2
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

    headers: Mapping[str, str] = {
        **build_hf_headers(token=access.find_token()[0] or False, library_name="redline"),
        "Accept-Encoding": "identity",  # a range of a compressed answer would be a range of something else
        **({"Range": f"bytes={have}-"} if have else {}),
    }
    url = hf_hub_url(listing.repo, file.path, revision=listing.commit, endpoint=access.endpoint)
    timeout = httpx2.Timeout(_READ_TIMEOUT_S, connect=_CONNECT_TIMEOUT_S)
    with get_session().stream("GET", url, headers=headers, timeout=timeout, follow_redirects=True) as response:
        hf_raise_for_status(response)
        if response.status_code != 206:
            have = 0  # the whole file comes, whatever was asked for
        try:
            with part.open("r+b" if have else "wb") as out:
                out.seek(have)
                for chunk in response.iter_raw(_CHUNK_BYTES):
                    out.write(chunk)
                    have += len(chunk)
                    on_bytes(have)
        except OSError as error:
            raise explain_os_error(error, part) from None
    if have < file.size_bytes:
        raise _CutOff(f"the answer ended after {have} of {file.size_bytes} bytes")


def _patience(error: Exception, failures: int) -> float | None:
    """Return the seconds to wait before the next try, or None where another try would bring nothing."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError

    if failures >= _TRIES_WITHOUT_A_BYTE:
        return None
    usual = _FIRST_WAIT_S * 2.0 ** max(0, failures - 1)
    if isinstance(error, _CutOff | httpx2.TransportError):
        return usual
    if isinstance(error, HfHubHTTPError):
        status: int = error.response.status_code
        if status == 429:
            asked = wait_seconds(error.response.headers)
            return None if asked is None or asked > _LONGEST_WAIT_S else max(float(asked), usual)
        if status == 408 or status >= 500:
            return usual
    return None


def _final(error: Exception, listing: HubListing, file: HubFile, part: Path, access: HubAccess) -> RedlineError:
    if isinstance(error, _CutOff):
        return NetworkError(
            f"{file.path} of {listing.repo} keeps ending early: {error}.",
            next_step="Something on the way cuts long downloads off; try another network or a mirror (HF_ENDPOINT). "
            f"The {_size(part)} bytes that came are kept.",
        )
    return explain(error, listing.repo, access, file.path)


def _wait(seconds: float, why: str, on_wait: OnWait) -> None:
    """Wait in short steps; `on_wait` may raise to end it, as it does when the user presses Ctrl-C."""
    until, words = time.monotonic() + seconds, f"waiting {seconds:g} s: {why}"
    while (left := until - time.monotonic()) > 0:
        on_wait(words)
        time.sleep(min(_TICK_S, left))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0

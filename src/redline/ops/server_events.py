"""What operations on servers say while they run. Light: `ps`, `down` and `logs` load this and nothing that measures."""

from dataclasses import dataclass

from redline.launch.state import ServerRecord
from redline.launch.stop import Orphan


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyRunning:
    """The tier is served already, in the same form."""

    server: ServerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlived:
    """An engine was found whose supervisor is gone; it will be ended if `ending`."""

    orphan: Orphan
    ending: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacing:
    """A server is in the way and will be stopped, now that the new one has been checked; `why` says of what."""

    server: ServerRecord
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """A server is being stopped; `text` says what is waited for."""

    server: ServerRecord
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged:
    """A server moved on, or still is where it was; `seconds` since it was created, `text` from its history.

    `progress` is how far its stage is, from 0 to 1; `remaining_s` what earlier boots lead to expect until it is ready.
    """

    server: ServerRecord
    state: str
    text: str
    seconds: float
    progress: float | None = None
    remaining_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A server is ready, `seconds` after its supervisor started."""

    server: ServerRecord
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyStarted:
    """One of several copies of a tier is ready, the `number`-th of `total`; what follows proves this copy."""

    server: ServerRecord
    number: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingBack:
    """The new server failed; the earlier one is being started again from its own plan."""

    server: ServerRecord
    because: str


ServerEvent = AlreadyRunning | Outlived | Replacing | Stopping | StateChanged | Started | CopyStarted | RollingBack

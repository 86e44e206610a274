"""Every error redline raises on purpose, and the exit code each one ends with.

    RedlineError                 what happened + what to do next
      UsageError            2    the command line or a file the user wrote is wrong
      InconclusiveError     3    a precondition did not hold, so there is no verdict
      FaultError            4    redline's own fault
      RefusedError          5    a guard refused: port, memory, hardware, integrity, a setting that would be wrong
      EngineStartError      6    the engine did not start
      MissingError          7    something outside redline is missing
        NetworkError             a download could not be made
        DiskSpaceError           not enough room
        AccessError              a file or folder cannot be read or written
        IntegrityError           downloaded bytes are not the published bytes
        EndpointError            a server does not answer, or not as an OpenAI-compatible server would
        NoServerError            no running server to talk to

A failed check is no error: it is a verdict, and its command ends with 1. Ctrl-C ends with 130, SIGTERM with 143.
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a command's exit status means; `docs/exit-codes.md` is this table in words."""

    DONE = 0
    CHECK_FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    FAULT = 4
    REFUSED = 5
    ENGINE_START = 6
    MISSING = 7
    INTERRUPTED = 130
    TERMINATED = 143


class RedlineError(Exception):
    """A sentence that says what happened and, in `next_step`, what the user can do about it."""

    exit_code: ClassVar[ExitCode] = ExitCode.FAULT

    def __init__(self, message: str, *, next_step: str | None = None, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step
        self.details = details


class UsageError(RedlineError):
    """The command line, the environment or a file the user wrote cannot mean anything."""

    exit_code = ExitCode.USAGE


class InconclusiveError(RedlineError):
    """A precondition did not hold, so no verdict can be given."""

    exit_code = ExitCode.INCONCLUSIVE


class FaultError(RedlineError):
    """redline contradicts itself; the user can only report it."""

    exit_code = ExitCode.FAULT


class RefusedError(RedlineError):
    """A guard refused before anything was stopped or started."""

    exit_code = ExitCode.REFUSED


class EngineStartError(RedlineError):
    """The engine process did not become a server."""

    exit_code = ExitCode.ENGINE_START


class MissingError(RedlineError):
    """Something outside redline is missing."""

    exit_code = ExitCode.MISSING


class NetworkError(MissingError):
    """A download could not be made."""


class DiskSpaceError(MissingError):
    """The disk has not enough room."""


class AccessError(MissingError):
    """A file or folder cannot be read or written."""


class IntegrityError(MissingError):
    """Downloaded bytes are not the bytes that were published."""


class EndpointError(MissingError):
    """A server does not answer, or not as an OpenAI-compatible server would."""


class NoServerError(MissingError):
    """There is no running server to talk to."""

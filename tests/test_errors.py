"""Exit codes are a contract: scripts branch on them."""

import inspect

from redline import errors
from redline.errors import ExitCode, RedlineError


def test_every_error_says_its_exit_code() -> None:
    found = {
        name: int(cls.exit_code)
        for name, cls in vars(errors).items()
        if inspect.isclass(cls) and issubclass(cls, RedlineError)
    }
    assert found == {
        "RedlineError": 4,
        "UsageError": 2,
        "InconclusiveError": 3,
        "FaultError": 4,
        "RefusedError": 5,
        "EngineStartError": 6,
        "MissingError": 7,
        "NetworkError": 7,
        "DiskSpaceError": 7,
        "AccessError": 7,
        "IntegrityError": 7,
        "EndpointError": 7,
        "NoServerError": 7,
    }


def test_the_docstring_draws_the_whole_tree() -> None:
    assert errors.__doc__ is not None
    for name, cls in vars(errors).items():
        if inspect.isclass(cls) and issubclass(cls, RedlineError):
            assert name in errors.__doc__
    assert int(ExitCode.INTERRUPTED) == 130
    assert int(ExitCode.TERMINATED) == 143

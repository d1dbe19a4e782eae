"""The exceptions that a user sees: what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class TierwiseError(Exception):
    """Bad input or a state of the machine that the user can fix.

    The command line prints ``message`` and ``fix`` on one line and exits with ``exit_status``.

    Args:
        message: what was wrong, naming the file, field or option.
        fix: what to do about it, in the imperative.
    """

    exit_status = 2

    def __init__(self, message: str, fix: str) -> None:
        super().__init__(f"{message}: {fix}")
        self.message = message
        self.fix = fix

    def __reduce__(self) -> tuple[Callable[..., TierwiseError], tuple[object, ...], dict[str, object]]:
        """Keep both halves on the way from another process."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class HostError(TierwiseError):
    """This machine or user lacks something: no root, no FUSE, a program that is not installed.

    The command line exits with status 3.
    """

    exit_status = 3


class FailedCheckError(TierwiseError):
    """The command completed with a negative result: no valid run, a failed check, a missed threshold.

    The command line exits with status 1.
    """

    exit_status = 1


class StatementError(Exception):
    """Raised by a client written in Python when its engine refuses or stops a statement.

    Args:
        message: in the engine's words.
        retry: whether the transaction lost a conflict with another and may be retried.
        capped: whether the statement was stopped because it took longer than its cap.
    """

    def __init__(self, message: str, retry: bool = False, capped: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.retry = retry
        self.capped = capped


@contextmanager
def os_errors(what: object, fix: str) -> Iterator[None]:
    """Turn what the system refuses into an error that begins with ``what``: a file, an option or a device."""
    try:
        yield
    except OSError as error:
        raise TierwiseError(f"{what}: {error.strerror}", fix) from error

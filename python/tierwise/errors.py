"""The one exception that a user sees: what was wrong, where, and what to do."""

from __future__ import annotations


class TierwiseError(Exception):
    """Bad input or a state of the machine that the user can mend.

    The command line prints ``message`` and ``fix`` on one line and exits with status 2.

    Args:
        message: what was wrong, naming the file, field or option.
        fix: what to do about it, in the imperative.
    """

    def __init__(self, message: str, fix: str) -> None:
        """Keep both halves apart, so that callers can print or test either."""
        super().__init__(f"{message}: {fix}")
        self.message = message
        self.fix = fix


class StatementError(Exception):
    """What a client written in Python says when its engine refuses or stops a statement.

    Args:
        message: in the engine's words.
        retry: whether the transaction was chosen to give way and may be tried again.
        capped: whether the statement was stopped because it took longer than its cap.
    """

    def __init__(self, message: str, retry: bool = False, capped: bool = False) -> None:
        """Keep the parts, for the clients to read."""
        super().__init__(message)
        self.message = message
        self.retry = retry
        self.capped = capped

"""A function and its argument on their way to a worker, which must have the same version of tierwise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tierwise import _core
from tierwise.model.errors import HostError

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Call(Generic[T, R]):
    """What a worker is to do.

    Attributes:
        work: the function.
        task: its argument.
        version: of tierwise, where the call was made.
    """

    work: Callable[[T], R]
    task: T
    version: str = _core.__version__

    def __call__(self) -> R:
        """Do it.

        Raises:
            HostError: another version of tierwise is here.
        """
        if self.version != _core.__version__:
            raise HostError(
                f"a worker has tierwise {_core.__version__}, this machine {self.version}",
                "install the same version on all",
            )
        return self.work(self.task)

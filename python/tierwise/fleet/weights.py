"""What a fleet's owner says of its databases: importance, a p99 that one must have, which stay as they are.

The file is TOML, with a table for each database that differs from the rest::

    [databases.shop]
    importance = 3
    p99 = "5ms"

    [databases.archive]
    frozen = true
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from tierwise.advise import Goal
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import STRICT, parse_toml, read_text, validation_errors
from tierwise.model.names import did_you_mean
from tierwise.model.units import parse_duration_s

_FIX = "mend that field; see docs/how-to/fleet.md"


class Weight(BaseModel):
    """What holds for one database."""

    model_config = STRICT

    importance: Annotated[float, Field(gt=0, le=1e6)] = 1.0
    """Factor of its gain."""
    p99: str | None = None
    """99th percentile of the latency that it must have, such as `5ms`."""
    frozen: bool = False
    """Whether its files stay where they are."""

    @model_validator(mode="after")
    def _moves_for_its_goal(self) -> Self:
        if self.frozen and self.p99 is not None:
            raise ValueError("a frozen database moves for no p99: give one of frozen and p99")
        return self

    @property
    def goal(self) -> Goal | None:
        """The p99 as a goal."""
        return None if self.p99 is None else Goal(what="p99", bound=1e6 * parse_duration_s(self.p99, "p99"))


class WeightsFile(BaseModel):
    """The fields of a file of weights."""

    model_config = STRICT

    databases: dict[str, Weight] = {}
    """Name of a database -> what holds for it; one without a table has importance 1."""


@dataclass(frozen=True)
class Weights:
    """The weights of a fleet.

    Attributes:
        of_databases: name -> weight, of those that differ from the rest.
        file: where they are from.
    """

    of_databases: Mapping[str, Weight] = field(default_factory=dict)
    file: Path | None = None

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a file.

        Raises:
            TierwiseError: naming the file and the field that is not valid.
        """
        raw = parse_toml(read_text(file, "give a readable TOML file"), str(file))
        with validation_errors(file, _FIX):
            databases = WeightsFile.model_validate(raw).databases
        for name, weight in databases.items():
            if weight.p99 is not None:
                parse_duration_s(weight.p99, f"{file}: databases.{name}.p99")
        return cls(databases, file)

    def of(self, name: str) -> Weight:
        """The weight of a database."""
        return self.of_databases.get(name, Weight())

    def require_known(self, names: Iterable[str]) -> None:
        """Check that each database of the file is in the fleet.

        Raises:
            TierwiseError: naming the first that is not.
        """
        known = list(names)
        for name in self.of_databases:
            if name not in known:
                fix = did_you_mean(name, known, "write the name of a recording's folder")
                raise TierwiseError(f"{self.file}: databases.{name}: no such database in the fleet", fix)

"""What an engine's makers advise after the loss of a role's files: data in its folder, ``salvage.toml``."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from tierwise.engines.base import Engine
from tierwise.model.placement import Role

FILE = "salvage.toml"


class Salvage(BaseModel):
    """One step that lets an engine start without the files of a role; without one, only a backup helps."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    step: str
    """As reports write it, such as ``pg_resetwal -f``."""
    roles: list[Role]
    instead: bool = False
    """Whether a plain start must not come first, because it would overwrite what is left."""
    program: list[str] = []
    """Runs before the start: one of the engine's own programs, with its arguments."""
    settings: Mapping[str, str] = {}
    """For this start."""
    statements: list[str] = []
    """Run after the start."""
    source: str


class Guide(BaseModel):
    """The steps of one engine, those of a role in the order to try them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    salvage: list[Salvage] = []
    use: Mapping[Role, str] = {}
    """A statement that needs the files of a role, where reading all commits and the check do not."""

    def attempts(self, role: Role) -> list[Salvage | None]:
        """How to start without the files of a role: ``None`` for as it is, unless forbidden; then steps."""
        steps = [one for one in self.salvage if role in one.roles]
        return [*([] if any(one.instead for one in steps) else [None]), *steps]


def guide(engine: Engine) -> Guide:
    """The guide of an engine; an engine without a file has no steps."""
    file = Path(inspect.getfile(type(engine))).with_name(FILE)
    return Guide.model_validate(tomllib.loads(file.read_text("utf-8"))) if file.exists() else Guide()

"""Data in the folder of an engine: settings of studies, ways to commit, advice of its makers after a loss.

A study may come from a stranger, so what is not listed is refused. A list has only settings of performance,
durability and their measurement. None of them runs a program, loads a library, names a file or an address, or
changes who may connect.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import read_shipped_toml
from tierwise.model.names import did_you_mean
from tierwise.model.placement import Role
from tierwise.results.measurements import StrictModel


def settings_listed_in(folder: Path) -> frozenset[str]:
    """All names in the file of an engine's folder, whatever the groups that they are in."""
    groups: dict[str, str] = read_shipped_toml(folder / "settings.toml")
    return frozenset(name for names in groups.values() for name in names.split())


def checked_settings(engine: str, given: Mapping[str, str], allowed: Collection[str]) -> dict[str, str]:
    """The settings with their names as the engine's list has them: in lower case, with ``_``.

    A server also takes other spellings, as ``--Skip-X`` or the beginning of a name; those are refused.
    """
    values: dict[str, str] = {}
    for written, value in given.items():
        name = written.lower().replace("-", "_")
        shown = f"engine {engine}: setting {written if written.isprintable() else repr(written)}"
        if name not in allowed:
            near = did_you_mean(name, allowed, "leave it out;")
            raise TierwiseError(
                f"{shown} is not among those that a study may set",
                f"{near} docs/reference/engines.md says which ones it may",
            )
        if name in values:
            raise TierwiseError(f"{shown} is given twice, in two spellings", "leave one out")
        if not value.isprintable():
            raise TierwiseError(f"{shown} has the value {value!r}", "write it without control characters")
        values[name] = value
    return values


class DurabilitySetting(StrictModel):
    """One way to commit, and what the engine's maker says of it."""

    name: str
    """As reports write it, such as ``synchronous_commit=off``."""
    settings: Mapping[str, str] = {}
    """The engine's settings that differ from those of its study."""
    durable: bool
    """Whether an acknowledged commit survives a power cut on a device that is honest about flushes."""
    promise: str
    source: str


def load_durability_settings(folder: Path) -> list[DurabilitySetting]:
    """The settings of the engine in a folder, the safest first."""
    entries = read_shipped_toml(folder / "durability.toml")["setting"]
    return [DurabilitySetting.model_validate(entry) for entry in entries]


class SalvageStep(StrictModel):
    """One step that lets an engine start without the files of a role; without one, only a backup helps."""

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


class SalvageGuide(StrictModel):
    """The steps of one engine, those of a role in the order to try them."""

    salvage: list[SalvageStep] = []
    use: Mapping[Role, str] = {}
    """A statement that needs the files of a role, where reading all commits and the check do not."""

    def attempts(self, role: Role) -> list[SalvageStep | None]:
        """How to start without the files of a role: ``None`` for as it is, unless forbidden; then steps."""
        steps = [step for step in self.salvage if role in step.roles]
        return [*([] if any(step.instead for step in steps) else [None]), *steps]


def salvage_guide(folder: Path) -> SalvageGuide:
    """The guide of the engine in a folder; an engine without a file has no steps."""
    file = folder / "salvage.toml"
    return SalvageGuide.model_validate(read_shipped_toml(file)) if file.exists() else SalvageGuide()

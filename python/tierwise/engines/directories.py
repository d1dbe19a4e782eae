"""The directories of a server that runs as its own user, one for each placed role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tierwise.host import ledger, users
from tierwise.model.placement import Role


class ServerDirectories:
    """New directories under the places of the roles, owned by the server's user, entered in the ledger."""

    def __init__(self, prefix: str, user: users.ServerUser | None) -> None:
        """Make nothing yet.

        Args:
            prefix: begins the name of each directory.
            user: the server's account; ``None`` for the caller.
        """
        self._prefix = prefix
        self._user = user
        self._made: dict[Role, ledger.Directory] = {}
        self._beside: list[tuple[Role, ledger.Directory]] = []

    @property
    def paths(self) -> Mapping[Role, Path]:
        """The directory of each role that has one."""
        return {role: made.path for role, made in self._made.items()}

    @property
    def owned(self) -> Iterator[tuple[Role, Path]]:
        """Every directory, also those beside a role's own, with the role whose place it is in."""
        for role, made in (*self._made.items(), *self._beside):
            yield role, made.path

    def make(self, places: Mapping[Role, Path]) -> None:
        """Make one directory for each role.

        Raises:
            TierwiseError: naming the role and the directory, if the user may not enter a place.
        """
        for role, place in places.items():
            self._made[role] = self._make(role, place)

    def make_beside(self, role: Role, label: str) -> Path:
        """Make one more directory in the place of a role, or in the system's place if the role has none."""
        beside = role if role in self._made else Role.SYSTEM
        made = self._make(label, self._made[beside].path.parent)
        self._beside.append((beside, made))
        return made.path

    def remove(self) -> None:
        """Delete the directories with all their files."""
        for made in (*self._made.values(), *(made for _, made in self._beside)):
            made.remove()
        self._made.clear()
        self._beside.clear()

    def _make(self, label: str, place: Path) -> ledger.Directory:
        users.require_reachable(label, place, self._user)
        return ledger.directory(f"{self._prefix}-{label}", parent=place, owner=users.ids(self._user))

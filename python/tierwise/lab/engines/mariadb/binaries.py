"""Finds MariaDB's programs, and checks settings against its server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tierwise.host import programs
from tierwise.model.errors import TierwiseError

_UNKNOWN = re.compile(r"unknown (?:variable|option) '(?:--)?(?P<name>[\w-]+)")
_BAD_VALUE = (
    re.compile(r"(?P<message>Error while setting value '.*' to '(?P<name>[\w-]+)')"),
    re.compile(r"(?P<message>option '(?P<name>[\w-]+)': .*value .* adjusted to .*)"),
    re.compile(r"(?P<message>Unknown suffix .* used for variable '(?P<name>[\w-]+)' \(value .*?\))"),
)


@dataclass(frozen=True)
class MariadbBinaries:
    """An installation."""

    server: Path
    installer: Path
    """``mariadb-install-db``, which makes the system tables."""

    @property
    def version(self) -> str:
        """Version from ``mariadbd --version``, such as ``10.11.14``."""
        completed = self._run("--no-defaults", "--version")
        match = re.search(r"Ver (\d+(\.\d+)*)", completed.output)
        if match is None:
            raise TierwiseError(f"{self.server} does not tell its version", "install mariadb-server-core")
        return match[1]

    def check(self, engine: str, settings: Mapping[str, str]) -> None:
        """Check settings with the server's own parser, without starting it.

        Raises:
            TierwiseError: naming the first setting that is unknown or has a value that the server refuses. A
                value that the server would change with only a warning counts as refused.
        """
        if not settings:
            return
        options = [f"--{name}={value}" for name, value in settings.items()]
        complaints = self._run("--no-defaults", *options, "--help", "--verbose").errors
        if unknown := _UNKNOWN.search(complaints):
            name = unknown["name"].replace("-", "_")
            message = f"engine {engine}: setting {name} is unknown to this server"
            raise TierwiseError(message, "leave it out, or use a version that has it")
        for pattern in _BAD_VALUE:
            for bad in pattern.finditer(complaints):
                name = bad["name"].replace("-", "_")
                if name in settings:
                    message = f"engine {engine}: setting {name}: {bad['message']}"
                    raise TierwiseError(message, "choose a value that the server takes")

    def _run(self, *arguments: str) -> programs.FinishedProgram:
        return programs.run("mariadb", [self.server, *arguments])


def installed_mariadb() -> MariadbBinaries:
    """The system's server, as its package installs it."""
    # mariadb-install-db calls the third, from a package that the server's package does not depend on.
    names = ("mariadbd", "mariadb-install-db", "my_print_defaults")
    paths = {name: programs.find_program(name) for name in names}
    server, installer = paths["mariadbd"], paths["mariadb-install-db"]
    if server is None or installer is None or not all(paths.values()):
        missing = ", ".join(name for name, place in paths.items() if place is None)
        raise TierwiseError(
            f"engine mariadb: not installed: {missing}",
            "apt-get install mariadb-server-core mariadb-client-core (or mariadb-server, whose own server is "
            "left alone)",
        )
    return MariadbBinaries(server, installer)

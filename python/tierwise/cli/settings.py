"""Settings of all commands: verbosity, colour, and the user's defaults from a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tierwise.cli.printing import console

if TYPE_CHECKING:
    from rich.console import Console

CONFIG_FILE = "config.toml"


@dataclass
class Settings:
    """Settings, set once by the options before the command."""

    quiet: bool = False
    verbose: bool = False


SETTINGS = Settings()


def progress_console(*, to_stderr: bool = False) -> Console:
    """Console for progress; ``--quiet`` draws nothing."""
    return console(quiet=SETTINGS.quiet, stderr=to_stderr)


def without_color() -> None:
    """Disable colours, here and in every child process."""
    os.environ["NO_COLOR"] = "1"


def defaults() -> dict[str, Any]:
    """Defaults of options by command, from the user's ``tierwise/config.toml``; nothing if there is none.

    Raises:
        TierwiseError: if the file cannot be read or is not TOML.
    """
    from platformdirs import user_config_path

    from tierwise.model.input_files import parse_toml, read_text

    file = user_config_path("tierwise") / CONFIG_FILE
    if not file.exists():
        return {}
    return _with_parameter_names(parse_toml(read_text(file, "make it readable"), str(file)))


def _with_parameter_names(table: dict[str, Any]) -> dict[str, Any]:
    """Options are written ``own-storage`` on the command line and in the file."""
    return {
        name.replace("-", "_"): _with_parameter_names(value) if isinstance(value, dict) else value
        for name, value in table.items()
    }

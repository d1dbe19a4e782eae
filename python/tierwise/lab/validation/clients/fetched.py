"""Programs that tierwise fetches: its own account does it, and the caller keeps a copy in its cache."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tierwise.host import programs
from tierwise.host.programs import Finished, Home
from tierwise.host.users import server_user
from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import own_folder

_NETWORK = ("GOPROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy")


def cache(name: str) -> Path:
    """A private directory of the caller."""
    return Path.home() / ".cache" / "tierwise" / name


def network() -> Mapping[str, str]:
    """The caller's variables that say how to reach the network."""
    return {name: os.environ[name] for name in _NETWORK if name in os.environ}


def fetch(kept: Path, made: str, get: Callable[[Home], Finished]) -> str | None:
    """Fetch a program or a directory of programs, unless it was; give the reason of a failure.

    Args:
        kept: where the caller keeps it.
        made: its path below the account's directory.
        get: fetches it as the account into the account's directory.
    """
    if kept.exists():
        return None
    try:
        return _fetch(kept, made, get)
    except TierwiseError as error:
        return error.message


def _fetch(kept: Path, made: str, get: Callable[[Home], Finished]) -> str | None:
    home = Home("fetch-home", server_user())
    try:
        done = get(home)
        if done.status != 0:
            return done.last_line
        own_folder(kept.parent)
        draft = kept.with_name(f"{kept.name}.part")
        shutil.rmtree(draft, ignore_errors=True)
        draft.unlink(missing_ok=True)
        programs.copy(home.own / made, draft)
        draft.rename(kept)
    finally:
        home.remove()
    return None

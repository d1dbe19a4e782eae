"""The identity of a recording's files, so that a run or another host knows whether it has the same."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tierwise.cluster import remote
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import open_regular

_FIX = "check your rights to read it"


def fingerprint(uri: str) -> str:
    """Digest of a recording's files: of their contents, or of what a store says of them.

    Raises:
        HostError: a package for this kind of URI is not installed.
        TierwiseError: the files cannot be listed or read.
    """
    said: object = remote.versions(uri) if remote.is_uri(uri) else dict(_contents(Path(uri)))
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def require_same(uri: str, checksum: str | None) -> None:
    """Refuse a recording that is not the one of which the fingerprint was taken; ``None`` accepts any.

    Raises:
        TierwiseError: naming it.
    """
    if checksum is not None and fingerprint(uri) != checksum:
        raise TierwiseError(f"{uri} is not the recording that it was when the run began", "run it again")


def _contents(folder: Path) -> Iterator[tuple[str, str]]:
    for name in remote.FILES:
        if not os.path.lexists(folder / name):
            continue
        with open_regular(folder / name, _FIX, most_bytes=sys.maxsize, in_folder=True) as file:
            try:
                yield name, hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise TierwiseError(f"{folder / name}: {error.strerror}", _FIX) from error

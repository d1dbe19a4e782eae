"""Recordings by URI: identified, listed and copied through fsspec, kept open by workers, never written to."""

from __future__ import annotations

import ctypes
import glob
import hashlib
import json
import os
import re
import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import psutil

from tierwise.host import ledger
from tierwise.model.errors import HostError, TierwiseError, os_errors
from tierwise.model.extras import require_extra
from tierwise.model.input_files import open_regular
from tierwise.predict.replayer import Replayer
from tierwise.recording import ABOUT_FILE, OBSERVATION_FILE
from tierwise.recording.recording import TABLE_FILES

_FINGERPRINT_FIX = "check your rights to read it"


def recording_fingerprint(uri: str) -> str:
    """Digest of a recording's files: of their contents, or of what a store says of them."""
    state: object = file_versions(uri) if is_uri(uri) else dict(_contents(Path(uri)))
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()


def require_same_recording(uri: str, checksum: str | None) -> None:
    """Refuse a recording that is not the one of which the fingerprint was taken; ``None`` accepts any."""
    if checksum is not None and recording_fingerprint(uri) != checksum:
        raise TierwiseError(f"{uri} is not the recording that it was when the run began", "run it again")


def _contents(folder: Path) -> Iterator[tuple[str, str]]:
    for name in FILES:
        if not os.path.lexists(folder / name):
            continue
        with (
            open_regular(folder / name, _FINGERPRINT_FIX, most_bytes=sys.maxsize, in_folder=True) as file,
            os_errors(folder / name, _FINGERPRINT_FIX),
        ):
            yield name, hashlib.file_digest(file, "sha256").hexdigest()


PROTOCOLS = ("s3", "gs", "az", "abfs", "abfss", "https")
"""Stores that are read. Others run programs, unpack archives or read what the user did not name."""
MOST_BYTES = 1 << 30
"""Largest file that is copied; a whole day of recordings has at most half of it."""
FILES = (*TABLE_FILES, OBSERVATION_FILE, ABOUT_FILE)
"""Names of the files that a recording or an observation may have."""
_VERSION_KEYS = (
    "size",
    "etag",
    "md5hash",
    "crc32c",
    "mtime",
    "created",
    "updated",
    "lastmodified",
    "last_modified",
)
"""What stores say of a file that differs if its contents do; in lower case."""
_CHUNK_BYTES = 1 << 20
_FIX = "check the address and your rights to read it"
_FILE = "file://"
_WITH_CONTAINERS = ("az", "abfs", "abfss")
"""Stores whose URIs name a container before the host, as ``abfs://container@account/path``."""
_QUERY = re.compile(r"[?#&;][^/]*=")


def is_uri(text: str) -> bool:
    """Whether a text is a URI, such as ``s3://bucket/recordings``, and no path."""
    return "://" in text


def path_of_local_uri(text: str) -> str:
    """The path that a URI of a local file names; any other text as it is."""
    return text.removeprefix(_FILE) if text.startswith(f"{_FILE}/") and "::" not in text else text


def uri_without_credentials(text: str) -> str:
    """A path or URI without the credentials that may be in it."""
    return re.sub(r"[?#].*", "", re.sub(r"//.*@", "//", text)) if is_uri(text) else text


def require_allowed_uri(uri: str) -> None:
    """Refuse a URI of another store than those of ``PROTOCOLS``, a chain of stores, and credentials.

    The error shows none of the credentials.
    """
    protocol, _, rest = uri.partition("://")
    if "::" in uri or protocol not in PROTOCOLS:
        stores = ", ".join(f"{protocol}://" for protocol in PROTOCOLS)
        raise TierwiseError(
            f"{uri_without_credentials(uri)}: tierwise reads no such address", f"use {stores} or a path"
        )
    host, before = rest.partition("/")[0], rest.rpartition("@")[0]
    user = "@" in host and protocol not in _WITH_CONTAINERS
    if user or ":" in before or _QUERY.search(rest) or (protocol == "https" and "?" in rest):
        raise TierwiseError(
            f"{uri_without_credentials(uri)}: no user, password or token belongs in an address",
            "leave credentials where the store's package looks for them",
        )


def folders_matching_uri(uri: str) -> list[str]:
    """The folders that a URI with wildcards matches, sorted; without wildcards, the URI itself."""
    with _storage_errors_of(uri):
        store, path = _file_system_of(uri)
        if not glob.has_magic(path):
            return [uri]
        matches = store.glob(path, detail=True)
        names = [name for name, about in matches.items() if about["type"] == "directory"]
        return sorted(str(store.unstrip_protocol(name)) for name in names)


@contextmanager
def local_recording_copy(uri: str) -> Iterator[Path]:
    """A local folder with a recording: the one at a path itself, or a private copy, deleted on exit.

    Names of files from the store are never used: only a recording's own files are asked for.
    """
    if not is_uri(uri):
        yield Path(uri)
        return
    with ledger.make_directory("tierwise-fleet") as folder:
        with _storage_errors_of(uri):
            store, path = _file_system_of(uri)
            for name in FILES:
                _copy_file(store, f"{path.rstrip('/')}/{name}", folder / name)
        yield folder


def file_versions(uri: str) -> dict[str, dict[str, str]]:
    """What a store says of the size and version of each file of a recording, from one listing."""
    with _storage_errors_of(uri):
        store, path = _file_system_of(uri)
        listed = {str(entry["name"]).rpartition("/")[2]: entry for entry in store.ls(path, detail=True)}
        return {
            name: {key: str(value) for key, value in listed[name].items() if key.lower() in _VERSION_KEYS}
            for name in FILES
            if name in listed
        }


def _file_system_of(uri: str) -> tuple[Any, str]:
    """The file system of a URI, and the path in it."""
    require_allowed_uri(uri)
    require_extra("cluster", f"the recording {uri}", ["fsspec"])
    store, path = import_module("fsspec.core").url_to_fs(uri)
    return store, str(path)


def _copy_file(store: Any, path: str, to: Path) -> None:
    """Copy a file if it exists; the reader of recordings names what is missing."""
    try:
        source = store.open(path, "rb")
    except FileNotFoundError:
        return
    copied = 0
    with source, to.open("xb") as file:
        while chunk := source.read(_CHUNK_BYTES):
            copied += len(chunk)
            if copied > MOST_BYTES:
                raise TierwiseError(f"{path}: above {MOST_BYTES:,} bytes", "record for a shorter time")
            file.write(chunk)


@contextmanager
def _storage_errors_of(uri: str) -> Iterator[None]:
    """Turn what a store's client raises, which may be anything, into an error that names the URI."""
    try:
        yield
    except TierwiseError:
        raise
    except ImportError as error:
        package = getattr(error.__cause__, "name", None) or error.name
        fix = f"type: pip install {package}" if package else str(error)
        raise HostError(f"{uri} needs a further package", fix) from error
    except Exception as error:
        message = uri_without_credentials((str(error) or type(error).__name__).splitlines()[0])
        raise TierwiseError(f"{uri}: {message}", _FIX) from error


MOST_RESIDENT_BYTES = 400_000_000
"""Resident memory of the process above which recordings are closed."""

_Key = tuple[str, str, tuple[str, ...]]


class RecordingCache:
    """Opened recordings; those used longest ago are closed first. Threads may share it."""

    def __init__(self, most_resident_bytes: int = MOST_RESIDENT_BYTES) -> None:
        self._most_resident_bytes = most_resident_bytes
        self._open: OrderedDict[_Key, Replayer] = OrderedDict()
        self._lock = Lock()

    def get(self, uri: str, checksum: str, without: Sequence[str] = ()) -> Replayer:
        """The recording at a path or URI, which is read only if it is not open."""
        key = (uri, checksum, tuple(without))
        with self._lock:
            if key not in self._open:
                require_same_recording(uri, checksum)
                with local_recording_copy(uri) as folder:
                    self._open[key] = Replayer.open(folder, without=without)
            self._open.move_to_end(key)
            while len(self._open) > 1 and _resident_bytes() > self._most_resident_bytes:
                self._open.popitem(last=False)
                _return_memory()
            return self._open[key]

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _return_memory() -> None:
    """Give freed memory back to the kernel, which glibc does not do by itself (malloc_trim(3))."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

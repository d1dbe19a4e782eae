"""Another user of the machine, without rights, and what he tries."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NAME = "nobody"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has another user to be attacked as")

_SWAPPING = """
import os, sys
theirs, victim, prefix = sys.argv[1:]
print("ready", flush=True)
while True:
    for name in os.listdir(theirs):
        if name.startswith(prefix):
            try:
                os.rename(f"{theirs}/{name}", f"{theirs}/moved-{name}")
                os.symlink(victim, f"{theirs}/{name}")
            except OSError:
                pass
"""


@dataclass(frozen=True)
class Place:
    """Directories that every user can enter.

    Attributes:
        own: root's.
        theirs: the other user's.
        victim: root's, private, with a file.
    """

    own: Path
    theirs: Path
    victim: Path

    @property
    def secret(self) -> Path:
        """A file of root's."""
        return self.victim / "secret"

    @property
    def untouched(self) -> bool:
        """Whether the victim is as it was made."""
        status = [path.stat() for path in (self.victim, self.secret)]
        return (
            [(status.st_uid, status.st_mode & 0o7777) for status in status] == [(0, 0o700), (0, 0o600)]
            and self.secret.read_text() == "secret"
            and [path.name for path in self.victim.iterdir()] == ["secret"]
        )


@contextmanager
def place() -> Iterator[Place]:
    """New directories, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="tierwise-open-") as made:
        home = Path(made)
        home.chmod(0o755)
        place = Place(home / "own", home / "theirs", home / "victim")
        for folder in (place.own, place.theirs):
            folder.mkdir(mode=0o755)
        place.victim.mkdir(mode=0o700)
        place.secret.write_text("secret")
        place.secret.chmod(0o600)
        give(place.theirs)
        yield place


def give(path: Path) -> None:
    """Make the other user the owner."""
    account = pwd.getpwnam(NAME)
    os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)


def plant_link(link: Path, target: Path) -> None:
    """A link of the other user's."""
    link.symlink_to(target)
    give(link)


def start(code: str, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start Python as the other user; its output is captured."""
    account = pwd.getpwnam(NAME)
    python = shutil.which("python3", path="/usr/bin") or sys.executable  # the latter may be below /root
    return subprocess.Popen(
        [python, "-c", code, *map(str, arguments)], user=account.pw_uid, group=account.pw_gid,
        extra_groups=[], cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def run(code: str, *arguments: str | Path) -> tuple[int, str]:
    """Run Python as the other user; gives its status and what it wrote."""
    with start(code, *arguments) as process:
        output = "".join(process.communicate(timeout=60))
    return process.returncode, output


@contextmanager
def running(code: str, *arguments: str | Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Python of the other user that has printed a line; it is killed at the end."""
    with start(code, *arguments, **options) as process:
        try:
            assert process.stdout is not None and process.stdout.readline()
            yield process
        finally:
            process.kill()


@contextmanager
def swapping(there: Place, prefix: str) -> Iterator[None]:
    """While it is open, what appears in the other user's directory becomes a link to the victim."""
    with running(_SWAPPING, there.theirs, there.victim, prefix):
        yield

"""What kinds of malformed inputs share: bytes and JSON changed at random, and files that are none."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.paths import ROOT
from tierwise import cli

SHIPPED = ROOT / "python" / "tierwise" / "data"
EXAMPLE = ROOT / "examples" / "recordings" / "keyed-update"
_TOKENS = [
    b"\0", b"\xff\xfe", b"[" * 3000, b"(" * 3000, b"-1", b"nan", b"inf", b"1e400", b"9" * 400, b'"', b"'",
    b"\n" * 50, b"../../../etc/passwd", b"true", b"[]", b"{}", b"= 3\n", b"[a.b]\n", b"x" * 5000, b";", b"--",
    b"\xe2\x80\xae", b"=", b"\x1b[31m",
]  # fmt: skip
_DIGITS = "\0digits"
"""Stands for a number that Python does not write."""
_VALUES: list[Any] = [
    None, True, 0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, 10**40, _DIGITS, 0.5, -0.0, 1e-320, 1e308, -1e308,
    float("nan"), float("inf"), "", "x" * 100_000, "\x1b]0;owned\x07", "\x9b31m\u202egnp", "a\nb\r\0",
    "\ud800", "=1+1", "../../etc/passwd", [], {}, [[]] * 50, {"a": {"b": [1]}}, "1e400", "log", "nvme-dc",
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One kind of input: makes a malformed one in a folder, and gives what is to be tried with it."""

    name: str
    make: Callable[[Path, random.Random], Callable[[], object]]


def command(*arguments: str | Path) -> Callable[[], object]:
    """A command, run as the command line runs it."""
    return lambda: cli.main([str(argument) for argument in arguments])


def mutated(content: bytes, draw: random.Random) -> bytes:
    """A few changes anywhere: bytes, tokens, cuts, repeats, numbers."""
    changed = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(changed) + 1)
        match draw.randrange(7):
            case 0:
                changed[at:at] = draw.choice(_TOKENS)
            case 1:
                changed[at : at + draw.randint(1, 40)] = b""
            case 2:
                del changed[at:]
            case 3:
                changed[at : at + 1] = bytes([draw.randrange(256)])
            case 4:
                changed[at:at] = changed[at : at + draw.randint(1, 200)]
            case 5:
                changed[at : at + draw.randint(1, 8)] = draw.choice(_TOKENS)
            case 6:
                _change_number(changed, draw)
    return bytes(changed)


def _change_number(content: bytearray, draw: random.Random) -> None:
    digits = [at for at, byte in enumerate(content) if 48 <= byte <= 57]
    if digits:
        at = draw.choice(digits)
        content[at : at + 1] = draw.choice([b"-1", b"0", b"99999999999999999999", b"nan", b"0.5", b'"x"'])


def with_other_values(content: Any, draw: random.Random) -> Any:
    """A JSON value in which one to three values are others, are missing, or are there many times."""
    changed = copy.deepcopy(content)
    for _ in range(draw.randint(1, 3)):
        places = list(_places(changed))
        if not places:
            break
        holder, key = draw.choice(places)
        match draw.randrange(8):
            case 0:
                del holder[key]
            case 1 if isinstance(holder[key], list):
                holder[key] = holder[key] * draw.choice([2, 1000])
            case 2 if isinstance(holder, dict):
                holder[draw.choice(["\x1b[31m", "x" * 300, "", "__class__", "log"])] = holder[key]
            case 3 if isinstance(holder[key], str):
                holder[key] = draw.choice([holder[key] + "\x1b[2J", holder[key] * 1000, holder[key].upper()])
            case 4 if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
                holder[key] = holder[key] * draw.choice([-1, 0, 2, 1000, 10**18, 1e-300, 1e300])
            case _:
                holder[key] = copy.deepcopy(draw.choice(_VALUES))
    return changed


def _places(content: Any) -> Any:
    keys = content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ()
    for key in list(keys):
        yield content, key
        yield from _places(content[key])


def as_json(fields: Any, draw: random.Random) -> bytes:
    """JSON text, sometimes nested deeper than any parser goes, or with a key twice."""
    content = json.dumps(fields).encode().replace(json.dumps(_DIGITS).encode(), b"9" * 5000)
    if draw.random() < 0.05:
        content = content.replace(b":", b":" + b"[" * draw.choice([50, 127, 5000]), 1)
    if draw.random() < 0.05:
        content = content.replace(b"{", b'{"format": "other", ', 1)
    return content


def replace_by_no_file(path: Path, draw: random.Random) -> None:
    """Put in place of a file what is none, or what has no end."""
    path.unlink(missing_ok=True)
    match draw.randrange(9):
        case 0:
            os.mkfifo(path)
        case 1:
            with socket.socket(socket.AF_UNIX) as unix_socket:
                if len(str(path)) < 100:
                    unix_socket.bind(str(path))
        case 2:
            path.mkdir()
        case 3:
            path.symlink_to("/dev/zero")
        case 4:
            path.symlink_to(path.name)
        case 5:
            path.symlink_to("/proc/version")
        case 6:
            with path.open("wb") as file:
                file.truncate(draw.choice([1 << 20, 1 << 34, 1 << 42]))
        case 7:
            path.write_bytes(b"")
        case 8:
            other = path.with_name(f"{path.name}.fifo")
            os.mkfifo(other)
            path.symlink_to(other.name)


def copied(source: Path, to: Path) -> Path:
    """A copy of a folder."""
    shutil.copytree(source, to)
    return to

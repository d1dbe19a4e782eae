"""What an advice changes: roles that move and sizes of new devices; texts quoted for each format."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tierwise.advise import Advice
from tierwise.model.names import group_by_key, printable
from tierwise.model.placement import Role
from tierwise.model.units import GIB
from tierwise.report.recording.prediction_report import lost_files_sentence


def comment_line(text: str) -> str:
    """A comment of one line."""
    return f"# {printable(text)}"


def hcl_string(text: str) -> str:
    """A string of Terraform's language without interpolation: ``${`` and ``%{`` are literal."""
    return yaml_string(text).replace("${", "$${").replace("%{", "%%{")


def yaml_string(text: str) -> str:
    """A double-quoted string of YAML, in which JSON's escapes mean the same."""
    return json.dumps(printable(text), ensure_ascii=False)


def without_jinja(text: str) -> str:
    """A text without Jinja's opening marks, which Ansible would obey in any string of a playbook."""
    for mark in ("{{", "{%", "{#"):
        while mark in text:
            text = text.replace(mark, f"{{ {mark[1]}")
    return text


def yaml_lines(value: Any, indent: int = 0) -> Iterator[str]:
    """Lines of YAML for mappings, lists and scalars; a :class:`YamlBlock` is literal text."""
    space = " " * indent
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _yaml_item(f"{space}{key}:", entry, indent)
    else:
        for entry in value:
            lines = (
                list(yaml_lines(entry, indent + 2))
                if isinstance(entry, dict | list)
                else [yaml_scalar(entry)]
            )
            yield f"{space}- {lines[0].lstrip()}"
            yield from lines[1:]


class YamlBlock(str):
    """Text of several lines that YAML holds as a literal block; printable but for its line feeds."""

    __slots__ = ()


def yaml_scalar(value: str | int | bool) -> str:
    """One value of YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else yaml_string(value)


def text_of_lines(lines: Iterable[str]) -> str:
    """Lines as a file."""
    return "\n".join(lines) + "\n"


def _yaml_item(key: str, value: Any, indent: int) -> Iterator[str]:
    if isinstance(value, YamlBlock):
        yield f"{key} |"
        yield from (f"{' ' * (indent + 2)}{printable(line, chr(9))}".rstrip() for line in value.splitlines())
    elif isinstance(value, dict | list) and value:
        yield key
        yield from yaml_lines(value, indent + 2)
    else:
        yield f"{key} {yaml_scalar(value)}"


@dataclass(frozen=True)
class PlacementChange:
    """The move to a recommended placement.

    Attributes:
        engine: name of the engine.
        moves: new device of each role that moves, also of those taken along.
        needed_bytes: what a device must hold of each recorded role, with headroom and growth.
        rented_gib: size that each new volume is billed for; no entry for other devices.
        owned: new devices that are owned already.
        directory_bytes: what the whole data directory needs; 0 if that is not known.
    """

    engine: str
    moves: Mapping[Role, str]
    needed_bytes: Mapping[Role, float]
    rented_gib: Mapping[str, float]
    owned: frozenset[str]
    directory_bytes: float = 0.0

    @property
    def devices(self) -> dict[str, list[Role]]:
        """Each new device with its roles, log first."""
        return group_by_key((self.moves[role], role) for role in Role if role in self.moves)

    def cautioned(self, text: str) -> str:
        """A text for a tool, after a comment on what a stop of the machine loses."""
        caution = lost_files_sentence(self.moves)
        return f"{comment_line(caution)}\n{text}" if caution else text

    def size_gib(self, roles: Iterable[Role]) -> int:
        """Size in GiB that holds the files of some roles, rounded up."""
        return whole_gib(sum(self.needed_bytes.get(role, 0) for role in roles))

    def device_gib(self, device: str) -> int:
        """Size of a new device in GiB: for its files, and at least what it is billed for."""
        return max(self.size_gib(self.devices[device]), math.ceil(self.rented_gib.get(device, 0.0)))


def whole_gib(size_bytes: float) -> int:
    """A size in whole GiB, at least one."""
    return max(math.ceil(size_bytes / GIB), 1)


def recommended_change(advice: Advice, room: float = 1.0) -> PlacementChange | None:
    """The change that an advice recommends; ``None`` where every file stays where it is.

    Args:
        room: size that a new device needs, as a multiple of the recorded files (:attr:`Terms.room`).
    """
    option = advice.decision.option
    if option.stays:
        return None
    rented = {
        bill.device: part.quantity for bill in option.bills for part in bill.parts if part.what == "size"
    }
    return PlacementChange(
        engine=advice.run.engine,
        moves={**option.placement, **option.taken_along},
        needed_bytes={space.role: space.size_bytes * room for space in advice.spaces},
        rented_gib=rented,
        owned=frozenset(advice.have),
        directory_bytes=(advice.run.data_directory_bytes or 0) * room,
    )

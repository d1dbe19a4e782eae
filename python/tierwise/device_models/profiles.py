"""Device profiles from TOML files, by short names, and from drives that others measured."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from tierwise import _core
from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, digest_of_files, parse_toml, read_text
from tierwise.model.names import checked_file_below, did_you_mean, nearest_names, path_below
from tierwise.results.measurements import StrictModel

FOLDER = DATA / "devices"

ProfileTexts = tuple[str, str, tuple[tuple[str, str], ...]]
"""Text and file of a profile, then name and text of each profile that it refers to."""

_REFERRING_KEYS = ("like", "member")
_MOST_REFERRED = 64
"""Keys of a profile whose values are names of other profiles."""


DOUBT = "# Doubt: "
"""Begins a line of a profile with what it gets wrong: a prediction with the profile repeats it."""

_MEDIUM_TIMES = ("read_us", "program_us", "read_p50_us", "write_p50_us")
_LEAST_MEDIUM_US = 1.0
"""Least time of flash or of a volume that is believed; 0 leaves the part out."""
_PROBED = re.compile("measured: tierwise (device )?probe ")
"""Beginning of the sources in probed profiles, until November 2026 without the group of the command."""

End = Literal["fast", "slow"]
ENDS: tuple[End, End] = ("fast", "slow")
"""Of the ranges of a profile: all of its numbers at their faster end, or all at their slower one."""

_TIME = re.compile(r"(?<!_per)_(us|ms|s)$")
"""Name of a time: a longer one is slower. Of rates, counts and sizes, a greater one is faster."""


@dataclass(frozen=True)
class DeviceProfile:
    """A validated profile.

    Attributes:
        name: stem of its file.
        kind: ``hdd``, ``ssd``, ``ram``, ``array`` or ``volume``.
        summary: one line for people.
        capacity_bytes: addressable size.
        write_cache: whether a completed write may be lost with the power until a flush.
        endurance_tb_written: host writes that its maker allows, in 10^12 bytes; ``None``: not known.
        sources: where the numbers come from, by key; a text that begins with "estimated:" marks an estimate.
        text: the file's text.
        file: the file.
        library: texts of the profiles that it refers to, by name.
        core: the compiled profile.
    """

    name: str
    kind: str
    summary: str
    capacity_bytes: int
    write_cache: bool
    endurance_tb_written: float | None
    sources: dict[str, str]
    text: str
    file: Path
    library: Mapping[str, str]
    core: _core.Profile = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[..., DeviceProfile], tuple[str, Path, Mapping[str, str]]]:
        """Its texts, from which another process makes it again without a file."""
        return _profile_of_texts, (self.text, self.file, dict(self.library))

    @property
    def is_own(self) -> bool:
        """Whether it is a file of the user's, whatever its name."""
        return self.file.parent != FOLDER

    @property
    def own_digest(self) -> str | None:
        """Of a file of the user's, and those that it refers to: it may change under its name."""
        return digest_of_files([self.text, sorted(self.library.items())]) if self.is_own else None

    @cached_property
    def fields(self) -> dict[str, Any]:
        """Every key of the file, with those that it took over from another by ``like``."""
        fields: dict[str, Any] = json.loads(self.core.fields)
        return fields

    @cached_property
    def likes(self) -> tuple[DeviceProfile, ...]:
        """The profiles that it is like: its own base, the base of that, and so on."""
        name = parse_toml(self.text, str(self.file)).get("like")
        if not name:
            return ()
        base = self._other(name)
        return (base, *base.likes)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Least and greatest value of numbers that vary between drives or runs, by key; a member's too."""
        return {**(self.member.ranges if self.member else {}), **self._own_ranges}

    @cached_property
    def _own_ranges(self) -> dict[str, tuple[float, float]]:
        return {key: (least, most) for key, (least, most) in self.fields.get("range", {}).items()}

    def at(self, end: End) -> DeviceProfile:
        """The profile with all of its ranges at one end; itself if it has none."""
        if not self.ranges:
            return self
        library = dict(self.library)
        if self.member and self.member.ranges:
            member = self.member.at(end)
            library = {**member.library, self.fields["member"]: member.text}
        if not self._own_ranges:
            return _profile_of_texts(self.text, self.file, library)
        original = f"{self.name}-in-the-middle"
        numbers = [f"{key} = {_end_of(key, pair, end)!r}" for key, pair in self._own_ranges.items()]
        sources = [f'"{key}" = "an end of its range"' for key in self._own_ranges]
        text = "\n".join([f'like = "{original}"', *numbers, "[source]", *sources])
        return _profile_of_texts(text, self.file, {**library, original: self.text})

    @cached_property
    def doubts(self) -> list[str]:
        """What a probe wrote into it or what it refers to, and times that no medium reaches."""
        lines = [line for text in (self.text, *self.library.values()) for line in text.splitlines()]
        times = {**self.fields, **self.fields.get("latency", {})}
        return [
            *(line.removeprefix(DOUBT) for line in lines if line.startswith(DOUBT)),
            *(
                f"{key} = {times[key]:g} is less than any device takes: a time in us is meant"
                for key in _MEDIUM_TIMES
                if isinstance(times.get(key), int | float)
                and 0 < times[key] < _LEAST_MEDIUM_US
                and not _PROBED.match(self.sources.get(key, ""))
            ),
        ]

    @cached_property
    def member(self) -> DeviceProfile | None:
        """The device of which an array has several; ``None`` for any other."""
        name = self.fields.get("member")
        return self._other(name) if name else None

    def _other(self, name: str) -> DeviceProfile:
        return _profile_of_texts(self.library[name], self.file.with_name(f"{name}.toml"), self.library)

    @property
    def medium(self) -> str:
        """Its kind, or that of an array's members."""
        return self.member.medium if self.member else self.kind


def _end_of(key: str, ends: tuple[float, float], end: End) -> float:
    is_time = _TIME.search(key) is not None
    return ends[0] if is_time == (end == "fast") else ends[1]


def profile_names() -> list[str]:
    """Names of the profiles that ship, in alphabetical order."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


def shipped_profile_texts() -> dict[str, str]:
    """Texts of the profiles that ship, by name; other profiles may refer to them."""
    return {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("*.toml")}


def array_with_failed_member(profile: DeviceProfile) -> DeviceProfile:
    """An array as it is after the death of one member.

    Raises:
        TierwiseError: if it is no array, or survives no failure.
    """
    if profile.kind != "array":
        raise TierwiseError(
            f"{profile.name} has no member that could fail", "give failed_member to an array only"
        )
    text = f"""
        like = "{profile.name}-whole"
        failed_members = 1
        summary = {json.dumps(f"{profile.summary}, one failed", ensure_ascii=False)}
        [source]
        failed_members = "by definition: one member has died"
    """
    library = {**profile.library, f"{profile.name}-whole": profile.text}
    return _profile_of_texts(text, profile.file.with_name(f"{profile.file.stem}-one-failed.toml"), library)


@lru_cache(maxsize=1024)
def is_profile_path(name_or_path: str) -> bool:
    """Whether it is the path of a profile's file, not the name of a profile that ships."""
    path = Path(name_or_path)
    return path.suffix == ".toml" or len(path.parts) > 1


def load_profile(name_or_path: str) -> DeviceProfile:
    """Load a profile that ships by its name, also a short one, or any by the path of its TOML file."""
    file = _file_of(name_or_path)
    return parse_profile(read_text(file, "give a readable TOML file"), file)


def parse_profile(text: str, file: Path) -> DeviceProfile:
    """Check the text of a profile; ``file`` gives its name and appears in errors."""
    return _profile_of_texts(text, file, _referenced_texts(text, file))


def profile_texts_of(core: _core.Profile) -> ProfileTexts:
    """The texts of a compiled profile: :func:`compile_profile` makes it of them in another process."""
    text, file, library = core.texts
    return text, file, tuple(library.items())


@lru_cache
def compile_profile(texts: ProfileTexts) -> _core.Profile:
    """The profile of these texts, compiled once: the simulator keeps the state of a worn device with it."""
    text, file, library = texts
    try:
        return _core.parse_profile(text, file, dict(library))
    except ValueError as error:
        message, fix = error.args
        raise TierwiseError(*_unknown_key_message(message, fix, texts)) from None


def _unknown_key_message(message: str, fix: str, texts: ProfileTexts) -> tuple[str, str]:
    """Message and fix with the known key that resembles an unknown one.

    Of a profile that is like another, the crate asks for sources before it knows the keys.
    """
    text, file, library = texts
    path, sourceless, _ = message.removeprefix(f"{file}: ").partition(" has no source")
    like = parse_toml(text, file).get("like") if sourceless else None
    if like and (unknown := _unknown_key(path, like, dict(library))):
        key, known = unknown
        message, fix = f"{file}: unknown key {key}", f"remove it or use one of: {', '.join(known)}"
    _, _, key = message.partition(": unknown key ")
    near = did_you_mean(key.rpartition(".")[2], fix.partition(": ")[2].split(", "), "") if key else ""
    return message, f"{near} {fix}".strip()


def _unknown_key(path: str, like: str, library: dict[str, str]) -> tuple[str, list[str]] | None:
    """The first part of a path that is no key of the profile, and the keys of its table."""
    try:
        noted = json.loads(_core.profile_keys(library[like], like, library))
    except ValueError:  # that profile is wrong too
        return None
    forms = {key["path"]: key["form"] for key in noted}
    table = ""
    for part in path.split("."):
        key = f"{table}{part}"
        if key not in forms:
            below = (other.removeprefix(table) for other in forms if other.startswith(table))
            known = sorted(name for name in below if "." not in name)
            return (key, known) if known else None  # a table that the profile has not
        if forms[key] != "table":
            return None
        table = f"{key}."
    return None


def _profile_of_texts(text: str, file: Path, library: Mapping[str, str]) -> DeviceProfile:
    core = compile_profile((text, str(file), tuple(library.items())))
    return DeviceProfile(
        name=core.name,
        kind=core.kind,
        summary=core.summary,
        capacity_bytes=core.capacity_bytes,
        write_cache=core.write_cache,
        endurance_tb_written=core.endurance_tb_written,
        sources=dict(core.sources),
        text=text,
        file=file,
        library=library,
        core=core,
    )


def _referenced_texts(text: str, file: Path) -> dict[str, str]:
    """Texts of the profiles that a text refers to, and of those they refer to.

    A name is first looked for beside the file that refers to it, then among those that ship.
    """
    library: dict[str, str] = {}
    waiting = [(text, file)]
    while waiting:
        referring, named = waiting.pop()
        for name, key in _references(referring, named).items():
            if name in library:
                continue
            if not name or is_profile_path(name):
                raise _unknown(file, key, name)
            places = {FOLDER: path_below(FOLDER, f"{name}.toml")}
            if named.parent != FOLDER:
                places = {named.parent: checked_file_below(named.parent, f"{name}.toml"), **places}
            folder = next((folder for folder, path in places.items() if path.exists()), None)
            if folder is None:
                raise _unknown(file, key, name)
            library[name] = read_text(places[folder], "give a readable TOML file")
            waiting.append((library[name], places[folder]))
        if len(library) > _MOST_REFERRED:
            raise TierwiseError(f"{file} refers to more than {_MOST_REFERRED} profiles", "refer to fewer")
    return library


def _unknown(file: Path, key: str, name: str) -> TierwiseError:
    fix = "name a profile that ships, or a TOML file beside this one"
    if is_profile_path(name):
        stem = Path(name).stem
        fix = f'write {key} = "{stem}", which is {stem}.toml beside this file'
    else:
        with suppress(TierwiseError):
            fix = f'write {key} = "{full_profile_name(name, profile_names())}"'
    return TierwiseError(f'{file}: {key} = "{name}" is not a known profile', fix)


def _references(text: str, file: Path) -> dict[str, str]:
    """Names that a text refers to, with their keys."""
    table = parse_toml(text, str(file))  # its message quotes no line, which may be long or a secret
    return {name: key for key in _REFERRING_KEYS if isinstance(name := table.get(key), str)}


def _file_of(name_or_path: str) -> Path:
    if is_profile_path(name_or_path):
        return Path(name_or_path)
    return FOLDER / f"{full_profile_name(name_or_path, profile_names())}.toml"


_FITS: Sequence[Callable[[str, str], bool]] = (
    lambda profile, name: profile.partition("-")[2] == name,
    lambda profile, name: profile.endswith(f"-{name}"),
    lambda profile, name: profile.startswith(f"{name}-"),
    lambda profile, name: f"-{name}-" in profile,
)
"""Whether a profile's name without its kind, its end, its beginning or a part of it is what was typed."""


def full_profile_name(name: str, known: Sequence[str]) -> str:
    """The one known profile that a name stands for.

    A name is the full name of a profile; or that name without its kind (``nvme-dc`` for ``ssd-nvme-dc``); or
    its end, its beginning or a part of it, in whole words, if only one profile matches.
    """
    if name in known:
        return name
    if not name:
        raise TierwiseError("a device has no name", "write for example nvme-dc")
    for fits in _FITS:
        matching = [candidate for candidate in known if fits(candidate, name)]
        if len(matching) > 1:
            raise TierwiseError(
                f"device {name!r} may be any of {', '.join(matching)}", "give more of the name of one of them"
            )
        if matching:
            return matching[0]
    in_another_case = [other for other in known if any(fits(other, name.casefold()) for fits in _FITS)]
    near = in_another_case[:3] or nearest_names(name, known, 3, cutoff=0.4)
    like = f", such as {', '.join(near)}" if near else ""
    fix = f"use one that tierwise device list prints{like}"
    raise TierwiseError(f"unknown device profile {name!r}", f"{fix}, or the path of a TOML file")


_FIX = "give a file of the form that docs/how-to/own-device.md describes"


class ProfileOfMeasuredDrive(StrictModel):
    """A profile made from the files of a measured drive."""

    kind: str
    """Kind of the device."""
    summary: str
    """One line about the drive."""
    capacity_bytes: int
    """Addressable size, in bytes."""
    text: str
    """The profile, as TOML."""


def profile_from_drive_files(geometry: Path, seek: Path) -> ProfileOfMeasuredDrive:
    """Make a profile from the files of a drive.

    Args:
        geometry: JSON with the surfaces, zones, mechanics, cache and overheads of a drive.
        seek: CSV with the columns ``distance_cylinders,seek_ms``.
    """
    texts = {"geometry": _read(geometry), "seek": _read(seek)}
    try:
        text = _core.import_drive(texts["geometry"], texts["seek"])
    except ValueError as error:
        which, problem = error.args
        raise TierwiseError(f"{geometry if which == 'geometry' else seek}: {problem}", _FIX) from None
    drive = parse_profile(text, geometry)
    return ProfileOfMeasuredDrive(
        kind=drive.kind, summary=drive.summary, capacity_bytes=drive.capacity_bytes, text=text
    )


def _read(file: Path) -> str:
    return read_text(file, "give a readable text file")

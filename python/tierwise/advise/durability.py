"""What power cuts do to completed writes on each device, and what studies of cuts and deaths have shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from tierwise.device_models.profiles import DeviceProfile
from tierwise.model import numbers
from tierwise.model.input_files import DATA, parse_as_model, read_text
from tierwise.model.placement import Role
from tierwise.predict import RECORDED, resolve_device
from tierwise.predict.named_devices import is_instance_store, is_volatile_memory
from tierwise.results.measurements import StrictModel

ShownT = TypeVar("ShownT", bound=StrictModel)

SHOWN_FILE = DATA / "durability.json"
NOT_TESTED = "not tested"
_SOURCES = (
    "ephemeral",
    "power_loss_protection",
    "write_cache",
    "flush_us",
    "flush_latency_us",
    "latency.flush_us",
)
"""Keys of a profile's sources that speak of what lasts, the most telling first."""


class PowerCutCounts(StrictModel):
    """Power cuts of one study run on one placement with one durability setting."""

    engine: str
    profiles: list[str]
    """Device profiles of the placement."""
    lies: bool
    """Whether a device acknowledged flushes without obeying them."""
    durability: str
    durable: bool
    cuts: int
    harmed: int
    """Cuts that lost acknowledged commits or damaged the database."""


class PowerCutFindings(StrictModel):
    """What the shipped studies of power cuts found; written by ``benchmarks/power_cuts.py``."""

    cuts: list[PowerCutCounts] = []


class DeviceDurability(StrictModel):
    """One device of a placement in a power cut."""

    device: str
    roles: list[Role]
    write_cache: bool | None
    """Whether a power cut may lose completed writes until a flush; ``None`` if the device is not known."""
    fact: str
    """What the profile says, as a sentence."""
    source: str
    """Of that fact, from the profile; empty for the recorded device."""
    cuts: list[PowerCutCounts]
    """Of placements that used this device, with the engine's durable setting."""

    @property
    def shown(self) -> str:
        """What the studies found, or ``not tested``."""
        if not self.cuts:
            return NOT_TESTED
        names = ", ".join(dict.fromkeys(f"{cut.engine} {cut.durability}" for cut in self.cuts))
        return (
            f"{self.harmed_of_made} power cuts lost an acknowledged commit or damaged the database ({names})"
        )

    @property
    def harmed_of_made(self) -> str:
        """``0 of 50``: the power cuts that did harm, of all."""
        return f"{sum(cut.harmed for cut in self.cuts)} of {sum(cut.cuts for cut in self.cuts)}"


def device_durability(placement: Mapping[Role, str], engine: str | None = None) -> list[DeviceDurability]:
    """The devices of a placement in the order of their first roles.

    Args:
        placement: device of each role, by a name that a scenario may use.
        engine: count only power cuts of this engine; of all engines when left out.

    Raises:
        TierwiseError: if a device is unknown.
    """
    devices = dict.fromkeys(placement.values())
    return [
        _durability_of_device(device, [role for role, name in placement.items() if name == device], engine)
        for device in devices
    ]


def _durability_of_device(device: str, roles: list[Role], engine: str | None) -> DeviceDurability:
    if device == RECORDED:
        fact = "the recorded device: its cache was not looked at; tierwise device probe checks its flush"
        return DeviceDurability(device=device, roles=roles, write_cache=None, fact=fact, source="", cuts=[])
    profile = resolve_device(device).profile
    return DeviceDurability(
        device=device,
        roles=roles,
        write_cache=profile.write_cache,
        fact=_fact(profile),
        source=_source(profile),
        cuts=[
            cut
            for cut in shipped_power_cuts().cuts
            if profile.name in cut.profiles and cut.durable and not cut.lies and engine in (None, cut.engine)
        ],
    )


def _fact(profile: DeviceProfile) -> str:
    if is_volatile_memory(profile):
        return "memory: nothing survives a power cut"
    if is_instance_store(profile):
        return "instance store: a stop of the machine, or its move to another host, takes all its files"
    if profile.write_cache:
        return "volatile write cache: completed writes may be lost until a flush"
    if profile.kind == "volume":
        return "no volatile cache: a completed write is kept by the provider"
    return "no volatile cache, or one protected against power loss: completed writes are kept"


def _source(profile: DeviceProfile) -> str:
    """What the profile gives as the source, or its summary."""
    if is_instance_store(profile):
        return profile.summary
    return next((profile.sources[key] for key in _SOURCES if key in profile.sources), profile.summary)


def shipped_power_cuts() -> PowerCutFindings:
    """The shipped findings on power cuts; as :func:`_shipped_findings`."""
    shown: PowerCutFindings = _shipped_findings(SHOWN_FILE, PowerCutFindings)
    return shown


@cache
def _shipped_findings(file: Path, kind: type[ShownT]) -> ShownT:
    """Shipped findings of one kind; none without the file.

    Raises:
        TierwiseError: if the file is not of this version.
    """
    if not file.exists():
        return kind()
    fix = "install tierwise again"
    return parse_as_model(kind, read_text(file, fix), str(file), fix)


DEATHS_FILE = DATA / "device-deaths.json"


class DeviceDeathCounts(StrictModel):
    """Deaths of the device of one role under one engine, by what came of them."""

    engine: str
    role: Role
    deaths: int
    as_is: int
    """The engine started with a blank device as it was."""
    salvaged: int
    """It started after the step that its documentation gives for lost files."""
    never: int
    """It did not start: a backup is needed."""
    lost: int
    """The engine started, and acknowledged commits were gone."""
    damaged: int
    """The engine started, and its database was not what whole transactions make it."""
    steps: list[str] = []
    """The steps after which it started."""

    @property
    def words(self) -> str:
        """Such as ``starts only after pg_resetwal -f; 3 of 3 deaths lost acknowledged commits``."""
        parts, deaths = [self._start()], numbers.counted_noun(self.deaths, "death")
        if self.damaged:
            parts.append(f"{self.damaged} of {deaths} left a damaged database")
        if self.lost:
            parts.append(f"{self.lost} of {deaths} lost acknowledged commits")
        if not (self.lost or self.damaged or self.never):
            parts.append(f"0 of {deaths} lost an acknowledged commit")
        return "; ".join(parts)

    def _start(self) -> str:
        if self.never == self.deaths:
            deaths = numbers.counted_noun(self.deaths, "death")
            return f"does not start again in {self.never} of {deaths}: restore a backup"
        if self.as_is == self.deaths:
            return "starts as it is"
        step = f"starts only after {' or '.join(self.steps)}"
        if self.salvaged == self.deaths:
            return step
        counts = {"starts as it is": self.as_is, step: self.salvaged, "does not start again": self.never}
        return ", ".join(f"{what} in {count} of {self.deaths}" for what, count in counts.items() if count)


class DeviceDeathFindings(StrictModel):
    """What the shipped studies of deaths found; written by ``benchmarks/device_deaths.py``."""

    deaths: list[DeviceDeathCounts] = []


def device_death_outcomes(engine: str, roles: Collection[Role]) -> dict[Role, str]:
    """What the death of the device of each role did to an engine in a study, or ``not tested``."""
    known = {(death.engine, death.role): death.words for death in shipped_device_deaths().deaths}
    return {role: known.get((engine, role), NOT_TESTED) for role in roles}


def shipped_device_deaths() -> DeviceDeathFindings:
    """The shipped findings on deaths; as :func:`_shipped_findings`."""
    shown: DeviceDeathFindings = _shipped_findings(DEATHS_FILE, DeviceDeathFindings)
    return shown

"""One case of a validation: a client program on a database, with its placements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tierwise.device_models import profiles
from tierwise.host.cgroups import MemoryLimit
from tierwise.lab.studies.study import RunPlan, Study
from tierwise.lab.validation import clients, servers
from tierwise.lab.validation.validation_spec import BUFFER, OWN, CaseSpec, ValidationSpec
from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.model.placement import DeviceSpec, Placement, Role


@dataclass(frozen=True)
class ValidationCase:
    """One client program with one number of clients."""

    name: str
    family: str
    """Family of the client, which is left out when its errors are calibrated."""
    spec: CaseSpec
    study: Study
    """Study with the placements; the storage of a placement is created from it."""
    laps: bool
    """Whether the work is a job that is done once and timed, instead of repeated and counted."""
    slot_s: float
    recorded_s: float
    warm_up_s: float
    most_blocks: int
    changed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Settings in which placements differ, by name."""
    memory_bytes: Mapping[str, int | None] = field(default_factory=dict)
    """Most memory of the server of each placement, by name."""

    @property
    def engine(self) -> str:
        """Name of the engine."""
        return self.study.engines[0]

    @property
    def placements(self) -> Sequence[str]:
        """Names of the placements."""
        return list(self.study.placements)

    @property
    def recorded(self) -> Sequence[str]:
        """Placements under which the case is recorded."""
        return [place for place in self.spec.recorded if place in self.study.placements]

    @property
    def roles(self) -> frozenset[Role]:
        """Roles that can be placed."""
        selected = {Role.SELECTED} if self.spec.selected else set()
        return servers.placeable_roles(self.spec.server, self.engine) | selected

    def client(self) -> clients.ValidationClient[Any]:
        """The client program."""
        with self._named():
            return clients.client_class(self.spec.client)(self.spec.options, self.study.clients)

    def database(self, placement: str | None = None) -> servers.CaseDatabase:
        """A database of the case, not yet made, with the settings of a placement if one is given."""
        changed = {} if placement is None else self.changed.get(placement, {})
        settings = {**self.study.settings.get(self.engine, {}), **changed}
        database = servers.create_database(
            self.spec.server, self.engine, settings, binary_log=self.spec.binary_log
        )
        database.selected = self.spec.selected
        return database

    def check(self) -> None:
        """Check what its slots need, before anything is made: devices, memory, settings."""
        with self._named():
            self._check()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Errors name the case."""
        try:
            yield
        except TierwiseError as error:
            raise TierwiseError(f"case {self.name}: {error.message}", error.fix) from error

    def _check(self) -> None:
        for device in self.study.devices.values():
            if device.profile not in (None, OWN):
                profiles.load_profile(str(device.profile))
        for size_bytes in filter(None, self.memory_bytes.values()):
            MemoryLimit.require_size(size_bytes)
        given = self.study.settings.get(self.engine, {})
        every = [given, *({**given, **self.changed.get(name, {})} for name in self.placements)]
        if self.spec.server is not None:
            for number, settings in enumerate(every):
                if settings not in every[:number]:
                    servers.check_server_settings(self.spec.server, settings)
        elif any(every) or any(self.memory_bytes.values()):
            raise TierwiseError(
                f"client {self.spec.client} has no server, whose settings, buffer or memory could be set",
                "leave them out, in its placements too",
            )

    def plan(self, placement: str, seed: int) -> RunPlan:
        """The plan by which the storage of a placement is opened."""
        placed = self.study.placements[placement]
        return RunPlan(f"{self.name}/{placement}", self.engine, placed, 0, 0, seed)

    def placed_in(self, directory: Path) -> Study:
        """The study with the machine's own storage in ``directory``."""
        devices = {
            name: DeviceSpec(path=str(directory)) if device.profile == OWN else device
            for name, device in self.study.devices.items()
        }
        return self.study.model_copy(update={"devices": devices})


def cases_to_run(
    spec: ValidationSpec, names: Sequence[str] = (), *, held_back: bool = False
) -> tuple[list[ValidationCase], dict[str, str]]:
    """Cases to run, with the placements that they support; and what is left out, with the reason.

    ``names``, or prefixes of names, replace the selection of a prospective round's cases or the others.
    """
    every = [_case(spec, case, count) for case in spec.cases for count in case.clients]
    for name, times in Counter(case.name for case in every).items():
        if times > 1:
            raise TierwiseError(f"{times} cases have the name {name}", "give each a name of its own")
    selected = (
        _named(every, names)
        if names
        else [candidate for candidate in every if candidate.spec.held_back == held_back]
    )
    kept, left_out = [], dict[str, str]()
    for case in selected:
        possible, skipped = _possible(case)
        left_out |= {f"{case.name}/{what}" if what else case.name: why for what, why in skipped.items()}
        if possible is not None:
            kept.append(possible)
    return kept, left_out


def all_case_specs(spec: ValidationSpec) -> dict[str, CaseSpec]:
    """All cases by name, whether they can be run here or not."""
    return {_name(case, count): case for case in spec.cases for count in case.clients}


def _named(cases: Sequence[ValidationCase], names: Sequence[str]) -> list[ValidationCase]:
    for name in names:
        if not any(_fits(case, name) for case in cases):
            fix = f"{unknown_name_fix(name, [case.name for case in cases])}, or the beginning of one"
            raise TierwiseError(f"no case {name!r}", fix)
    return [case for case in cases if any(_fits(case, name) for name in names)]


def _name(case: CaseSpec, count: int) -> str:
    name = case.name or f"{case.client}-{_engine(case)}"
    return f"{name}-{count}" if len(case.clients) > 1 or count > 1 else name


def _engine(case: CaseSpec) -> str:
    return case.server or clients.client_class(case.client).engine


def _fits(case: ValidationCase, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}-")


def _case(spec: ValidationSpec, case: CaseSpec, count: int) -> ValidationCase:
    name = _name(case, count)
    client = clients.client_class(case.client)
    if (case.server or "") not in (client.servers or [""]):
        fix = f"use server {' or '.join(client.servers)}" if client.servers else "leave server out"
        given = f"server {case.server}" if case.server else "no server"
        raise TierwiseError(f"case {name}: client {case.client} with {given}", fix)
    return ValidationCase(
        name=name,
        family=client.family,
        spec=case,
        study=_study(spec, case, name, count),
        laps=client.laps,
        slot_s=case.slot_s or spec.slot_s,
        recorded_s=case.recorded_s or spec.recorded_s,
        warm_up_s=case.warm_up_s or spec.warm_up_s,
        most_blocks=case.most_blocks or spec.most_blocks,
        changed={name: _changed(spec, case, name) for name in [*case.recorded, *case.placements]},
        memory_bytes={
            name: spec.memory_bytes_of(name) or case.memory for name in [*case.recorded, *case.placements]
        },
    )


def _changed(spec: ValidationSpec, case: CaseSpec, placement: str) -> dict[str, str]:
    """Settings in which a placement differs from the case, by name."""
    changed = dict(setting.split("=", 1) for setting in spec.settings_of(placement))
    buffer = spec.memory_bytes_of(placement, BUFFER)
    if buffer is not None:
        name = servers.BUFFER_SETTINGS.get(case.server or "", BUFFER)
        changed[name] = f"{buffer >> 10}{'kB' if case.server == 'postgres' else 'K'}"
    return changed


def _study(spec: ValidationSpec, case: CaseSpec, name: str, count: int) -> Study:
    engine = _engine(case)
    names = list(dict.fromkeys([*case.recorded, *case.placements]))
    used = {device for name in names for device in spec.devices_of(name).values()}
    settings = {**(spec.settings.get(case.server, {}) if case.server else {}), **case.settings}
    return Study(
        name=name,
        question="How far are predictions from measurements?",
        engines=[engine],
        workload=case.client,
        clients=count,
        waits=False,
        repeats=1,
        baseline=names[0],
        devices={
            device: DeviceSpec(profile=spec.devices[device]) for device in spec.devices if device in used
        },
        placements={name: _placement(name, spec.devices_of(name)) for name in names},
        sizes={**spec.sizes, **case.sizes},
        settings={engine: settings} if settings else {},
    )


def _placement(name: str, roles: Mapping[str, str]) -> Placement:
    placed = {Role(role): device for role, device in roles.items() if role != "all"}
    return Placement(name=name, roles=placed, default=roles["all"])


def _possible(case: ValidationCase) -> tuple[ValidationCase | None, dict[str, str]]:
    """The case with the placements that it supports; and those that it does not, with the reason."""
    if missing := _missing(case):
        return None, {"": missing}
    skipped = {
        placement.name: f"{case.engine} has no place of its own for {', '.join(alien)}"
        for placement in case.study.placements.values()
        if (alien := sorted(str(role) for role in placement.roles if role not in case.roles))
    }
    names = [placement for placement in case.placements if placement not in skipped]
    if not any(place in names for place in case.spec.recorded):
        return None, skipped
    study = case.study.model_copy(update={"baseline": names[0]}).with_placements(names)
    return replace(case, study=study), skipped


def _missing(case: ValidationCase) -> str | None:
    """Missing packages."""
    return servers.missing_package(case.spec.server) or case.client().missing()

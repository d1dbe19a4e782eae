"""One case of a validation: a client or a workload, its clients, and the placements of this round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tierwise.model.errors import TierwiseError
from tierwise.model.placement import DeviceSpec, Placement
from tierwise.model.roles import Role
from tierwise.model.suggestions import one_of
from tierwise.studies import runner
from tierwise.studies.spec import Study
from tierwise.validation import clients, servers
from tierwise.validation.spec import OWN, CaseSpec, ValidationSpec, placements_of

OWN_FAMILY = "tierwise"
"""Family of tierwise's own workloads."""


@dataclass(frozen=True)
class Case:
    """One client program, or workload, with one number of clients."""

    name: str
    family: str
    """Family of the client, which is left out when its errors are calibrated."""
    spec: CaseSpec
    study: Study
    """Study with the placements of this round; the runner creates its storage from it."""
    laps: bool
    """Whether the work is done once and timed, instead of repeated and counted."""
    seconds: float
    """Length of a measured mix."""
    recorded_seconds: float

    @property
    def external(self) -> bool:
        """Whether the client is not tierwise's own."""
        return self.spec.client is not None

    @property
    def recorded(self) -> Sequence[str]:
        """Placements under which the case is recorded."""
        return [place for place in self.spec.recorded if place in self.study.placements]

    def client(self) -> clients.Client[Any]:
        """The client program of an external case."""
        return clients.create(self.spec.client or "", self.spec.options, self.study.clients)

    def placed_in(self, directory: Path) -> Study:
        """The study with the machine's own storage in ``directory``."""
        devices = {
            name: DeviceSpec(path=str(directory)) if device.profile == OWN else device
            for name, device in self.study.devices.items()
        }
        return self.study.model_copy(update={"devices": devices})


def cases_of(
    spec: ValidationSpec, quick: bool = False, names: Sequence[str] = (), rotation: int = 0
) -> tuple[list[Case], dict[str, str]]:
    """Cases to run, with the placements that they support; and what is left out, with the reason.

    Args:
        spec: all there are; already :meth:`~ValidationSpec.selected` where ``quick``.
        quick: only the small selection.
        names: names of cases, or prefixes of names; if given, they replace the selection's.
        rotation: number of the round, from 0; it decides which placements each case takes.

    Raises:
        TierwiseError: if there is no such case.
    """
    every = [_case(spec, case, count, rotation) for case in spec.cases for count in case.clients]
    kept, left_out = [], dict[str, str]()
    for case in chosen(every, list(names) or (spec.quick.cases if quick else [])):
        found, skipped = _possible(case)
        left_out |= {f"{case.name}/{what}" if what else case.name: why for what, why in skipped.items()}
        if found is not None:
            kept.append(found)
    return kept, left_out


def names_of(spec: ValidationSpec) -> list[str]:
    """Names of all cases, whether they can be run here or not."""
    return [_name(case, count) for case in spec.cases for count in case.clients]


def chosen(cases: Sequence[Case], names: Sequence[str]) -> list[Case]:
    """Cases by name, or by a prefix of the name.

    Raises:
        TierwiseError: if there is no such case.
    """
    for name in names:
        if not any(_fits(case, name) for case in cases):
            fix = f"{one_of(name, [case.name for case in cases])}, or the beginning of one"
            raise TierwiseError(f"no case {name!r}", fix)
    return [case for case in cases if not names or any(_fits(case, name) for name in names)]


def _name(case: CaseSpec, count: int) -> str:
    name = case.name or "-".join([case.workload or case.client or "", _engine(case)])
    return f"{name}-{count}" if len(case.clients) > 1 or count > 1 else name


def _engine(case: CaseSpec) -> str:
    return case.engine or case.server or clients.engine_of(case.client or "")


def _fits(case: Case, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}-")


def _case(spec: ValidationSpec, case: CaseSpec, count: int, rotation: int) -> Case:
    name, engine = _name(case, count), _engine(case)
    laps = clients.laps_of(case.client) if case.client else False
    study = _study(spec, case, name, engine, count, placements_of(case, rotation))
    return Case(
        name=name,
        family=clients.family_of(case.client) if case.client else OWN_FAMILY,
        spec=case,
        study=study,
        laps=laps,
        seconds=case.seconds or spec.seconds,
        recorded_seconds=case.recorded_seconds or spec.recorded_seconds,
    )


def _study(
    spec: ValidationSpec, case: CaseSpec, name: str, engine: str, count: int, names: Sequence[str]
) -> Study:
    used = {device for one in names for device in spec.placements[one].values()}
    merged = {**spec.settings.get(engine, {}), **case.settings}
    return Study(
        name=name,
        question="How far are predictions from measurements?",
        engines=[engine],
        workload=case.workload or case.client or "",
        scale=case.scale,
        constants=case.constants,
        clients=count,
        seconds=case.seconds or spec.seconds,
        warmup_transactions=case.warmup_transactions,
        caches=case.caches,
        waits=False,
        memory=case.memory,
        repeats=spec.repeats,
        baseline=names[0],
        devices={one: DeviceSpec(profile=spec.devices[one]) for one in spec.devices if one in used},
        placements={one: _placement(one, spec.placements[one]) for one in names},
        sizes={**spec.sizes, **case.sizes},
        settings={engine: merged} if merged else {},
    )


def _placement(name: str, roles: Mapping[str, str]) -> Placement:
    placed = {Role(role): device for role, device in roles.items() if role != "all"}
    return Placement(name=name, roles=placed, default=roles["all"])


def _possible(case: Case) -> tuple[Case | None, dict[str, str]]:
    """The case with the placements that it supports; and those that it does not, with the reason."""
    if not case.external:
        return _without_gaps(case)
    if missing := _missing(case):
        return None, {"": missing}
    roles = servers.roles_of(case.spec.server, case.study.engines[0])
    skipped = {
        placement.name: f"{case.study.engines[0]} has no place of its own for {', '.join(alien)}"
        for placement in case.study.placements.values()
        if (alien := sorted(str(role) for role in placement.roles if role not in roles))
    }
    return _with(case, [one for one in case.study.placements if one not in skipped]), skipped


def _missing(case: Case) -> str | None:
    """Missing packages of an external case."""
    return servers.missing(case.spec.server) or case.client().missing()


def _without_gaps(case: Case) -> tuple[Case | None, dict[str, str]]:
    try:
        study, skipped = runner.restrict_to_supported(case.study)
    except TierwiseError as error:
        return None, {"": str(error)}
    return replace(case, study=study), skipped


def _with(case: Case, names: Sequence[str]) -> Case | None:
    if not names or not any(place in names for place in case.spec.recorded):
        return None
    study = case.study.model_copy(update={"baseline": names[0]}).with_placements(list(names))
    return replace(case, study=study)

"""Which placements and variants an engine supports, and why it rejects the others."""

from __future__ import annotations

from tierwise.lab import engines
from tierwise.lab.engines.base import Engine
from tierwise.lab.studies import FILE_ENGINE
from tierwise.lab.studies.study import Overrides, Study, study_at_point
from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.model.placement import Placement, Role

_ONLY_IF_LISTED = {Role.ARCHIVE}
"""Roles that add work of their own when placed."""


def placement_refusal(engine: Engine, placement: Placement) -> str | None:
    """Why an engine cannot honour a placement, naming the role; ``None`` if it can.

    A role without files of its own satisfies the placement if the role whose files hold it does.
    """
    for role, device in placement.roles.items():
        if role in engine.roles:
            continue
        holder = engine.inside.get(role)
        if holder is not None and placement.device_of(holder) == device:
            continue
        reason = engine.unsupported.get(role) or (f"{role} lies within {holder}" if holder else None)
        return f"engine {engine.name} cannot place the role {role}" + (f": {reason}" if reason else "")
    return None


def restrict_to_supported(study: Study) -> tuple[Study, dict[str, str]]:
    """The study with only what its engine supports; the skipped placements and variants with reasons.

    Raises:
        TierwiseError: if the baseline is skipped, as nothing could be compared then.
    """
    name = study.engines[0]
    if name == FILE_ENGINE:
        return study, {}
    engine = engines.create_engine(name, study.settings_of(name))
    if study.cuts is not None:
        study = durability_study(study, engine)
    if study.deaths is not None:
        study = device_death_study(study, engine)
    study, skipped_variants = _without_twins(study, name)
    skipped: dict[str, str] = {}
    alike: dict[tuple[tuple[Role, str], ...], str] = {}
    for placement in sorted(
        study.placements.values(), key=lambda placement: placement.name != study.baseline
    ):
        reason = placement_refusal(engine, placement)
        where = tuple(
            (role, placement.device_of(role))
            for role in sorted(engine.roles)
            if is_role_placed(role, placement)
        )
        if reason is None and where in alike:
            reason = f"the same as {alike[where]} on engine {name}"
        if reason is None:
            alike[where] = placement.name
        else:
            skipped[placement.name] = reason
    if study.baseline in skipped:
        raise TierwiseError(
            f"study {study.name}: placements.{study.baseline}: {skipped[study.baseline]}",
            f"place only {', '.join(sorted(engine.roles))} in the baseline, or choose another engine",
        )
    kept = [name for name in study.placements if name not in skipped]
    return study.with_placements(kept), skipped | skipped_variants


def durability_study(study: Study, engine: Engine) -> Study:
    """A study of power cuts with the engine's durability settings as its variants."""
    known = {setting.name: setting for setting in engine.durability()}
    for name in study.durability:
        if name not in known:
            raise TierwiseError(
                f"study {study.name}: durability names {name!r}",
                f"engine {engine.name}: {unknown_name_fix(name, known)}",
            )
    chosen = study.durability or list(known)
    variants = {name: Overrides(settings={engine.name: dict(known[name].settings)}) for name in chosen}
    swept = study.sweep.model_copy(update={"variant": chosen})
    return study.model_copy(update={"variants": variants, "sweep": swept})


def device_death_study(study: Study, engine: Engine) -> Study:
    """A study of deaths on the roles that the engine places, with the engine's durable setting."""
    placements = {
        name: placement.model_copy(
            update={"roles": {r: d for r, d in placement.roles.items() if r in engine.roles}}
        )
        for name, placement in study.placements.items()
    }
    placed = [role for role in sorted(engine.roles) if is_role_placed(role, placements[study.baseline])]
    for name in study.dying:
        if name not in placed:
            known = {str(role): role for role in placed}
            raise TierwiseError(
                f"study {study.name}: dying names {name!r}",
                f"engine {engine.name}: {unknown_name_fix(name, known)}",
            )
    durable = Overrides(settings={engine.name: dict(engine.durability()[0].settings)})
    dying = [role for role in placed if not study.dying or role in study.dying]
    swept = study.sweep.model_copy(update={"dying": dying})
    return study.with_overrides(durable).model_copy(update={"placements": placements, "sweep": swept})


def _without_twins(study: Study, engine: str) -> tuple[Study, dict[str, str]]:
    """The study without variants equal to an earlier one: they change only another engine's settings.

    If a single variant remains, there is no sweep: the study is that variant.
    """
    kept: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for variant in study.sweep.variant:
        varied = study_at_point(study, {"variant": variant})
        own = varied.model_copy(update={"settings": {engine: varied.settings_of(engine)}})
        first = kept.setdefault(own.model_dump_json(), variant)
        if first != variant:
            skipped[f"variant {variant}"] = f"the same as {first} on engine {engine}"
    if not skipped:
        return study, skipped
    left = list(kept.values())
    if len(left) == 1:
        study, left = study.with_overrides(study.variants[left[0]]), []
    swept = study.sweep.model_copy(update={"variant": left})
    return study.model_copy(update={"sweep": swept}), skipped


def is_role_placed(role: Role, placement: Placement) -> bool:
    """Whether a placement places a role; a log is archived only if the placement lists the archive role."""
    return role not in _ONLY_IF_LISTED or role in placement.roles

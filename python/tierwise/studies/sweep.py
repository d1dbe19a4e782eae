"""The points of a sweep: each gives every swept setting one value."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import prod

from tierwise.model.units import parse_size_bytes
from tierwise.studies.spec import Overrides, Study, Sweep

CONSTANT = "constants."
"""Prefix of a setting that is a constant of the workload."""

Setting = dict[str, str]
"""Value of each swept setting, as text; empty for a study without a sweep."""


def values(sweep: Sweep) -> dict[str, list[str]]:
    """Settings that a study sweeps, each with its values as text, in the study's order."""
    factors: dict[str, list[str]] = {
        "memory": sweep.memory,
        "parallelism": [str(one) for one in sweep.parallelism],
        "clients": [str(one) for one in sweep.clients],
        "variant": sweep.variant,
        "dying": [str(one) for one in sweep.dying],
    }
    factors |= {CONSTANT + name: [f"{one:.15g}" for one in many] for name, many in sweep.constants.items()}
    return {name: many for name, many in factors.items() if many}


def count(sweep: Sweep) -> int:
    """Number of points."""
    lengths = [len(many) for many in values(sweep).values()]
    return prod(lengths) if sweep.design == "full" else 1 + sum(length - 1 for length in lengths)


def points(sweep: Sweep) -> list[Setting]:
    """Every point, in the study's order; a single empty one if nothing is swept."""
    factors = values(sweep)
    if sweep.design == "full":
        return [dict(zip(factors, point, strict=True)) for point in product(*factors.values())]
    base = {name: many[0] for name, many in factors.items()}
    return [base, *({**base, name: value} for name, many in factors.items() for value in many[1:])]


def at(study: Study, setting: Mapping[str, str]) -> Study:
    """The study at one point."""
    variant = study.variants[setting["variant"]] if "variant" in setting else Overrides()
    varied = study.with_overrides(variant)
    constants = {
        name.removeprefix(CONSTANT): float(value)
        for name, value in setting.items()
        if name.startswith(CONSTANT)
    }
    given: dict[str, object] = {"constants": {**varied.constants, **constants}}
    if "memory" in setting:
        given["memory"] = parse_size_bytes(setting["memory"], "memory")
    given |= {name: int(setting[name]) for name in ("parallelism", "clients") if name in setting}
    return varied.model_copy(update=given)

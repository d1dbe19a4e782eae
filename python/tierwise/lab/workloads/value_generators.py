"""Generators of values, as workloads declare them.

Bounds are inclusive whole numbers, or expressions of ``scale`` and the workload's constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field, NonNegativeFloat, PositiveFloat, field_validator

from tierwise.lab.workloads.expression import postfix_terms
from tierwise.model.input_files import STRICT, Name

_LONGEST_TEXT = 16 << 20
Whole = int | str
"""A whole number or an expression for one."""

Evaluate = Callable[[str, Whole], int]
"""Turns a field's name and its expression into the value at the current scale."""


class _Generator(BaseModel):
    model_config = STRICT

    expressions: ClassVar[tuple[str, ...]] = ()
    """Fields that hold expressions."""
    whole: ClassVar[bool] = True
    """Whether it draws whole numbers."""

    def resolve(self, evaluate: Evaluate) -> dict[str, Any]:
        """Fields with every expression evaluated.

        Raises:
            ValueError: if bounds contradict each other at this scale.
        """
        fields = self.model_dump()
        fields |= {
            name: evaluate(name, fields[name]) for name in self.expressions if fields[name] is not None
        }
        self._check(fields)
        return fields

    def _check(self, fields: dict[str, Any]) -> None:
        """Refuse bounds that contradict each other."""


class _Range(_Generator):
    low: Whole
    high: Whole
    expressions: ClassVar[tuple[str, ...]] = ("low", "high")

    def _check(self, fields: dict[str, Any]) -> None:
        if fields["low"] > fields["high"]:
            raise ValueError(f"low {fields['low']} is above high {fields['high']}")


class Uniform(_Range):
    """Whole numbers, all equally likely."""

    kind: Literal["uniform"]


class Zipf(_Range):
    """Whole numbers; the k-th from ``low`` comes with a probability proportional to 1 / k^exponent."""

    kind: Literal["zipf"]
    exponent: NonNegativeFloat


class Gaussian(_Range):
    """Normally distributed whole numbers, cut off at ``parameter`` standard deviations, as in pgbench."""

    kind: Literal["gaussian"]
    parameter: float = Field(ge=2)


class Exponential(_Range):
    """Whole numbers, the last exp(-``parameter``) times as frequent as the first, as in pgbench."""

    kind: Literal["exponential"]
    parameter: PositiveFloat


class NuRand(_Range):
    """TPC-C's NURand(a, low, high), its constant C from the seed."""

    kind: Literal["nurand"]
    a: Whole
    expressions = ("a", "low", "high")

    def _check(self, fields: dict[str, Any]) -> None:
        super()._check(fields)
        if min(fields["a"], fields["low"]) < 0:
            raise ValueError("a and low must not be negative")


class Sequence(_Generator):
    """Numbers in order without repetition, over all clients or for each client."""

    kind: Literal["sequence"]
    start: Whole = 1
    after: str | None = None
    scope: Literal["global", "client"] = "global"
    expressions = ("start",)

    def resolve(self, evaluate: Evaluate) -> dict[str, Any]:
        """Fields as the clients read them."""
        fields = super().resolve(evaluate)
        scope = fields.pop("scope")
        return {**fields, "global": scope == "global"}


class Counter(_Generator):
    """The number of the row (load phase) or of the repetition (step): ``start + (n / divide) % modulo``."""

    kind: Literal["counter"]
    start: Whole = 1
    divide: Whole = 1
    modulo: Whole | None = None
    expressions = ("start", "divide", "modulo")

    def _check(self, fields: dict[str, Any]) -> None:
        if fields["divide"] < 1 or (fields["modulo"] is not None and fields["modulo"] < 1):
            raise ValueError("divide and modulo must be at least 1")


class Text(_Range):
    """Random letters, digits, ``-`` and ``_``, of a random length."""

    kind: Literal["text"]
    whole = False

    def _check(self, fields: dict[str, Any]) -> None:
        super()._check(fields)
        if fields["low"] < 0:
            raise ValueError(f"low {fields['low']} is negative")
        if fields["high"] > _LONGEST_TEXT:
            raise ValueError(f"high {fields['high']} is above {_LONGEST_TEXT}")


class Uuid(_Generator):
    """Random UUID, version 4."""

    kind: Literal["uuid"]
    whole = False


class Choice(_Generator):
    """One of a list of numbers and texts; a list of one makes a constant."""

    kind: Literal["choice"]
    values: list[int | float | str] = Field(min_length=1)
    weights: list[PositiveFloat] | None = None
    whole = False

    def _check(self, fields: dict[str, Any]) -> None:
        values, weights = fields["values"], fields["weights"]
        if weights is not None and len(weights) != len(values):
            raise ValueError(f"{len(weights)} weights for {len(values)} values")


class _Derived(_Generator):
    def sources(self) -> set[str]:
        """Names of its sources: parameters, or columns of the same table."""
        raise NotImplementedError


class Label(_Derived):
    """A prefix and the last value of another generator: ``Pilot_17``; optionally in upper case."""

    kind: Literal["label"]
    prefix: str
    of: Name
    upper: bool = False
    whole = False

    def sources(self) -> set[str]:
        """The generator that gives its number."""
        return {self.of}


class Permutation(_Range, _Derived):
    """The numbers of a range in random order; consecutive values of ``of`` give each of them once."""

    kind: Literal["permutation"]
    of: Name

    def sources(self) -> set[str]:
        """The generator that gives the position."""
        return {self.of}


class Expression(_Derived):
    """Whole-number arithmetic on the last values of other generators; ``client`` is the client's number."""

    kind: Literal["expression"]
    value: str

    @field_validator("value")
    @classmethod
    def _is_arithmetic(cls, value: str) -> str:
        postfix_terms(value)
        return value

    def resolve(self, evaluate: Evaluate) -> dict[str, Any]:  # noqa: ARG002
        """Its terms in postfix order; constants are still names."""
        terms = [term if term != {"value": CLIENT} else CLIENT for term in postfix_terms(self.value)]
        return {"kind": self.kind, "postfix": terms}

    def sources(self) -> set[str]:
        """Names in the expression: parameters and constants."""
        terms = [term for term in postfix_terms(self.value) if isinstance(term, dict)]
        return {term["value"] for term in terms if "value" in term} - {CLIENT}


CLIENT = "client"
"""In an expression: the number of the client, from 0."""

Derived = Label | Permutation | Expression

Generator = Annotated[
    Uniform | Zipf | Gaussian | Exponential | NuRand | Sequence | Counter | Text | Uuid | Choice | Derived,
    Field(discriminator="kind"),
]

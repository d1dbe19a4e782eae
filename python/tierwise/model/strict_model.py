"""Validation rules that all data files share."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

STRICT = ConfigDict(
    allow_inf_nan=False, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
)
"""Fields of exactly the declared types, none unknown, none changed afterwards."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Letters, digits and ``_``, not a digit first."""


def first_problem(error: ValidationError) -> str:
    """The first thing wrong with given data: the field's place, if it has one, and what is wrong with it."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message

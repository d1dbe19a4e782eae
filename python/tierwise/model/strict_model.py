"""Validation rules that all data files share."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

STRICT = ConfigDict(
    allow_inf_nan=False, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
)
"""Fields of exactly the declared types, none unknown, none changed afterwards."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Letters, digits and ``_``, not a digit first."""

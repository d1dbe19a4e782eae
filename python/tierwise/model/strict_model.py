"""Validation rules that all data files share."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tierwise.model.errors import TierwiseError

STRICT = ConfigDict(
    allow_inf_nan=False, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
)
"""Fields of exactly the declared types, none unknown, none changed afterwards."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Letters, digits and ``_``, not a digit first."""


_ModelT = TypeVar("_ModelT", bound=BaseModel)
_LONGEST_FIELD = 80


def validated(
    model: type[_ModelT], content: object, where: str, fix: str, *, strict: bool | None = None
) -> _ModelT:
    """Data that others wrote, as a model. A text is JSON.

    Args:
        model: what it must be.
        content: of a file, a request or an option.
        where: file, line or option, for the message; may be empty.
        fix: of the error.
        strict: overrides the model's own strictness.

    Raises:
        TierwiseError: naming the place, the first field that is not valid, and what is wrong with it.
    """
    try:
        if isinstance(content, str | bytes):
            return model.model_validate_json(content, strict=strict)
        return model.model_validate(content, strict=strict)
    except ValidationError as error:
        raise TierwiseError(f"{where}: {first_problem(error)}".removeprefix(": "), fix) from None


def first_problem(error: ValidationError) -> str:
    """The first thing wrong with given data: the field's place, if it has one, and what is wrong with it."""
    first = error.errors()[0]
    field = ".".join(str(part)[:_LONGEST_FIELD] for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message

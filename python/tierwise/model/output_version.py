"""The version of the JSON that commands print."""

from __future__ import annotations

SCHEMA_VERSION = 1
"""It rises with every change of a name, a unit or a meaning."""

"""Progress reports to the caller."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[str], None]
"""Called with one line of text whenever a long task starts its next part."""

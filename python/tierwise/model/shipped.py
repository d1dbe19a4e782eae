"""The data that ships with tierwise: devices, workloads, studies, rules, templates."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
"""One folder for each kind."""

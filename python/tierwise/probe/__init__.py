"""Measures a real device, checks its flush and fits a profile.

Not here: simulation; see ``device_models``.
"""

from tierwise.probe.measure import SWEEP, Options, ProbeReport, middle, probe

__all__ = ["SWEEP", "Options", "ProbeReport", "middle", "probe"]

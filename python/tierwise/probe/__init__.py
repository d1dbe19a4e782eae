"""Measures a real device, checks its flush and fits a profile.

Not here: simulation; see ``device_models``.
"""

from tierwise.probe.device_probe import SWEEP, ProbeOptions, ProbeReport, median_rate_repeat, probe_device

__all__ = ["SWEEP", "ProbeOptions", "ProbeReport", "median_rate_repeat", "probe_device"]

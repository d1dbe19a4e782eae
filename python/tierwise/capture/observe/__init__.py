"""Observes a server over SQL, without root: samples of its sessions' waits, and its own counters.

Not here: the form of an observation (``recording``), answers from one (``predict``).
"""

from tierwise.capture.observe.session import LEAST_RATE_HZ, MOST_RATE_HZ, RATE_HZ, Told, observe

__all__ = ["LEAST_RATE_HZ", "MOST_RATE_HZ", "RATE_HZ", "Told", "observe"]

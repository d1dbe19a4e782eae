"""A solid-state disk whose units, and not its link, bound large reads."""

from __future__ import annotations

import tomllib
from pathlib import Path

from tierwise.device_models import profiles
from tierwise.device_models.profiles import DeviceProfile

_TEXT = """
kind = "ssd"
summary = "eight units, each 900 us a read: the path of an emulated disk counts little beside it"
capacity_mb = 1000
channels = 8
stripe_kib = 4
read_us = 900
program_us = 900
read_overhead_us = 50
write_overhead_us = 60
flush_us = 2000
link_mb_per_s = 500
write_cache_kib = 1024
power_loss_protection = false

[source]
"""


def eight_units() -> DeviceProfile:
    figures = [name for name, value in tomllib.loads(_TEXT).items() if type(value) is int]
    sources = [f'{name} = "by choice, for this test"' for name in figures]
    return profiles.parse_profile(_TEXT + "\n".join(sources), Path("eight.toml"))

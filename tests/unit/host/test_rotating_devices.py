"""Which devices the kernel is told to rotate."""

from __future__ import annotations

from tierwise.device_models import profiles
from tierwise.host.disk.partitions import is_rotational


def test_the_kernel_is_told_which_devices_rotate() -> None:
    loaded = [profiles.load_profile(name) for name in profiles.profile_names()]
    for profile in loaded:
        of_disks = profile.kind == "array" and any(name.startswith("hdd-") for name in profile.library)
        assert is_rotational(profile) == (profile.kind == "hdd" or of_disks), profile.name

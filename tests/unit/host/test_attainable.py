"""What a machine attains of an emulated device is measured once for each profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tierwise.device_models import profiles
from tierwise.device_models.profiles import DeviceProfile
from tierwise.host.disk import attainable_rates
from tierwise.results import AttainableRate


def test_profiles_like_different_files_of_one_name_share_no_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own(base: str) -> DeviceProfile:
        folder = tmp_path / base
        folder.mkdir()
        (folder / "base.toml").write_text(profiles.load_profile(base).text)
        (folder / "own.toml").write_text('like = "base"\nsummary = "of our own"\n')
        return profiles.load_profile(str(folder / "own.toml"))

    def measured(profile: DeviceProfile, device: Path) -> list[AttainableRate]:
        return [AttainableRate(op="read", depth=1, model_per_s=1, here_per_s=profile.capacity_bytes)]

    monkeypatch.setattr(attainable_rates, "_measure", measured)
    for profile in (own("ssd-nvme-dc"), own("ssd-sata-dc")):
        (rate,) = attainable_rates.attainable_rates(profile, Path("/dev/null"))
        assert rate.here_per_s == profile.capacity_bytes

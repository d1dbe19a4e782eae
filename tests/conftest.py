"""What every test may lean on."""

from __future__ import annotations

import pytest

from tierwise.host.doctor import examine, missing_for_emulation


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs privileges where there are none, and say which."""
    missing = ", ".join(check.name for check in missing_for_emulation(examine()))
    if missing:
        for item in items:
            if item.get_closest_marker("privileged"):
                item.add_marker(pytest.mark.skip(reason=f"no emulated devices here: missing {missing}"))

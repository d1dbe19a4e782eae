"""Users that servers run as."""

from __future__ import annotations

from pathlib import Path

from tierwise.host.users import server_user, unreachable_part


def test_a_user_serves_as_himself() -> None:
    assert server_user(effective_uid=1000) is None
    assert unreachable_part(Path("/root/closed"), None) is None

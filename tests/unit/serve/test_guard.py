"""Who may ask the served page, by the name of the host."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytest.importorskip("uvicorn", reason="needs the extra `serve`")
pytest.importorskip("starlette", reason="needs the extra `serve`")

from tierwise.serve.request_guard import RequestGuard


def test_beyond_loopback_an_address_is_a_host_but_no_other_name() -> None:
    guard = RequestGuard(SimpleNamespace(), "token", "0.0.0.0")  # type: ignore[arg-type]
    owners = {
        host: guard._is_own(host)
        for host in ("192.0.2.7:8000", "[2001:db8::1]:80", "localhost", "evil.example")
    }
    assert owners == {
        "192.0.2.7:8000": True,
        "[2001:db8::1]:80": True,
        "localhost": True,
        "evil.example": False,
    }

"""What every request must pass: an expected Host, the token, limited size; and headers of every response.

The Host is checked because a page elsewhere may point its own name at this address (DNS rebinding). A wrong
token gets the answer of an address that does not exist.
"""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tierwise.serve.page_questions import MOST_BYTES

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Content security policy of every response that has no stricter reason to load something."""
_HEADERS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
Admit = Callable[[tuple[str, int]], None]
"""Is told the other end of a connection that has shown the token."""


class RequestGuard:
    """Lets requests with the token pass to an application, whose paths are those behind the token."""

    def __init__(self, app: ASGIApp, token: str, host: str, admit: Admit = lambda _: None) -> None:
        self._app, self._token, self._admit = app, token, admit
        self._names = {*_LOOPBACK, host.lower()}
        self._open = not is_loopback(host)
        if self._open:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refused(scope)
        if refused:
            refused.headers["connection"] = "close"  # A stranger's next request would have no time limit.
            await refused(scope, receive, _with_headers(send))
            return
        self._admit(scope["client"])
        prefix = f"/{self._token}"
        inner = {**scope, "root_path": scope.get("root_path", "") + prefix}
        await self._app(inner, receive, _with_headers(send))

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self._is_own(headers.get("host", "")):
            return refusal_response(
                421, "the Host header names another server", "open the address that was printed"
            )
        first = scope["path"].split("/")[1:2] or [""]
        if not secrets.compare_digest(first[0].encode(), self._token.encode()):
            return refusal_response(404, "not found", "open the address that was printed, with its token")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            return refusal_response(413, f"the body has more than {MOST_BYTES} bytes", "send less")
        return None

    def _is_own(self, host: str) -> bool:
        """Whether a Host is this server's: a name it goes by or, beyond loopback, any IP address.

        An IP address cannot be rebound.
        """
        name = host.lower()
        if name.startswith("["):
            name = name[1:].partition("]")[0]
        elif name.count(":") == 1:
            name = name.partition(":")[0]
        return name in self._names or (self._open and _is_address(name))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    return host.lower() == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def refusal_response(status: int, message: str, fix: str) -> Response:
    """A refusal as the page shows it: ``{"message", "fix"}``; one of an unread body ends the connection."""
    headers = {"Connection": "close"} if status in (408, 413) else {}
    return Response(json.dumps({"message": message, "fix": fix}), status, headers, "application/json")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in {"content-security-policy": POLICY, **_HEADERS}.items():
                headers.setdefault(name, value)
        await send(message)

    return sending

"""`tierwise serve` as a process, and requests to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from support.paths import RECORDINGS

RECORDING = RECORDINGS / "order-entry"
JSON = {"Content-Type": "application/json"}


@dataclass
class Reply:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@dataclass
class LiveServer:
    url: str
    process: subprocess.Popen[str] | None

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def token(self) -> str:
        return urlsplit(self.url).path.strip("/")

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        connection.request(method, path, body, dict(headers or {}))
        return connection.getresponse()

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Reply:
        return read(self.request("GET", path, headers=headers))

    def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        return read(self.request("POST", f"/{self.token}/1/ask", body, JSON if headers is None else headers))

    def question(self, client: str, **scenario: Any) -> http.client.HTTPResponse:
        body = json.dumps({"client": client, "scenario": scenario}).encode()
        return self.request("POST", f"/{self.token}/1/ask", body, JSON)

    def answers(self, client: str, **scenario: Any) -> list[dict[str, Any]]:
        return read(self.question(client, **scenario)).lines


def read(response: http.client.HTTPResponse) -> Reply:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, headers, response.read().decode())


@contextmanager
def live_server(*arguments: str) -> Iterator[LiveServer]:
    """A server that listens; it is interrupted at the end."""
    command = [sys.executable, "-m", "tierwise", "serve", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy())
    try:
        assert process.stdout
        yield LiveServer(process.stdout.readline().strip(), process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdout.close()

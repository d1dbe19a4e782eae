"""Commands to a running disk server over its socket: one JSON object per line in each direction."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from tierwise.model.errors import TierwiseError

_PATIENCE_S = 30


def send_command(control_socket: Path, command: str, **arguments: Any) -> dict[str, Any]:
    """Send one command and give the answer.

    Raises:
        TierwiseError: if the server is gone, silent, or refuses.
    """
    request = json.dumps({"do": command, **arguments}) + "\n"
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(_PATIENCE_S)
            connection.connect(str(control_socket))
            connection.sendall(request.encode())
            line = connection.makefile().readline()
    except OSError as error:
        raise TierwiseError(f"disk server at {control_socket}: {error}", "run tierwise clean") from error
    if not line:
        raise TierwiseError(f"disk server at {control_socket} ended", "run tierwise clean")
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise TierwiseError(f"disk server refuses {command}: {answer['error']}", "report this as a defect")
    return answer

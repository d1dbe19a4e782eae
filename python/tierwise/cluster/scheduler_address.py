"""Which Dask schedulers a command connects to: whoever answers can run code in it, since Dask reads pickles.

``tls://`` needs certificates that the user has configured. Without it, only a scheduler on this machine is
known to be trusted, and only if root or the caller runs it: any user may listen on a port.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

from tierwise.model.errors import TierwiseError
from tierwise.model.output_files import callers, user_name

OPTION = "--trust-scheduler"
_ADDRESS = re.compile(r"(tcp|tls)://(\S+):(\d+)")
_LISTENS = "0A"
_WORD_BYTES = 4
_EVERY = ("0.0.0.0", "::")
_START = "start one with dask scheduler, or check address, firewall and TLS settings"

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def check(address: str, option: str, trusted: bool) -> None:
    """Refuse what is no address, and a scheduler that anybody could run.

    Args:
        address: such as ``tcp://host:8786``.
        option: that named it, for messages.
        trusted: the user vouches for the scheduler and the network to it.

    Raises:
        TierwiseError: naming the option and the address.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise TierwiseError(f"{option}: {address!r} is no address", "write for example tls://host:8786")
    protocol, host, port = found.groups()
    if trusted or protocol == "tls":
        return
    own = _loopback(host.strip("[]"))
    if not own:
        raise TierwiseError(
            f"{option}: {address} is not encrypted, and whoever answers there can run code here",
            f"use tls:// with certificates of your own, or add {OPTION} on a network that you trust",
        )
    listening = [user for at, user in _listeners(int(port)) if at in own]
    if not listening:
        raise no_answer(address, option)
    for user in listening:
        if user not in callers():
            raise TierwiseError(
                f"{option}: {user_name(user)} listens at {address}, and could run code here",
                f"start a scheduler of your own, or add {OPTION} if you trust that one",
            )


def no_answer(address: str, option: str) -> TierwiseError:
    """The error of an address without a scheduler."""
    return TierwiseError(f"{option}: {address} does not answer as a Dask scheduler", _START)


def _loopback(host: str) -> set[_Ip]:
    """Addresses that a connection to a host of this machine may reach; none for another host."""
    names = ["127.0.0.1", "::1"] if host == "localhost" else [host]
    try:
        addresses = [ipaddress.ip_address(name) for name in names]
    except ValueError:
        return set()
    if not all(one.is_loopback for one in addresses):
        return set()
    return {*addresses, *map(ipaddress.ip_address, _EVERY)}


def _listeners(port: int) -> Iterator[tuple[_Ip, int]]:
    """Address and user of each socket that listens on a TCP port of this machine."""
    for file in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in file.read_text("ascii").splitlines()[1:] if file.exists() else []:
            # sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid …
            _, local, _, state, _, _, _, user, *_ = line.split()
            address, _, number = local.partition(":")
            if state == _LISTENS and int(number, 16) == port:
                yield _ip(bytes.fromhex(address)), int(user)


def _ip(words: bytes) -> _Ip:
    """An address as the kernel prints it: words of this machine's byte order, little-endian."""
    parts = [words[start : start + _WORD_BYTES][::-1] for start in range(0, len(words), _WORD_BYTES)]
    address = ipaddress.ip_address(b"".join(parts))
    return getattr(address, "ipv4_mapped", None) or address

"""Work on a Dask cluster: which scheduler may be asked, and the work of each database on its workers."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from tierwise import _core
from tierwise.host import ledger
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import (
    Executor,
    LostTask,
    ThreadExecutor,
    WorkerCall,
    granted_processors,
    usable_processors,
)
from tierwise.model.extras import require_extra
from tierwise.model.output_files import caller_user_ids, user_name

T = TypeVar("T")
R = TypeVar("R")


OPTION = "--trust-scheduler"
_ADDRESS = re.compile(r"(tcp|tls)://(\S+):(\d+)")
_LISTENS = "0A"
_WORD_BYTES = 4
_EVERY = ("0.0.0.0", "::")
_START = "start one with dask scheduler, or check address, firewall and TLS settings"

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def check_scheduler_address(address: str, option: str, trusted: bool) -> None:
    """Refuse what is no address such as ``tcp://host:8786``, and a scheduler that anybody could run.

    The latter is not refused if the user vouches for it and the network to it (``trusted``).
    """
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise TierwiseError(f"{option}: {address!r} is no address", "write for example tls://host:8786")
    protocol, host, port = match.groups()
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
        raise no_scheduler_error(address, option)
    for user in listening:
        if user not in caller_user_ids():
            raise TierwiseError(
                f"{option}: {user_name(user)} listens at {address}, and could run code here",
                f"start a scheduler of your own, or add {OPTION} if you trust that one",
            )


def no_scheduler_error(address: str, option: str) -> TierwiseError:
    """The error of an address without a scheduler."""
    return TierwiseError(f"{option}: {address} does not answer as a Dask scheduler", _START)


def _loopback(host: str) -> set[_Ip]:
    """Addresses that a connection to a host of this machine may reach; none for another host."""
    names = ["127.0.0.1", "::1"] if host == "localhost" else [host]
    try:
        addresses = [ipaddress.ip_address(name) for name in names]
    except ValueError:
        return set()
    if not all(address.is_loopback for address in addresses):
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


LOCAL = "local"
"""Stands for a cluster on this machine, in place of an address."""
CONNECT_TIMEOUT_S = 10
_WORKER_TIMEOUT_S = 30
_REPLACED_EVERY_S = 2
_LEAST_AHEAD = 1000
_AHEAD_OF_EACH_THREAD = 4
_DASK_LOG = re.compile(r"distributed(\.|$)")
_LOOPBACK = "127.0.0.1"
_SAFE_PATH = "PYTHONSAFEPATH"
_KEEP_ON_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""For workers, which Ctrl-C in a terminal reaches too: the command ends them, without a traceback of each."""
_DIES = "each worker that began it died"


@contextmanager
def open_executor(scheduler: str | None, workers: int | None, *, trusted: bool = False) -> Iterator[Executor]:
    """The executor that a user asked for, closed on exit with all that it started.

    Args:
        scheduler: address of a Dask scheduler, ``local`` for processes of this host, none for threads.
        workers: number of processes of a local cluster; by default that of the usable processors.
        trusted: the user vouches for the scheduler (:func:`check_scheduler_address`).
    """
    if scheduler is None and workers is None:
        yield ThreadExecutor()
        return
    if scheduler not in (None, LOCAL):
        if workers is not None:
            raise TierwiseError(
                "--workers: the scheduler has its own workers", "leave out one of --workers and --scheduler"
            )
        check_scheduler_address(scheduler, "--scheduler", trusted)
    modules = ["distributed"] if scheduler not in (None, LOCAL) else ["distributed", "cryptography"]
    require_extra("cluster", "--scheduler" if scheduler else "--workers", modules)
    with ExitStack() as stack:
        stack.enter_context(silence_dask_log())
        if scheduler in (None, LOCAL):
            cluster = stack.enter_context(_local_cluster(workers or usable_processors()))
            yield DaskExecutor(
                stack.enter_context(connect_to_dask(cluster.scheduler_address, cluster.security))
            )
        else:
            yield DaskExecutor(stack.enter_context(connect_to_dask(scheduler, None)))


class DaskExecutor:
    """A Dask cluster. A task has one processor, so a worker does as many tasks at a time as it has threads.

    Dask repeats a task whose worker died on another one. It gives up after the number of deaths that the
    scheduler's setting ``distributed.scheduler.allowed-failures`` allows, 3 by default.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, work: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R | LostTask]]:
        """As :class:`Executor`. The scheduler has a limited number of tasks at a time, for its memory.

        A death counts against every task that its worker had been assigned. So a task that Dask gives up is
        done once more at the end, with no other at the same time, before it counts as lost.
        """
        ahead = max(_LEAST_AHEAD, _AHEAD_OF_EACH_THREAD * sum(self._client.nthreads().values()))
        suspects: list[int] = []
        for number, result in self._done(work, tasks, range(len(tasks)), ahead):
            if isinstance(result, LostTask):
                suspects.append(number)
            else:
                yield number, result
        yield from self._done(work, tasks, suspects, 1)

    def _done(
        self, work: Callable[[T], R], tasks: Sequence[T], chosen: Sequence[int], ahead: int
    ) -> Iterator[tuple[int, R | LostTask]]:
        """Number and result of the chosen tasks, of which the scheduler has ``ahead`` at a time."""
        distributed = import_module("distributed")
        run = secrets.token_hex(4)
        numbers: dict[Any, int] = {}

        def submitted() -> Iterator[Any]:
            for number in chosen:
                call = WorkerCall(work, tasks[number])
                future = self._client.submit(_on_worker, call, key=f"tierwise-{run}-{number}", pure=False)
                numbers[future] = number
                yield future

        waiting = submitted()
        try:
            done = distributed.as_completed(list(islice(waiting, ahead)), loop=self._client.loop)
            for future in done:
                result, number = _result(future), numbers.pop(future)
                if (further := next(waiting, None)) is not None:
                    done.add(further)
                yield number, result
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(list(numbers), force=True)


def _on_worker(call: WorkerCall[Any, R]) -> R:
    with granted_processors(1):
        return call()


def _result(future: Any) -> Any:
    """The result of a future that is done, or that its task was lost; what the work raised is raised here."""
    distributed = import_module("distributed")
    if future.cancelled():
        raise _scheduler_is_gone()
    try:
        return future.result()
    except distributed.KilledWorker:
        return LostTask(
            _DIES, "run it alone without --scheduler and --workers, on a machine with more memory"
        )
    except TierwiseError:
        raise
    except ModuleNotFoundError as error:
        raise HostError(f"the workers of --scheduler lack {error.name}", _same_version()) from error
    except RuntimeError as error:
        if not str(error).startswith("Error during deserialization"):
            raise
        raise HostError("the scheduler of --scheduler cannot read the tasks", _same_version()) from error
    except (OSError, distributed.CancelledError) as error:
        raise _scheduler_is_gone() from error


def _scheduler_is_gone() -> TierwiseError:
    return TierwiseError(
        "--scheduler: the scheduler ended during the run",
        "start it and the run again; fleet advise goes on where it was, if it had --results",
    )


def _same_version() -> str:
    return f"install tierwise[cluster]=={_core.__version__} on scheduler and workers"


@contextmanager
def connect_to_dask(address: str, security: Any, option: str = "--scheduler") -> Iterator[Any]:
    """A connection to a scheduler with at least one worker."""
    distributed = import_module("distributed")
    client = distributed.Client.__new__(distributed.Client)
    try:
        client.__init__(
            address, security=security, timeout=CONNECT_TIMEOUT_S, set_as_default=False, name="tierwise-fleet"
        )
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        client.status = "closed"  # else its deletion waits 20 s for a loop that has ended, and fails
        raise no_scheduler_error(address, option) from error
    try:
        _require_worker(client, address, option)
        yield client
    finally:
        with suppress(Exception):  # the scheduler may be gone
            client.close(timeout=CONNECT_TIMEOUT_S)


def _require_worker(client: Any, address: str, option: str) -> None:
    """Refuse a cluster without a worker, and workers without tierwise, which end at their first task."""
    try:
        client.wait_for_workers(1, timeout=_WORKER_TIMEOUT_S)
    except TimeoutError:
        raise TierwiseError(
            f"{option}: {address} has no worker", f"start some with PYTHONSAFEPATH=1 dask worker {address}"
        ) from None
    answers = client.run(resolve_name, "tierwise._core:__version__", on_error="return")
    for worker, answer in answers.items():
        if isinstance(answer, ImportError):
            raise HostError(f"{option}: worker {worker} lacks tierwise ({answer})", _same_version())


@contextmanager
def _local_cluster(workers: int) -> Iterator[Any]:
    """A cluster of processes of one thread each, which only this program can use.

    It listens on the loopback only. Other accounts of the machine can connect to that too, so connections
    need a certificate that is made for this run and kept in memory. The dashboard is off.

    A worker that dies while it starts is given up by its nanny, and Dask starts no other in its place until
    it is told the number of workers again.
    """
    dask, distributed, ioloop = map(import_module, ("dask", "distributed", "tornado.ioloop"))
    with (
        _safe_path(),
        ledger.make_directory("tierwise-dask") as folder,
        dask.config.set(
            {
                "distributed.scheduler.http.routes": [],
                "distributed.worker.http.routes": [],
                "distributed.worker.preload": [_KEEP_ON_CTRL_C],
                "temporary-directory": str(folder),
            }
        ),
    ):
        cluster = distributed.LocalCluster.__new__(distributed.LocalCluster)
        try:
            cluster.__init__(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=_LOOPBACK,
                protocol="tls://",
                security=distributed.Security.temporary(),
                dashboard_address=f"{_LOOPBACK}:0",
                worker_dashboard_address=f"{_LOOPBACK}:0",
                silence_logs=logging.CRITICAL,
            )
        except BaseException:
            with suppress(Exception):  # it asserts that each worker had started
                cluster.close(timeout=CONNECT_TIMEOUT_S)
            cluster.shutdown_on_close = False  # else Dask tries again when Python ends, and prints a trace
            raise
        replacing = ioloop.PeriodicCallback(lambda: cluster.scale(workers), _REPLACED_EVERY_S * 1000)
        cluster.loop.add_callback(replacing.start)
        try:
            yield cluster
        finally:
            cluster.loop.add_callback(replacing.stop)
            cluster.close(timeout=CONNECT_TIMEOUT_S)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Children that Python starts meanwhile, by ``python -c``, do not import from the working directory."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]
        if before is not None:
            os.environ[_SAFE_PATH] = before


@contextmanager
def silence_dask_log() -> Iterator[None]:
    """Keep Dask's own messages from the terminal: what matters is reported as an error or as left out."""
    import_module("distributed")  # which sets up its logs at import
    logs = [logging.getLogger(name) for name in logging.root.manager.loggerDict if _DASK_LOG.match(name)]
    levels = [log.level for log in logs]
    try:
        for log in logs:
            log.setLevel(logging.CRITICAL)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)

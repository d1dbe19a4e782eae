"""Hosts of experiments: the workers of a Dask cluster with the resource ``tierwise-lab``."""

from __future__ import annotations

import platform
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from tierwise.cluster import dask_executor
from tierwise.cluster.dask_executor import connect_to_dask, silence_dask_log
from tierwise.model.errors import HostError, TierwiseError
from tierwise.model.executor import WorkerCall
from tierwise.model.extras import require_extra

T = TypeVar("T")

RESOURCE = "tierwise-lab"
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_MOST_LETTERS = 64
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Differs between machines, and is the same in all containers of one."""
_TIMEOUT_S = 10
"""A result is there when its run is over, unless the worker has died with it since."""


@contextmanager
def open_dask_hosts(scheduler: str, *, trusted: bool = False) -> Iterator[DaskHosts]:
    """The hosts of a cluster that runs."""
    dask_executor.check_scheduler_address(scheduler, "--hosts", trusted)
    require_extra("cluster", "--hosts", ["distributed"])
    with silence_dask_log(), connect_to_dask(scheduler, None, "--hosts") as client:
        dask_hosts = DaskHosts(client)
        if not dask_hosts.present():
            raise TierwiseError(
                f"--hosts: no worker of {scheduler} has the resource {RESOURCE}",
                f"start some with PYTHONSAFEPATH=1 dask worker {scheduler} --nthreads 1 "
                f'--resources "{RESOURCE}=1"',
            )
        yield dask_hosts


class DaskHosts:
    """Each worker with the resource is a host that does one task at a time."""

    def __init__(self, client: Any) -> None:
        """Take a connected ``distributed.Client``."""
        self._client = client
        self._names: dict[str, str] = {}
        self._machines: dict[str, str] = {}

    def present(self) -> dict[str, str]:
        """Name -> address of each host that is there.

        The name is the host's own, with that of the worker if it was given one.
        """
        try:
            workers = self._client.scheduler_info()["workers"]
            lab = {address: worker for address, worker in workers.items() if RESOURCE in worker["resources"]}
            self._learn({address for address in lab if address not in self._names}, lab)
        except OSError as error:
            raise TierwiseError(
                "--hosts: the scheduler does not answer", "start it, then the study again: it resumes"
            ) from error
        workers_of_hosts: dict[str, str] = {}
        on_machines: dict[str, str] = {}
        for address in lab.keys() & self._names.keys():
            other = on_machines.setdefault(self._machines[address], address)
            if other != address:
                raise TierwiseError(
                    f"--hosts: workers {other} and {address} are on one machine, where their runs would "
                    "disturb each other",
                    "end one of them",
                )
            if (name := self._names[address]) in workers_of_hosts:
                raise TierwiseError(f"--hosts: two workers are called {name}", "give each another --name")
            workers_of_hosts[name] = address
        return workers_of_hosts

    def start(self, address: str, work: Callable[[T], str], task: T) -> DaskRun:
        """Do one task on one worker, and on no other."""
        future = self._client.submit(
            WorkerCall(work, task),
            key=f"tierwise-run-{secrets.token_hex(8)}",
            workers=[address],
            allow_other_workers=False,
            resources={RESOURCE: 1},
            pure=False,
        )
        return DaskRun(future)

    def _learn(self, addresses: set[str], workers: dict[str, Any]) -> None:
        """Ask new workers for their hosts' names and machines; one that dies meanwhile stays unknown."""
        if not addresses:
            return
        asked = {"workers": list(addresses), "on_error": "ignore"}
        nodes, machines = (
            self._client.run(platform.node, **asked),
            self._client.run(_BOOT_ID.read_text, **asked),
        )
        for address in nodes.keys() & machines.keys():
            node, self._machines[address] = nodes[address], machines[address]
            own = str(workers[address]["name"])
            parts = [str(node), *([] if "://" in own else [own])]
            name = "/".join(_NOT_IN_A_NAME.sub("-", part)[:_MOST_LETTERS] for part in parts)
            self._names[address] = name


class DaskRun:
    """A task under way on a worker."""

    def __init__(self, future: Any) -> None:
        """Take the task's ``distributed.Future``."""
        self._future = future

    def done(self) -> bool:
        """Whether it ended or was lost."""
        return bool(self._future.done())

    def result(self) -> str | None:
        """What the work gave; ``None`` if its worker died.

        Raises:
            HostError: the worker lacks tierwise, or this version of it.
            TierwiseError: what the work raised.
        """
        distributed = import_module("distributed")
        try:
            return str(self._future.result(timeout=_TIMEOUT_S))
        except (distributed.KilledWorker, distributed.CancelledError, distributed.comm.CommClosedError):
            return None
        except OSError as error:
            if isinstance(error, TimeoutError) and self._future.status != "error":
                return None
            raise TierwiseError(str(error), "see the log of its worker") from error
        except (ModuleNotFoundError, RuntimeError) as error:  # the latter from a scheduler without tierwise
            raise HostError(
                f"--hosts: {error}", "install the same tierwise[cluster,lab] on scheduler and workers"
            ) from error

    def cancel(self) -> None:
        """Drop it; what has begun ends by itself."""
        with suppress(Exception):  # the scheduler may be gone
            self._future.client.cancel([self._future], force=True)

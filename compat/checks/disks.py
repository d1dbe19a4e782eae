"""Emulated disks: made, used, power cut, killed, taken down, by each transport and on each file system."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import time
from pathlib import Path

from checks.tools import groups, left_behind, passed_on, run, tierwise, work_folder


def ext4() -> None:
    """A disk with ext4."""
    for transport in _transports():
        _use("ext4", "256M", transport)


def xfs() -> None:
    """A disk with xfs."""
    for transport in _transports():
        _use("xfs", "512M", transport)


def _transports() -> list[str]:
    """Ways of requests that this kernel must have, the one that is taken by itself last."""
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    transports = ["fuse"]
    if release >= (6, 14):
        transports.append("fuse-io-uring")
    if release >= (6, 5):
        run("modprobe", "ublk_drv")
        transports.append("ublk")
    return transports


def _use(file_system: str, size: str, transport: str) -> None:
    mount = work_folder(f"disk-{file_system}-{transport}")
    make: list[str | Path] = [
        "--profile",
        "ssd-sata-dc",
        "--size",
        size,
        "--fs",
        file_system,
        "--mount",
        mount,
    ]
    make += [] if transport == _transports()[-1] else ["--transport", transport]
    before = passed_on()
    tierwise("disk", "up", "compat", *make)
    try:
        assert f"{mount} {file_system} " in Path("/proc/mounts").read_text("utf-8")
        kept, lost = mount / "kept", mount / "lost"
        _write(kept, flush=True)
        writes = json.loads(tierwise("disk", "stats", "compat", "--format", "json"))
        assert writes["transport"] == transport, writes["transport"]
        assert "compat" in tierwise("disk", "list")
        assert groups(), "no group"
        _keep_in_memory(mount)
        _write(lost, flush=False)
        output = tierwise("disk", "cut", "compat")
        assert kept.read_bytes() == bytes(1 << 20), "what was flushed is gone"
        assert not lost.exists() or lost.stat().st_size == 0, (
            f"what was not flushed survived: {lost.stat()}; {output}; {run('dmesg')[-3000:]}"
        )
    finally:
        tierwise("disk", "down", "compat")
    assert not left_behind(), left_behind()
    assert passed_on() == before, f"the root group passes on {passed_on()}, and {before} before"
    print(f"{file_system} by {transport}: {str(writes)[:200]}")


def _keep_in_memory(mount: Path) -> None:
    """Stop the kernel's write-back: an emulated guest takes seconds between the write and the power cut.

    Without a least share of the dirty pages, a new device is over its background limit at once
    (``wb_over_bg_thresh`` in mm/page-writeback.c). All shares together are at most 100 %.
    """
    for other in Path("/sys/class/bdi").glob("*/min_ratio"):
        other.write_text("0")
    device = mount.stat().st_dev
    share = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/min_ratio")
    share.write_text("90")
    Path("/proc/sys/vm/dirty_expire_centisecs").write_text("360000")


def _write(path: Path, *, flush: bool) -> None:
    with path.open("wb") as file:
        file.write(bytes(1 << 20))
        if flush:
            file.flush()
            os.fsync(file.fileno())
            directory = os.open(path.parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)


def dies() -> None:
    """A disk that died does not hold up what follows."""
    mount = work_folder("disk-dies")
    tierwise("disk", "up", "dying", "--profile", "ssd-sata-dc", "--size", "128M", "--mount", mount)
    tierwise("disk", "fail", "dying")
    output = tierwise("disk", "list")
    assert "dying" in output, output
    tierwise("disk", "down", "dying")
    run("sync")
    assert not left_behind(), left_behind()
    print(output.strip().splitlines()[-1])


def killed() -> None:
    """A server that is killed while its disk is written leaves nothing after `disk down`."""
    for transport in _transports():
        mount = work_folder(f"disk-killed-{transport}")
        make: list[str | Path] = [
            "--profile",
            "hdd-7k2",
            "--size",
            "128M",
            "--mount",
            mount,
            "--transport",
            transport,
        ]
        tierwise("disk", "up", "killed", *make)
        server = json.loads(tierwise("disk", "stats", "killed", "--format", "json"))["server_pid"]
        writer = subprocess.Popen(["dd", "if=/dev/zero", f"of={mount}/file", "bs=64k", "oflag=dsync"])
        time.sleep(2)
        os.kill(server, signal.SIGKILL)
        assert writer.wait(60) != 0, "the writer saw no error"
        tierwise("disk", "down", "killed")
        assert not left_behind(), left_behind()
    print(f"killed: {', '.join(_transports())}")


CHECKS = [ext4, xfs, dies, killed]

"""A guest booted under QEMU, without a network: its console and its report become files."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from tierwise.model.executor import ProgressCallback

MEMORY = "4G"
CORES = 2


def boot(folder: Path, image: Path, limit_s: float, progress: ProgressCallback) -> Path:
    """Boot the kernel of ``folder``/root with the image, until the guest powers off; return its report.

    Args:
        folder: directory of ``console.log`` and ``report.jsonl``.
        image: root file system; it is not changed.
        limit_s: the machine is stopped after that time.
        progress: called with each line of the report as it arrives.
    """
    report = folder / "report.jsonl"
    report.unlink(missing_ok=True)
    machine = subprocess.Popen(_command(folder, image, report), stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + limit_s
    bytes_read = 0
    try:
        while machine.poll() is None and time.monotonic() < deadline:
            time.sleep(1)
            lines = report.read_text("utf-8", "replace").split("\n")[:-1] if report.exists() else []
            for line in lines[bytes_read:]:
                progress(line)
            bytes_read = len(lines)
    finally:
        machine.kill()
        machine.wait()
    return report


def _command(folder: Path, image: Path, report: Path) -> list[str]:
    boot = folder / "root" / "boot"
    kernel = max(boot.glob("vmlinuz-*"))
    words = kernel.name.removeprefix("vmlinuz-")
    return [
        *("qemu-system-x86_64", "-display", "none", "-nodefaults", "-no-reboot"),
        *("-m", MEMORY, "-smp", str(CORES), "-cpu", "max", *_accelerator()),
        *("-kernel", str(kernel), "-initrd", str(boot / f"initrd.img-{words}")),
        *("-append", "root=/dev/vda rw console=ttyS0 quiet panic=-1"),
        *("-drive", f"file={image},format=raw,if=virtio,snapshot=on"),
        *("-serial", f"file:{folder / 'console.log'}", "-serial", f"file:{report}"),
    ]


def _accelerator() -> list[str]:
    """KVM if available; else emulation in one thread: with more, recording freezes QEMU 7.2."""
    flags = Path("/proc/cpuinfo").read_text("ascii").split()
    if Path("/dev/kvm").exists() and not {"vmx", "svm"}.isdisjoint(flags):
        return ["-accel", "kvm"]
    return ["-accel", "tcg,thread=single"]

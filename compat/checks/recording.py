"""Recordings beside the distribution's own PostgreSQL under systemd; then profile, predict and advise."""

from __future__ import annotations

import subprocess
from pathlib import Path

from checks.tools import (
    about,
    left_behind,
    pgbench,
    postgres_programs,
    query,
    run,
    tierwise,
    until,
    work_folder,
)


def under_systemd() -> None:
    """The service as installed."""
    folder = work_folder("recording")
    _record("postgresql", folder / "of")
    assert not left_behind(), left_behind()
    print(_use(folder / "of", "/var/lib/postgresql/"))


def on_an_emulated_disk() -> None:
    """The server of the disk is known: its processor time is storage, not another program's."""
    folder = work_folder("recording-disk")
    mount = folder / "disk"
    version = postgres_programs().parent.name
    tierwise("disk", "up", "pg", "--profile", "ssd-sata-dc", "--size", "1G", "--mount", mount)
    try:
        run("install", "--directory", "--owner=postgres", "--mode=700", mount / "data")
        run("pg_createcluster", version, "compat", "-d", mount / "data", "--port", "5432")
        try:
            _record(f"postgresql@{version}-compat", folder / "of")
        finally:
            run("pg_dropcluster", version, "compat")
    finally:
        tierwise("disk", "down", "pg")
    assert not left_behind(), left_behind()
    about_recording = about(folder / "of")
    served_ns = sum(burst["storage_cpu"]["server_ns"] for burst in about_recording["bursts"])
    length_ns = sum(burst["end_ns"] - burst["start_ns"] for burst in about_recording["bursts"])
    assert served_ns > 0, about_recording["bursts"]
    assert any(device["profile"] for device in about_recording["devices"]), about_recording["devices"]
    share = about_recording["foreign_cpu_share"]
    use = _use(folder / "of", str(mount))
    print(f"disk's server {served_ns / length_ns:.0%} of a core, other programs {share:.0%} of all; {use}")


def _record(unit: str, recording: Path) -> None:
    """Start a unit, put it under load, record it, and stop it."""
    options = ["--engine", "postgres", "--duration", "30s", "--duty", "1/3"]
    run("systemctl", "start", unit)
    try:
        until(lambda: subprocess.run(["pg_isready", "-q"], check=False).returncode == 0)
        with pgbench(600):
            # Its exit status is that of the verdict, which may be negative on a slow machine.
            tierwise("record", "-o", recording, *options, status=None)
    finally:
        run("systemctl", "stop", unit)


def _use(recording: Path, below: str) -> str:
    """Roles by path, and each command's first line."""
    counted = f"SELECT role, count(*) FROM files WHERE starts_with(path, '{below}') GROUP BY role"
    roles = dict(query(recording, counted))
    assert {"log", "data"} <= set(roles), roles
    about_recording = about(recording)
    assert about_recording["losses"]["lost_events"] == 0, about_recording["losses"]
    questions = (
        ["profile"],
        ["predict", "--place", "log=nvme-dc"],
        ["advise", "--devices", "nvme-dc,hdd-7k2"],
    )
    output = [tierwise(command, recording, *rest, status=None) for command, *rest in questions]
    first = " / ".join(text.strip().splitlines()[0] for text in output)
    events = about_recording["losses"]["recorded_events"]
    seen = f"{events} events, {about_recording['transactions']} transactions"
    return f"{roles}; {seen}; {first}"


CHECKS = [under_systemd, on_an_emulated_disk]

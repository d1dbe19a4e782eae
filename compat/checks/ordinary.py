"""The machine itself, and all commands that need no root, as an ordinary user."""

from __future__ import annotations

import json

from checks.tools import RECORDINGS, tierwise


def doctor_as_root() -> None:
    """All capabilities are available, with control groups of version 2."""
    checks = {
        check["name"]: check
        for check in json.loads(tierwise("doctor", "--format", "json", status=None))["checks"]
    }
    missing = [name for name, check in checks.items() if not check["ok"]]
    assert not missing, missing
    for name in ("memory cgroup", "block I/O cgroup"):
        assert checks[name]["detail"] == "version 2", checks[name]
    print(", ".join(f"{name}: {check['detail']}" for name, check in checks.items()))


def doctor_as_user() -> None:
    """An ordinary user gets the list, too."""
    checks = {
        check["name"]: check
        for check in json.loads(tierwise("doctor", "--format", "json", user="dba", status=None))["checks"]
    }
    assert not checks["root"]["ok"] and checks["root"]["fix"], checks["root"]
    print(f"{len(checks)} lines")


def commands_of_a_user() -> None:
    """Commands that need no root work without it."""
    sentences = [
        tierwise(*words, user="dba")
        for words in (["study", "list"], ["device", "list"], ["workload", "list"])
    ]
    simulate = ["device", "simulate", "hdd-7k2", "--preset", "randread-4k", "--count", "200"]
    sentences.append(tierwise(*simulate, user="dba"))
    print(f"{sum(len(text.splitlines()) for text in sentences)} lines")


def recording_of_a_user() -> None:
    """A recording is judged, predicted and advised on."""
    recording = RECORDINGS / "order-entry"
    tierwise("profile", recording, user="dba")
    predicted = tierwise("predict", recording, "--place", "log=nvme-dc", user="dba")
    advised = tierwise("advise", recording, "--devices", "nvme-dc,hdd-7k2", user="dba")
    assert "log" in predicted and "log" in advised, predicted + advised
    print(advised.strip().splitlines()[0])


def root_is_asked_for() -> None:
    """Commands that need root say so in one line."""
    output = tierwise(
        "disk",
        "up",
        "d",
        "--profile",
        "hdd-7k2",
        "--size",
        "64M",
        "--mount",
        "/tmp/d",
        user="dba",
        status=3,
    )
    assert "root" in output, output
    print(output.strip().splitlines()[-1])


CHECKS = [doctor_as_root, doctor_as_user, commands_of_a_user, recording_of_a_user, root_is_asked_for]

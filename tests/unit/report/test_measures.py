"""Measures of a run."""

from __future__ import annotations

from support.results_factory import INFO, study_runs
from tierwise.lab.analysis.measures import whole_run_part
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.results import DeviceInfo, RoleIo


def test_two_directories_on_one_device_count_once() -> None:
    run = next(iter(study_runs()))
    whole = RoleIo(device="a", reads=10, writes=5, flushes=1, read_bytes=4096, write_bytes=512)
    first = DeviceInfo(name="a", kind="real", roles=[], io=whole)
    second = first.model_copy(update={"name": "b", "io": whole.model_copy(update={"device": "b"})})
    shared = second.model_copy(update={"same_device_as": "a"})

    def reads(*devices: DeviceInfo, io: dict[str, RoleIo] | None = None) -> int:
        changed = run.model_copy(update={"devices": list(devices), "io": io or {}})
        return sum(role_io.reads for role_io in whole_run_part(changed).total_io)

    assert reads(first, second) == 20
    assert reads(first, shared) == 10
    assert reads(first, shared, io={"log": whole.model_copy(update={"device": "b"})}) == 10


def test_two_directories_on_one_device_are_no_move() -> None:
    """The runs that use both tell it of those that use one of them."""
    hdd, ssd = (DeviceInfo(name=name, kind="real", path=f"/{name}", roles=[]) for name in ("hdd", "ssd"))
    log = hdd.model_copy(update={"name": "hdd-log"})
    both = [hdd, ssd.model_copy(update={"same_device_as": "hdd"})]
    used = {"all-hdd": [hdd, log], "all-ssd": [ssd], "log-ssd": both}
    runs = [run.model_copy(update={"devices": used[run.placement]}) for run in study_runs()]
    (comparison,) = build_study_answer(runs, INFO).comparisons
    assert not any(row.moved for row in comparison.rows)
    assert any("used the same devices" in caveat for caveat in comparison.words.caveats)
    assert comparison.first is None

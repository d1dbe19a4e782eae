"""Studies as data, and the order of their runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierwise.lab import engines
from tierwise.lab import studies as study
from tierwise.lab.studies.runner.run_storage import check_devices
from tierwise.lab.studies.study import plan_runs
from tierwise.lab.studies.study_options import StudyOptions
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.model.units import parse_size_bytes

MINIMAL = """
name = "s"
question = "?"
engines = ["postgres"]
workload = "order_entry"
clients = 1
transactions = 10
warmup_transactions = 0
repeats = 2
baseline = "a"
[devices.d]
profile = "ram"
[placements.a]
default = "d"
[placements.b]
log = "d"
default = "d"
"""


@pytest.mark.parametrize("name", study.study_names())
def test_shipped_studies_are_valid(name: str) -> None:
    assert study.load_study(name).name == name


@pytest.mark.parametrize("name", study.study_names())
def test_partitions_of_shipped_studies_fit_their_devices(name: str) -> None:
    shipped = study.load_study(name)
    for scale in ({"quick": False}, {"quick": True}, {"scale": "paper"}):
        chosen = StudyOptions(**scale).applied_to(shipped)  # type: ignore[arg-type]
        for engine in set(chosen.engines) - {study.FILE_ENGINE}:
            check_devices(chosen, engines._named(engines._ENGINES[engine][0]).roles)


@given(st.integers(0, 2**31))
def test_each_block_holds_every_placement_once(seed: int) -> None:
    plans = plan_runs(study.parse_study(MINIMAL, "s.toml"), seed)
    assert Counter(plan.run_id for plan in plans) == {f"postgres/{p}/{r}": 1 for p in "ab" for r in range(2)}
    assert [plan.repeat for plan in plans] == [0, 0, 1, 1]
    assert plans == plan_runs(study.parse_study(MINIMAL, "s.toml"), seed)


def test_order_is_random() -> None:
    chosen = study.parse_study(MINIMAL, "s.toml")
    assert {plan_runs(chosen, seed)[0].placement.name for seed in range(20)} == {"a", "b"}


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('baseline = "a"', 'baseline = "zz"', "baseline names the unknown placement 'zz'"),
        ('log = "d"', 'log = "zz"', "placements.b.log names the unknown device 'zz'"),
        ('log = "d"', 'lgo = "d"', "placements.b.roles.lgo"),
        ("clients = 1", "clients = 0", "clients"),
        ("clients = 1", "client = 1", "client"),
        ("clients = 1", "clients = true", "clients: Input should be a valid integer"),
        ("repeats = 2", 'repeats = "2"', "repeats: Input should be a valid integer"),
        ("repeats = 2", "repeats = 2\nquestion = 2000-01-01", "s.toml"),
        ('profile = "ram"', "", "devices.d"),
        ("transactions = 10", "transactions = 10\nseconds = 1", "transactions and seconds"),
        ('question = "?"', "question =", "s.toml"),
        ('profile = "ram"', 'path = ""', "devices.d: give either"),
        ("repeats = 2", 'repeats = 2\ndying = ["log"]', "dying: no device dies"),
        ("repeats = 2", 'repeats = 2\ndurability = ["x"]', "durability: no power is cut"),
        (
            "[devices.d]",
            '[settings.postgress]\nwork_mem = "1MB"\n[devices.d]',
            "settings.postgress: there is no such",
        ),
        ("[devices.d]", '[sweep]\ndying = ["log"]\n[devices.d]', "dying: no device dies"),
        (
            "transactions = 10",
            'seconds = 1\ncuts = 9\nmemory = "1G"',
            "memory: a study of devices or of faults",
        ),
        (
            "transactions = 10",
            'seconds = 1\ncuts = 9\nsweep.memory = ["1G"]',
            "sweep.memory: a study of devices or of faults",
        ),
        ("[devices.d]", "[sweep.constants]\nitems = []\n[devices.d]", "sweep.constants.items: no value"),
        ("[devices.d]", "[sweep.constants]\nitems = [1, 1.0]\n[devices.d]", "sweep.constants.items: 1, 1"),
        ("[devices.d]", '[sweep]\nvariant = ["x", "x"]\n[variants.x]\n[devices.d]', "sweep.variant: x, x"),
        (
            "[devices.d]",
            "[variants.x]\nrepeats = 3\n[devices.d]",
            "variants.x.repeats: it holds for a whole study",
        ),
        (
            "[devices.d]",
            '[variants.x.settings.sqlit]\nsynchronous = "off"\n[devices.d]',
            "variants.x.settings.sqlit: there is no such engine: did you mean sqlite?",
        ),
        ("[devices.d]", '[quick.sweep]\nvariant = ["x"]\n[devices.d]', "quick: sweep.variant names 'x'"),
        ("[devices.d]", "[variants.x]\nclients = 3\n[devices.d]", "variants.x: no sweep runs it"),
    ],
)
def test_errors_name_file_and_field(old: str, new: str, named: str) -> None:
    with pytest.raises(TierwiseError) as caught:
        study.parse_study(MINIMAL.replace(old, new), "s.toml")
    assert "s.toml" in str(caught.value)
    assert named in str(caught.value)


def test_unknown_study_lists_the_known_ones() -> None:
    with pytest.raises(TierwiseError, match="redo-placement"):
        study.load_study("nonsense")


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"none\.toml"):
        study.load_study(str(tmp_path / "none.toml"))


def test_fingerprint_ignores_words_but_not_work() -> None:
    parsed = study.parse_study(MINIMAL, "s.toml")
    assert study.parse_study(MINIMAL.replace('"?"', '"why?"'), "s.toml").fingerprint() == parsed.fingerprint()
    assert study.parse_study(MINIMAL.replace("= 10", "= 11"), "s.toml").fingerprint() != parsed.fingerprint()


def test_sizes_are_written_as_people_write_them() -> None:
    chosen = study.parse_study(MINIMAL + '[sizes]\nlog = "512M"\n', "s.toml")
    assert chosen.size_bytes(Role.LOG) == 512 << 20


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("4G", 4 << 30),
        ("8192", 8192),
        ("1MiB", 1 << 20),
        ("2 kB", 2048),
        ("1.5G", 3 << 29),
        ("0.25 MiB", 1 << 18),
    ],
)
def test_sizes(text: str, size_bytes: int) -> None:
    assert parse_size_bytes(text, "--size") == size_bytes


@pytest.mark.parametrize("text", ["0", "", "-1G", "4X", "0G", "1.5", "0.0G", "1.G"])
def test_impossible_sizes_name_the_option(text: str) -> None:
    with pytest.raises(TierwiseError, match="--size"):
        parse_size_bytes(text, "--size")

"""``tierwise device import``: a drive's files become a profile that loads; a fault is named in one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.commands import Finished, tierwise
from support.paths import GOLDEN
from tierwise.cli.schema import SCHEMAS
from tierwise.device_models import profiles
from tierwise.device_models.profiles import profile_from_drive_files
from tierwise.model.errors import TierwiseError

SEEK = "distance_cylinders,seek_ms\n1,1.0\n4,1.5\n99,6.0\n"


def drive() -> dict[str, Any]:
    """A drive of one zone with 20,000 sectors."""
    events = ("Read hit", "Read miss", "Write hit", "Write miss")
    kinds = [f"{event} over. after {before}" for event in events for before in ("read", "write")]
    return {
        "drive": 'Made up "for tests"',
        "source": "made up",
        "surfaces": 4,
        "sectors": 20_000,
        "mechanics": {"rpm": 6000, "head_switch_ms": 0.5, "write_settle_ms": 0.3},
        "zones": [
            {
                "first_cylinder": 0,
                "last_cylinder": 99,
                "sectors_per_track": 50,
                "first_sector_offset": 0,
                "track_skew_sectors": 7,
                "cylinder_skew_sectors": 9,
                "spare_sectors": 0,
                "slips": 0,
            }
        ],
        "lbn_mapping_scheme": 0,
        "cache": {
            "segments": 2,
            "max_write_segments": 1,
            "segment_sectors": 64,
            "readahead_max_sectors": 32,
            "fast_write_level": 2,
            "continuous_read": 3,
            "bus_ms_per_sector": 0.1,
        },
        "overheads_ms": dict.fromkeys(kinds, 0.3)
        | {"Read completion overhead": 0.0, "Write completion overhead": 0.0},
    }


def write(folder: Path, geometry: object, seek: str = SEEK) -> tuple[Path, Path]:
    files = folder / "geometry.json", folder / "seek.csv"
    files[0].write_text(json.dumps(geometry))
    files[1].write_text(seek)
    return files


def run(*arguments: str | Path) -> Finished:
    return tierwise("device", "import", *arguments)


def test_an_imported_drive_loads_as_a_profile(tmp_path: Path) -> None:
    output = tmp_path / "made-up.toml"
    done = run(*write(tmp_path, drive()), "-o", output)
    assert (done.returncode, done.stderr) == (0, "")
    profile = profiles.load_profile(str(output))
    assert (profile.kind, profile.summary) == ("hdd", 'Made up "for tests"')
    assert profile.capacity_bytes == 20_000 * 512
    assert profile.write_cache
    assert profile.sources["mechanics.read_settle_us"].startswith("estimated:")


def test_without_an_output_the_profile_is_printed(tmp_path: Path) -> None:
    files = write(tmp_path, drive())
    assert run(*files).stdout == profile_from_drive_files(*files).text
    printed = json.loads(run(*files, "--format", "json").stdout)
    Draft202012Validator(SCHEMAS["drive"]()).validate(printed)
    assert printed["text"] == profile_from_drive_files(*files).text


def test_a_fault_is_one_line_with_file_and_place(tmp_path: Path) -> None:
    broken = drive()
    broken["zones"][0]["sectors_per_track"] = -50
    files = write(tmp_path, broken)
    done = run(*files)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"{files[0]}: zones[0].sectors_per_track = -50: give 8 to 100000" in done.stderr


@pytest.mark.parametrize(
    ("change", "seek", "problem"),
    [
        ({"zones": []}, SEEK, "geometry.json: zones: empty"),
        ({"mechanics": {"rpm": 6000}}, SEEK, "geometry.json: missing field `head_switch_ms` at line 1"),
        ({"sectors": "many"}, SEEK, "geometry.json: invalid type: string"),
        ({}, "distance_cylinders,seek_ms\n1,1.0\n4\n", "seek.csv: line 3: not `distance,milliseconds`: 4"),
        ({}, "distance_cylinders,seek_ms\n9,1.0\n4,1.5\n", "seek.csv: line 3: distances must ascend"),
        ({}, "", "seek.csv: line 2: no seek time in the table"),
    ],
)
def test_faults_are_named(tmp_path: Path, change: dict[str, Any], seek: str, problem: str) -> None:
    with pytest.raises(TierwiseError) as error:
        profile_from_drive_files(*write(tmp_path, drive() | change, seek))
    assert problem in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TierwiseError, match=r"seek\.csv: No such file"):
        profile_from_drive_files(write(tmp_path, drive())[0], tmp_path / "elsewhere" / "seek.csv")


@pytest.mark.parametrize("name", ["atlas-10k", "atlas-iii", "cheetah-9lp", "dec-rz26", "hp-c2490a"])
def test_a_measured_drive_has_the_sectors_that_its_files_state(name: str, tmp_path: Path) -> None:
    folder = GOLDEN / name
    if not folder.is_dir():
        pytest.skip("no measured drives in ../shared/golden/hdd")
    geometry = folder / "geometry.json"
    profile = profiles.parse_profile(
        profile_from_drive_files(geometry, folder / "seek.csv").text, tmp_path / f"{name}.toml"
    )
    assert profile.capacity_bytes == json.loads(geometry.read_text())["sectors"] * 512

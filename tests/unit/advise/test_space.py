"""Space that files may need by the settings of their engine, and when a device is full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.fake_replay import about, predictor
from tierwise.advise import Advice, AdviceOptions, PaymentTerms, advise
from tierwise.model.placement import Role
from tierwise.predict import Predictor
from tierwise.predict.role_space import RoleSpace, role_spaces
from tierwise.report.advice import survey_advice
from tierwise.report.advice.page_data import advice_page_data
from tierwise.report.document import Text
from tierwise.report.recording.advice_report import advice_document

MIB, GIB = 1 << 20, 1 << 30
DAY_S = 86_400


def space_of(role: Role, engine: str, settings: dict[str, str], **fields: Any) -> RoleSpace:
    return role_spaces(about(engine=engine, settings=settings, **fields), {role: 16 * MIB})[role]


@pytest.mark.parametrize(
    ("settings", "needed_bytes"),
    [
        ({"max_wal_size": "2GB"}, 2 * GIB),
        ({"max_wal_size": "2048MB", "wal_keep_size": "512MB"}, 2 * GIB + 512 * MIB),
        ({"max_wal_size": "1GB", "wal_keep_size": "1GB", "max_slot_wal_keep_size": "3GB"}, 4 * GIB),
        ({"max_wal_size": "1GB", "max_slot_wal_keep_size": "-1"}, GIB),
        ({"max_wal_size": "1GB", "wal_keep_segments": "64"}, 2 * GIB),
        ({"max_wal_size": "1GB", "wal_keep_segments": "64", "wal_segment_size": "32MB"}, 3 * GIB),
        ({"fsync": "on"}, GIB),
        ({"max_wal_size": "9" * 5000}, GIB),
        ({"max_wal_size": "9" * 400 + "TB"}, GIB),
        ({}, 16 * MIB),
    ],
)
def test_a_log_of_postgres_needs_what_its_settings_keep(settings: dict[str, str], needed_bytes: int) -> None:
    space = space_of(Role.LOG, "postgres", settings)
    assert space.size_bytes == needed_bytes
    assert sum(part.size_bytes for part in space.parts) in (needed_bytes, 0)


@pytest.mark.parametrize(
    ("engine", "settings", "needed_bytes"),
    [
        ("mariadb", {"innodb_log_file_size": "100663296"}, 96 * MIB),
        ("mysql", {"innodb_log_file_size": "48M"}, 96 * MIB),
        ("mysql", {"innodb_log_file_size": "48M", "innodb_log_files_in_group": "4"}, 192 * MIB),
        ("mysql", {"innodb_log_file_size": "48M", "innodb_redo_log_capacity": "1G"}, GIB),
        ("mysql", {"innodb_log_file_size": "48M", "innodb_redo_log_capacity": "104857600"}, 100 * MIB),
        ("mysql", {"innodb_log_file_size": "64M", "innodb_redo_log_capacity": "104857600"}, 128 * MIB),
    ],
)
def test_redo_logs_have_their_whole_size(engine: str, settings: dict[str, str], needed_bytes: int) -> None:
    assert space_of(Role.LOG, engine, settings).size_bytes == needed_bytes


@pytest.mark.parametrize(
    ("settings", "needed_bytes", "unlimited"),
    [
        ({"binlog_expire_logs_seconds": str(DAY_S)}, 2_000_000 * DAY_S, ""),
        ({"expire_logs_days": "2.0", "max_binlog_size": "1G"}, 2_000_000 * 2 * DAY_S + GIB, ""),
        ({"binlog_expire_logs_seconds": "0"}, 16 * MIB, "since binary logs never expire"),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "1"}, 2_000_000 * DAY_S, ""),
        ({}, 16 * MIB, "unless binary logs expire"),
        ({"sync_binlog": "1"}, 16 * MIB, "unless binary logs expire"),
    ],
)
def test_binary_logs_stay_until_they_expire(
    settings: dict[str, str], needed_bytes: int, unlimited: str
) -> None:
    for engine in ("mariadb", "mysql"):
        described = about(engine=engine, settings=settings)
        space = role_spaces(described, {Role.ARCHIVE: 16 * MIB}, {Role.ARCHIVE: 2e6})[Role.ARCHIVE]
        assert (space.size_bytes, space.unlimited) == (needed_bytes, unlimited)


@pytest.mark.parametrize(
    ("settings", "slots", "unlimited"),
    [
        ({"archive_mode": "on", "max_slot_wal_keep_size": "1GB"}, None, "if archiving stops"),
        ({"archive_mode": "off", "max_slot_wal_keep_size": "1GB"}, 1, ""),
        ({"max_wal_size": "1GB"}, 1, "if the reader of a replication slot stops"),
        ({"max_wal_size": "1GB"}, 0, ""),
        ({"max_wal_size": "1GB"}, None, ""),
        ({}, 0, "if its settings, which are not known, let it grow"),
        ({"max_slot_wal_keep_size": "-1"}, None, "if the reader of a replication slot stops"),
        ({"max_slot_wal_keep_size": "-1"}, 0, ""),
        (
            {"archive_mode": "always", "max_slot_wal_keep_size": "-1"},
            2,
            "if archiving stops or the reader of a replication slot stops",
        ),
    ],
)
def test_what_lets_a_log_grow_is_named(settings: dict[str, str], slots: int | None, unlimited: str) -> None:
    assert space_of(Role.LOG, "postgres", settings, replication_slots=slots).unlimited == unlimited


def test_a_log_of_sqlite_grows_while_it_is_read() -> None:
    assert space_of(Role.LOG, "sqlite", {"journal_mode": "wal"}).unlimited == "if a reader never ends"


def test_what_the_engine_counts_goes_before_what_is_written() -> None:
    described = about(engine="postgres", counters={"log_bytes": 600_000_000})
    spaces = role_spaces(described, {Role.LOG: MIB, Role.DATA: MIB}, {Role.LOG: 5e7, Role.DATA: 3e6})
    assert spaces[Role.LOG].grows_bytes_per_s == 600_000_000 / described.duration_s
    assert spaces[Role.DATA].grows_bytes_per_s == 3e6


def test_files_that_were_not_touched_count() -> None:
    space = space_of(Role.DATA, "postgres", {}, role_bytes={Role.DATA: 7 * GIB})
    assert (space.size_bytes, space.now_bytes) == (7 * GIB, 7 * GIB)


def of_log(devices: list[str], terms: PaymentTerms | None = None, **fields: Any) -> tuple[Predictor, Advice]:
    made = predictor(**fields)
    return made, advise(made, AdviceOptions(devices, terms=terms or PaymentTerms()))


SAID = {
    "settings": {
        "max_wal_size": "20GB",
        "archive_mode": "on",
        "wal_keep_size": "1GB",
        "max_slot_wal_keep_size": "1GB",
    }
}


def test_a_log_is_billed_for_what_it_may_need_and_says_when_it_is_full() -> None:
    made, advice = of_log(["io2"], **SAID)
    option = advice.decision.option
    assert Role.LOG in option.placement
    size = next(part for bill in option.bills for part in bill.parts if part.what == "size")
    assert size.quantity >= 21
    (filling,) = advice.filling
    written, speedup = advice.recorded.io[Role.LOG].written_bytes_per_s, option.prediction.speedup
    assert speedup and filling.full_after_s == pytest.approx(filling.free_bytes / written / speedup.value)
    text = " ".join(block.text for block in advice_document(advice) if isinstance(block, Text))
    assert "The log may need 21.0 GiB, now 954 MiB: " in text
    assert "max_wal_size 20.0 GiB and wal_keep_size 1.00 GiB." in text
    assert "If archiving stops, the log fills the free " in text and "and the server stops." in text
    page = advice_page_data(survey_advice(made, advice, PaymentTerms(), Path("shop")))
    (card,) = (role for role in page["roles"] if role["name"] == "log")
    assert card["size_bytes"] == 21 * GIB


def test_a_mirror_of_rented_volumes_is_full_with_half_of_what_is_paid(tmp_path: Path) -> None:
    """The free space was that of both sides."""
    mirror = tmp_path / "mirror.toml"
    mirror.write_text(
        'kind = "array"\nsummary = "two volumes, mirrored"\nmember = "volume-aws-gp3"\nmembers = 2\n'
        'level = "raid1"\ncoupled = false\n[source]\nmembers = "by definition: a mirror of two"\n'
    )
    free_bytes = []
    for device in ("gp3", str(mirror)):
        _, advice = of_log([device], PaymentTerms.parse(headroom="50%"), **SAID)
        (filling,) = advice.filling
        free_bytes.append(filling.free_bytes)
    assert free_bytes[0] > 10 * GIB and free_bytes[1] == free_bytes[0]


def test_a_device_that_would_be_full_is_no_candidate() -> None:
    _, fits = of_log(
        ["ssd-dram-fc"], PaymentTerms.parse(have="ssd-dram-fc"), settings={"max_wal_size": "1GB"}
    )
    assert [left.roles for left in fits.left_out] == [[Role.DATA]]
    _, full = of_log(
        ["ssd-dram-fc"], PaymentTerms.parse(have="ssd-dram-fc"), settings={"max_wal_size": "90TB"}
    )
    assert all(Role.LOG not in move.placement for move in full.moves)
    assert Role.LOG not in full.decision.option.placement
    assert [left.roles for left in full.left_out] == [[Role.LOG, Role.DATA]]


def test_no_device_is_said_to_be_of_no_use_to_a_log_that_it_does_not_hold() -> None:
    _, advice = of_log(["hdd-7k2"], settings={"max_wal_size": "90TB"})
    assert advice.decision.why == "alike"
    text = " ".join(block.text for block in advice_document(advice) if isinstance(block, Text))
    assert "waiting for the log, which none of these placements shortens" in text
    assert "Left out, since the files with the room asked for do not fit: the log on hdd-7k2." in text

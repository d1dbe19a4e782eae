"""Which tables and indexes deserve a device."""

from __future__ import annotations

import csv
import json
import shutil
from itertools import combinations
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from support.fake_tables import tables_predictor
from support.paths import RECORDINGS
from tierwise.advise import PaymentTerms, table_advice
from tierwise.advise.table_advice import TableAdvice, advise_tables, pareto_sets, table_advice_beside
from tierwise.cli import app
from tierwise.device_models.prices import PriceList
from tierwise.model.errors import TierwiseError
from tierwise.predict import Prediction, Predictor, Scenario
from tierwise.report.recording.tables_report import tables_headline

RECORDED = RECORDINGS / "pgbench-10gb"
NAMES = RECORDINGS / "pgbench-10gb.names.csv"
ITEMS = st.lists(st.tuples(st.integers(0, 50), st.floats(0, 10)), min_size=1, max_size=7)


@given(items=ITEMS, capacity=st.none() | st.integers(0, 150))
def test_no_set_of_at_most_its_size_has_a_higher_value(
    items: list[tuple[int, float]], capacity: int | None
) -> None:
    def figures(places: tuple[int, ...]) -> tuple[int, float]:
        return sum(items[place][0] for place in places), sum(items[place][1] for place in places)

    best = [figures(places) for places in pareto_sets(items, capacity)]
    numbers = range(len(items))
    every = [figures(places) for count in numbers for places in combinations(numbers, count + 1)]
    for size, value in every:
        if value > 0 and (capacity is None or size <= capacity):
            assert any(other <= size and worth >= value - 1e-9 for other, worth in best)
    assert best == sorted(best)
    assert all(capacity is None or size <= capacity for size, _ in best)


def test_many_alike_tables_end_in_time() -> None:
    best = pareto_sets([(1000 + place, 1.0 + place / 1000) for place in range(60)], 40_000)
    assert best
    assert max(len(places) for places in best) <= 39


def test_the_set_that_fits_is_recommended_with_what_it_gains() -> None:
    predictor = Predictor.open(RECORDED, seeds=2, names=NAMES)
    advice = advise_tables(predictor, ["nvme-dc"])
    (device_tables,) = advice.devices
    assert [table_set.names for table_set in device_tables.sets][-1] == [
        "public.pgbench_accounts",
        "public.pgbench_accounts_pkey",
    ]
    wide = device_tables.sets[-1].prediction
    assert wide.bounds_only and wide.speedup is not None
    stated = f"between {wide.speedup.low:.1f} and {wide.speedup.high:.1f} times"
    assert stated in tables_headline(advice), "as advise and predict say it"
    gains = [table_set.gain for table_set in device_tables.sets]
    assert gains == sorted(gains)
    (small,) = advise_tables(predictor, ["nvme-dc"], capacity_bytes=2_000_000_000).devices
    assert [table_set.names for table_set in small.sets] == [["public.pgbench_accounts_pkey"]]
    with pytest.raises(TierwiseError, match="fits the device"):
        advise_tables(predictor, ["nvme-dc"], capacity_bytes=1000)


TABLES = ["public.orders", "public.orders_pkey", "public.items"]


def test_a_warning_that_differs_between_sets_in_numbers_alone_is_given_once() -> None:
    advice = advise_tables(Predictor.open(RECORDED, seeds=3, names=NAMES), ["gp3"])
    assert sum("replaying the recorded run gives" in text for text in advice.warnings) == 1


def test_devices_are_ranked_by_gain_then_by_price() -> None:
    advice = advise_tables(tables_predictor(TABLES), ["io2", "gp3", "nvme-dc", "7k2"])
    assert [device.device for device in advice.devices] == [
        "volume-aws-gp3",
        "ssd-nvme-dc",
        "volume-aws-io2",
        "hdd-7k2",
    ], "gp3 is within 15 % of nvme-dc for less; a disk such as the recorded one gains nothing"
    assert [device.best is None for device in advice.devices] == [False, False, False, True]


def test_tables_are_not_put_where_a_stop_loses_them_unless_that_is_allowed() -> None:
    predictor, free = tables_predictor(TABLES), ("ram", "ssd-nvme-instance-store")

    def advised(*devices: str, rebuildable: bool = False) -> TableAdvice:
        return advise_tables(predictor, devices, PaymentTerms(have=free, rebuildable=rebuildable))

    first, memory, store = advised("ram", "instance-store", "gp3").devices
    assert (first.device, memory.device, store.device) == ("volume-aws-gp3", *free)
    assert not first.lost_at_stop and memory.lost_at_stop and store.lost_at_stop
    assert not memory.sets and not store.sets, "they hold files of replicas only"
    assert advised("instance-store", "gp3", rebuildable=True).devices[0].device == free[1]
    with pytest.raises(TierwiseError, match="a stop of the machine takes all files"):
        advised("instance-store")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--have", "ram", "--rebuildable"],
            "Caution: a power cut or a restart of the machine loses the selected tables",
        ),
        (["--have", "ram", "--devices", "gp3"], "Left out, since a stop of the machine takes all files: ram"),
        (["--devices", "instance-store", "--rebuildable"], "Caution: a stop of the machine loses the"),
        (["--have", "gp3", "--devices", "nvme-dc"], "The best sets by size on volume-aws-gp3"),
    ],
)
def test_an_answer_for_tables_says_what_a_stop_loses(options: list[str], expected: str) -> None:
    asked = ["advise", str(RECORDED), "--by", "table", "--names", str(NAMES), "--seeds", "2", *options]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert expected in " ".join(result.output.split())


def test_a_page_says_what_a_restart_loses_of_the_tables_moved_to_memory(tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    asked = [
        "advise",
        str(RECORDED),
        "--names",
        str(NAMES),
        "--seeds",
        "2",
        "--have",
        "ram",
        "--rebuildable",
        "-o",
        str(page),
    ]
    assert CliRunner().invoke(app, asked).exit_code == 0
    tables = page.read_text("utf-8").partition('id="tables"')[2].partition("</section>")[0]
    assert "restart of the machine loses the selected tables, since ram is memory" in tables


def test_a_lesser_set_is_recommended_where_the_best_cannot_be_told_from_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The interval of the largest set included no change, and the tables were left where they are."""
    (free,) = advise_tables(tables_predictor(TABLES), ["nvme-dc"]).devices
    speedups = [table_set.prediction.speedup for table_set in free.sets]
    assert free.best == len(speedups) - 1 > 0 and speedups[-1] is not None
    most = speedups[-1].value

    def is_sure_gain(after: Prediction, staying: Prediction) -> bool:
        return after.speedup is not None and after.speedup.value < most

    monkeypatch.setattr(table_advice, "is_sure_gain", is_sure_gain)
    (bounded,) = advise_tables(tables_predictor(TABLES), ["nvme-dc"]).devices
    assert bounded.best == len(speedups) - 2


def test_the_price_is_that_of_the_device_for_the_files_of_the_set() -> None:
    predictor = tables_predictor(TABLES)
    for terms, per_month in (
        (PaymentTerms(), 10.0),
        (PaymentTerms(years=2.5), 20.0),
        (PaymentTerms(have=("ssd-nvme-dc",)), 0.0),
    ):
        (device_tables,) = advise_tables(predictor, ["nvme-dc"], terms).devices
        best = device_tables.recommended
        assert best and best.gain_per_s and best.bill.per_month == pytest.approx(per_month)
        rate = predictor.as_recorded.rate_per_s
        assert rate and best.gain_per_s == pytest.approx(rate.value * best.gain, rel=0.01)
        per_cost = best.gain_per_s / per_month if per_month else None
        assert best.gain_per_cost == (per_cost and pytest.approx(per_cost))
    (rented,) = advise_tables(predictor, ["gp3"], PaymentTerms(headroom=1.0)).devices
    size_gib = 2 * rented.sets[0].size_bytes / 2**30
    assert rented.sets[0].bill.per_month == pytest.approx(0.08 * max(1, ceil(size_gib)), rel=0.5)


def test_headroom_takes_space_of_the_capacity() -> None:
    predictor = tables_predictor(TABLES)
    most = max(
        table_set.size_bytes
        for table_set in advise_tables(predictor, ["gp3"], PaymentTerms(headroom=1.0), 4_000_000_000)
        .devices[0]
        .sets
    )
    assert most <= 2_000_000_000


def test_tables_alone_and_what_they_gain_at_most() -> None:
    advice = advise_tables(tables_predictor(TABLES), ["nvme-dc"], alone=True)
    assert [single.names for single in advice.devices[0].alone] == [[name] for name in TABLES]
    for row, single in zip(advice.rows, advice.devices[0].alone, strict=True):
        assert row.at_most and single.prediction.speedup
        assert row.at_most.value >= single.prediction.speedup.value
    assert sum(row.wait_share for row in advice.rows) == pytest.approx(1.0)
    assert all(row.at_most is None for row in advise_tables(tables_predictor(TABLES), ["nvme-dc"]).rows)


def test_a_page_has_no_tables_where_none_has_a_name() -> None:
    assert table_advice_beside(tables_predictor([]), ["nvme-dc"], PaymentTerms()) is None
    with pytest.raises(TierwiseError, match="no names of tables"):
        table_advice_beside(tables_predictor([]), ["nvme-dc"], PaymentTerms(), named=True)


def test_an_index_that_is_hardly_read_stays(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("path,name,kind\nPG_18_202506291/5/16426,public.orders_pkey,index\n")
    recorded = RECORDINGS / "order-entry"
    predictor = Predictor.open(recorded, seeds=2, names=names)
    assert advise_tables(predictor, ["nvme-dc"]).devices[0].recommended is None


def test_a_budget_bounds_the_sets_and_a_gain_its_price(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    rent = '[devices.volume-aws-gp3]\nper_gib_month = 2.0\nsource = "our supplier"\ndate = "2026"\n'
    drive = '[devices.ssd-nvme-dc]\npurchase = 60000\nsource = "our supplier"\ndate = "2026"\n'
    file.write_text(f'currency = "USD"\n{rent}{drive}')
    terms, predictor = PaymentTerms(prices=PriceList.read(file)), tables_predictor(TABLES)

    def asked(budget: float | None) -> TableAdvice:
        return advise_tables(predictor, ["nvme-dc", "gp3"], terms, budget_per_month=budget)

    best = asked(None).devices[0]
    assert best.device == "volume-aws-gp3", "1,000 $/month for the drive, and a machine has 70"
    most = best.sets[-1].bill.per_month
    gp3, nvme = sorted(asked(0.6 * most).devices, key=lambda tables: tables.device, reverse=True)
    assert gp3.sets and all(0 < each.bill.per_month <= 0.6 * most for each in gp3.sets)
    assert gp3.sets[-1].size_bytes < best.sets[-1].size_bytes and not nvme.sets
    nothing = asked(0.0)
    assert not any(device.sets for device in nothing.devices)
    assert "none that was used fits" in tables_headline(nothing)


def test_all_tables_of_a_role_apart_are_as_fast_as_the_role() -> None:
    predictor = Predictor.open(RECORDED, seeds=2, names=NAMES)
    apart, role = predictor.predict(
        [Scenario(placement={"public.*": "nvme-dc"}), Scenario(placement={"data": "nvme-dc"})]
    )
    assert apart.rate_per_s is not None
    assert role.rate_per_s is not None
    assert apart.rate_per_s.value == pytest.approx(role.rate_per_s.value, rel=0.05)


def test_tables_that_stay_change_nothing() -> None:
    predictor = Predictor.open(RECORDED, seeds=2, names=NAMES)
    apart = predictor.selecting(("index:public.*",)).as_recorded
    assert apart.rate_per_s is not None
    assert predictor.as_recorded.rate_per_s is not None
    assert apart.rate_per_s.value == pytest.approx(predictor.as_recorded.rate_per_s.value, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["predict", "--place", "public.nothing=nvme-dc"], "no table or index of the recording"),
        (["predict", "--place", "public.*=nvme-dc,index:public.*=gp3"], "tables go to several devices"),
        (["predict", "--place", "selected=nvme-dc"], "unknown role 'selected'"),
        (["advise", "--by", "table"], "no device is asked about"),
        (["advise", "--by", "table", "--devices", "gp3", "--budget", "5 EUR"], "--budget: '5 EUR' is in EUR"),
        (["advise", "--by", "table", "--devices", "gp3", "--emit", "fio"], "--emit"),
        (["advise", "--by", "table", "--devices", "gp3", "--recorded-on", "gp3"], "--recorded-on"),
        (["advise", "--by", "table", "--devices", "gp3", "--years", "0"], "--years"),
        (["advise", "--capacity", "5G"], "add --by table"),
        (["profile", "--names", "x.csv"], "add --by file"),
    ],
)
def test_a_question_about_tables_that_has_no_answer_is_refused(arguments: list[str], problem: str) -> None:
    command, *options = arguments
    named = ["--names", str(NAMES)] if "--capacity" not in options and "--names" not in options else []
    result = CliRunner().invoke(app, [command, str(RECORDED), *options, *named])
    assert result.exit_code != 0
    assert problem in " ".join(f"{result.output} {result.exception}".split())


def test_a_recording_without_names_says_how_to_get_them() -> None:
    with pytest.raises(TierwiseError, match="has no names of tables"):
        Predictor.open(RECORDED).predict([Scenario(placement={"public.t": "nvme-dc"})])


def test_an_advice_with_names_has_tables_in_text_json_and_page(tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    asked = ["advise", str(RECORDED), "--devices", "nvme-dc", "--seeds", "2", "--names", str(NAMES)]
    plain = CliRunner().invoke(app, asked)
    assert plain.exit_code == 0, plain.output
    assert "The best sets by size on ssd-nvme-dc" in plain.output
    result = CliRunner().invoke(app, [*asked, "-o", str(page), "--format", "json"])
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)["advice"]["tables"]
    assert [row["name"] for row in tables["rows"]] == [
        "public.pgbench_accounts",
        "public.pgbench_accounts_pkey",
    ]
    assert [table["names"] for table in tables["devices"][0]["alone"]] == [
        [row["name"]] for row in tables["rows"]
    ]
    html = page.read_text("utf-8")
    assert 'id="tables"' in html and f"--names {NAMES}" in html
    assert "ALTER TABLE" in html[html.index('id="table-steps"') :]


def test_tables_are_behind_the_limits_of_the_machine_as_roles_are() -> None:
    asked = ["--devices", "gp3-16k", "--instance", "m6i.large", "--names", str(NAMES), "--seeds", "2"]
    result = CliRunner().invoke(app, ["advise", str(RECORDED), *asked, "--format", "json"])
    assert result.exit_code == 0, result.output
    advice = json.loads(result.stdout)["advice"]
    (data,) = (move for move in advice["moves"] if move["role"] == "data")
    best = advice["tables"]["devices"][0]["sets"][-1]
    alike = data["prediction"]["speedup"]["value"]
    assert best["prediction"]["speedup"]["value"] == pytest.approx(alike, rel=0.05)
    assert best["gain_per_s"] == pytest.approx(data["gain_per_s"], rel=0.05)


def test_the_steps_say_in_which_database_to_run_the_sql(tmp_path: Path) -> None:
    names, page = tmp_path / "names.csv", tmp_path / "advice.html"
    header, first, *others = NAMES.read_text().splitlines()
    names.write_text("\n".join([f"{header},database", f"{first},shop", *(f"{other}," for other in others)]))
    options = ["--devices", "nvme-dc", "--seeds", "2", "--names", str(names)]
    result = CliRunner().invoke(app, ["advise", str(RECORDED), "--by", "table", *options])
    assert result.exit_code == 0, result.output
    printed = " ".join(result.output.split())
    assert "Run the SQL in the database shop for shop.public.pgbench_accounts." in printed
    assert "Run the SQL in the database that the DSN names for public.pgbench_accounts_pkey." in printed
    made = CliRunner().invoke(app, ["advise", str(RECORDED), *options, "-o", str(page)])
    assert made.exit_code == 0, made.output
    steps = page.read_text("utf-8").partition('id="table-steps"')[2]
    assert "Run the SQL in the database shop for shop.public.pgbench_accounts." in steps


def test_a_profile_whose_named_tables_were_not_used_says_so(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("path,name,kind\nbase/1/1,public.other,table\n")
    options = ["--by", "file", "--no-savings", "--names", str(names)]
    result = CliRunner().invoke(app, ["profile", *options, str(RECORDED)])
    printed = " ".join(result.output.split())
    assert printed.startswith("No table or index with a name was read or written")
    assert "without a name." in printed and "no file has a name" not in printed


def test_a_profile_by_file_has_what_is_buffered_where_that_was_asked(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    shutil.copytree(RECORDED, recorded)
    files = [{"path": "base/16384/16410", "pages": 1280, "pages_by_use": {"5": 1280}}]
    content = {"page_bytes": 8192, "pages": 16384, "used_pages": 2560, "files": files}
    (recorded / "buffer.json").write_text(json.dumps(content))
    options = ["--by", "file", "--no-savings", "--names", str(NAMES), "--format", "md"]
    result = CliRunner().invoke(app, ["profile", *options, str(recorded)])
    assert result.exit_code == 0, result.output
    assert (
        "buffer of 128 MiB held 10.0 MiB of these tables and indexes and 10.0 MiB of other" in result.output
    )
    (index,) = [line for line in result.output.splitlines() if "| public.pgbench_accounts_pkey" in line]
    assert "buffered" in result.output and "| 10.0 MiB" in index
    plain = CliRunner().invoke(app, ["profile", *options, str(RECORDED)])
    assert "buffered" not in plain.output


def test_a_line_feed_in_a_name_starts_no_line(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    rows = list(csv.DictReader(NAMES.read_text().splitlines()))
    with names.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(
            {**row, "name": f"public.a\nb{place}", "table": ""} for place, row in enumerate(rows)
        )
    for asked in (
        ["advise", "--by", "table", "--devices", "gp3", "--seeds", "2"],
        ["profile", "--by", "file"],
    ):
        result = CliRunner().invoke(app, [asked[0], str(RECORDED), *asked[1:], "--names", str(names)])
        assert result.exit_code == 0, result.output
        assert "public.a?b0" in result.output and "public.a\n" not in result.output


def test_a_profile_by_file_lists_tables() -> None:
    options = ["--by", "file", "--no-savings", "--names", str(NAMES), "--format", "md"]
    result = CliRunner().invoke(app, ["profile", *options, str(RECORDED)])
    assert result.exit_code == 0, result.output
    assert "public.pgbench_accounts_pkey" in result.output


def test_a_profile_by_file_has_the_verdict_of_a_profile(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    names.write_text("path,name,kind\n5/16426,public.i,index\n")
    options = ["--by", "file", "--names", str(names), str(RECORDINGS / "order-entry")]
    result = CliRunner().invoke(app, ["profile", *options])
    assert result.exit_code == 0, result.output
    assert "public.i" in result.output and "This recording is usable." in result.output

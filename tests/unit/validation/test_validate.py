"""Which slots are run in which order, when a case ends, and what is resumed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from support.validation_factory import TOML, Watcher, row
from tierwise.lab.cli.validate import RoundProgress
from tierwise.lab.validation import case_in_slots, clients, measured_rates
from tierwise.lab.validation.slot_rows import append_slot_row, read_slot_rows
from tierwise.lab.validation.validation_case import ValidationCase, cases_to_run
from tierwise.lab.validation.validation_round import estimated_time_s, most_informative_cases, run_round
from tierwise.lab.validation.validation_spec import ValidationSpec, load_validation
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.results import ColdStart, WarmFile

RATES = {"all-nvme": 1000.0, "log-nvme": 900.0, "all-7k2": 100.0, "own": 1100.0}


@pytest.fixture
def spec(tmp_path: Path) -> ValidationSpec:
    return load_validation(_file(tmp_path, TOML))


@pytest.fixture
def everything_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.lab.validation.validation_case._missing", lambda _: None)


def _file(directory: Path, text: str) -> Path:
    file = directory / "cases.toml"
    file.write_text(text, "utf-8")
    return file


class _Bench:
    """In place of servers: placements that are up, and the slots that ran against them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.up: list[str] = []
        self.most_up = 0
        self.ran: list[tuple[str, bool]] = []
        self.seeds: list[int] = []
        self.noise: dict[str, list[float]] = {}
        self.fails_after: int | None = None
        monkeypatch.setattr("tierwise.lab.validation.case_in_slots.place_database", self._placed)
        monkeypatch.setattr(
            "tierwise.lab.validation.case_in_slots.database_template_of", lambda *_: Path("/nowhere")
        )
        monkeypatch.setattr("tierwise.lab.validation.case_in_slots._idle_cpu_share", lambda: 0.01)
        monkeypatch.setattr("tierwise.lab.validation.validation_round._own_profile", lambda *_: None)
        monkeypatch.setattr("tierwise.lab.validation.validation_round.model_version", lambda: "abc")

    @contextmanager
    def _placed(self, case: ValidationCase, placement: str, *_: Any, **__: Any) -> Iterator[Any]:
        self.up.append(placement)
        self.most_up = max(self.most_up, len(self.up))
        try:
            yield _Placed(self, case, placement)
        finally:
            self.up.remove(placement)


class _Placed:
    def __init__(self, bench: _Bench, case: ValidationCase, placement: str) -> None:
        self.placement, self._bench, self._case, self.cold = placement, bench, case, None
        self.client = self.database = self

    engine = "postgres"

    def version(self) -> str:
        return "15.20"

    def warm_up(self, *_: Any) -> None: ...

    def settle(self) -> None: ...

    def prepare(self) -> None: ...

    def run(self, seconds: float, seed: int, out: Path | None) -> dict[str, Any]:
        bench = self._bench
        bench.seeds.append(seed)
        if bench.fails_after is not None and len(bench.ran) >= bench.fails_after:
            return {"started_at": row().started_at, "status": "failed", "problems": ["pgbench: gone"]}
        bench.ran.append((self.placement, out is not None))
        noise = bench.noise.get(self.placement, [1.0])
        rate = RATES[self.placement] * noise[len(bench.ran) % len(noise)]
        return row(rate=rate).model_dump(include={"started_at", "elapsed_s", "transactions"}) | {
            "laps": self._case.laps
        }


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, everything_installed: None) -> _Bench:
    return _Bench(monkeypatch)


def _case(spec: ValidationSpec, name: str) -> ValidationCase:
    (only,) = cases_to_run(spec, [name])[0]
    return only


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('recorded = ["all-nvme"]', 'recorded = ["nowhere"]', "unknown placements nowhere"),
        (
            'own = { all = "own" }',
            'own = { log = "own" }',
            "placements.own has no device for all other roles",
        ),
        ('log = "nvme", all', 'logs = "nvme", all', "placements.log-nvme names the unknown role 'logs'"),
        ('load = "job"', 'load = "jobs"', "load"),
        ("fewest_blocks = 2", "fewest_blocks = 1", "fewest_blocks"),
        ("slot_s = 5", "slot_s = inf", "slot_s"),
        ("slot_s = 5", "slot_s = 1e300", "slot_s"),
        ("clients = [1, 4]", "clients = [1_000_000]", r"cases.0.clients.0"),
        ("clients = [1, 4]", "clients = []", r"cases.0.clients"),
        ('client = "sqlite-shell"', 'client = "sqlite-shell"\nmemory = "1G"', "memory limits a server"),
        ('server = "postgres"', 'server = "oracle"', "cases.0.server"),
        (
            "log-nvme = {",
            'log-nvme = { set = "synchronous_commit", ',
            "'synchronous_commit' is not NAME=VALUE",
        ),
        ("[sizes]", '[settings.sqlite]\ncache_size = "1"\n[sizes]', "settings.sqlite"),
        ('server = "postgres"', 'server = "mariadb"\nselected = ["index:bench.i"]', "select tables"),
        ('name = "restore"', 'name = "accounts-4"', "2 cases have the name accounts-4"),
    ],
)
def test_cases_that_cannot_be_run_are_refused_when_they_are_made(
    tmp_path: Path, everything_installed: None, old: str, new: str, message: str
) -> None:
    with pytest.raises(TierwiseError, match=message):
        for case in cases_to_run(load_validation(_file(tmp_path, TOML.replace(old, new))))[0]:
            case.client()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'nvme = "ssd-nvme-dc"',
            'nvme = "ssd-nvme-cd"',
            "case accounts-1: unknown device profile 'ssd-nvme-cd'",
        ),
        ("log-nvme = {", 'log-nvme = { memory = "1M", ', "case accounts-1: memory: 1048576 bytes"),
        (
            "log-nvme = {",
            'log-nvme = { set = "work_mum=1", ',
            "case accounts-1: engine postgres: setting work_mum",
        ),
        ("all-7k2 = {", 'all-7k2 = { buffer = "64M", ', "case shell: client sqlite-shell has no server"),
        (
            "held_back = true",
            'held_back = true\nsettings = { cache_size = "1" }',
            "client sqlite-shell has no server",
        ),
    ],
)
def test_an_estimate_and_a_run_refuse_the_same(
    tmp_path: Path, everything_installed: None, old: str, new: str, message: str
) -> None:
    spec = load_validation(_file(tmp_path, TOML.replace(old, new)))
    cases, _ = cases_to_run(spec, ["shell"] if "shell" in message else ["accounts"])
    with pytest.raises(TierwiseError, match=message):
        run_round(spec, cases, tmp_path / "out", Watcher())
    assert not (tmp_path / "out").exists()


def test_a_buffer_is_set_to_the_byte(tmp_path: Path, everything_installed: None) -> None:
    text = TOML.replace("log-nvme = {", 'log-nvme = { buffer = "1500K", ')
    case = _case(load_validation(_file(tmp_path, text)), "accounts-1")
    assert case.changed["log-nvme"] == {"shared_buffers": "1500kB"}


def test_unknown_clients_and_options_are_refused() -> None:
    with pytest.raises(TierwiseError, match="no client 'pgbanch'"):
        clients.client_class("pgbanch")({}, 1)
    with pytest.raises(TierwiseError, match="no option 'size'"):
        clients.client_class("pgbench")({"size": 3}, 1)


def test_a_missing_client_leaves_its_cases_out(spec: ValidationSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.host.programs.find_program", lambda _: None)
    monkeypatch.setattr("tierwise.lab.validation.servers.missing_package", lambda _: None)
    cases, left_out = cases_to_run(spec)
    assert not cases
    assert left_out["accounts-4"] == "pgbench is not installed (Debian: postgresql-15)"


def test_cases_are_chosen_by_name_or_held_back(spec: ValidationSpec, everything_installed: None) -> None:
    def names(*given: str, held_back: bool = False) -> list[str]:
        return [case.name for case in cases_to_run(spec, given, held_back=held_back)[0]]

    assert names() == ["accounts-1", "accounts-4", "restore"]
    assert names(held_back=True) == ["shell"]
    assert names("accounts") == ["accounts-1", "accounts-4"]
    with pytest.raises(TierwiseError, match="no case 'account'"):
        names("account")


def test_a_placement_that_an_engine_lacks_is_left_out(
    spec: ValidationSpec, everything_installed: None
) -> None:
    (shell,), left_out = cases_to_run(spec, ["shell"])
    assert shell.placements == ["all-7k2", "all-nvme"]
    assert left_out == {"shell/log-nvme": "sqlite has no place of its own for log"}


def test_all_placements_are_up_and_each_block_has_one_slot_of_each(
    spec: ValidationSpec, tmp_path: Path, bench: _Bench
) -> None:
    watcher = Watcher()
    run_round(spec, [_case(spec, "accounts-4")], tmp_path / "v", watcher, seed=3)
    assert bench.most_up == 4 and not bench.up
    blocks = [
        [row.placement for row in watcher.rows if row.kind == "slot" and row.block == at] for at in (0, 1)
    ]
    assert [sorted(block) for block in blocks] == [sorted(RATES)] * 2
    kinds = [(row.kind, row.placement) for row in watcher.rows if row.block == 1][4:]
    assert kinds == [("beside", "all-nvme"), ("recorded", "all-nvme"), ("beside", "all-nvme")]
    assert len(watcher.rows) == 4 + 4 + 3, "equal ratios need no further block"


def test_the_order_within_blocks_differs_and_follows_the_seed(
    spec: ValidationSpec, tmp_path: Path, bench: _Bench
) -> None:
    bench.noise = {"own": [1.0, 1.2, 0.8]}
    orders = []
    for folder in ("v", "w"):
        watcher = Watcher()
        run_round(spec, [_case(spec, "accounts-4")], tmp_path / folder, watcher, seed=3)
        slots_of = [row for row in watcher.rows if row.kind == "slot"]
        orders.append([[row.placement for row in slots_of if row.block == at] for at in range(5)])
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders[0]}) > 1


def test_slots_of_a_block_have_the_same_random_numbers_and_all_others_their_own(
    spec: ValidationSpec, tmp_path: Path, bench: _Bench
) -> None:
    watcher = Watcher()
    run_round(spec, [_case(spec, "accounts-4")], tmp_path / "v", watcher, seed=3)
    seeds: dict[tuple[str, int], list[int]] = {}
    for slot, seed in zip(watcher.rows, bench.seeds, strict=True):
        seeds.setdefault((slot.kind, slot.block), []).append(seed)
    assert {key: len(set(values)) for key, values in seeds.items()} == {
        ("slot", 0): 1,
        ("slot", 1): 1,
        ("beside", 1): 2,
        ("recorded", 1): 1,
    }
    assert len(set(bench.seeds)) == 5


def test_a_noisy_case_ends_with_its_last_block(spec: ValidationSpec, tmp_path: Path, bench: _Bench) -> None:
    bench.noise = {"own": [1.0, 1.2, 0.8]}
    case = _case(spec, "accounts-4")
    run_round(spec, [case], tmp_path / "v", Watcher(), seed=1)
    blocks = measured_rates.complete_blocks(read_slot_rows(tmp_path / "v"), case.placements)
    assert len(blocks) == 5
    assert not measured_rates.are_ratios_settled(blocks, case.recorded, case.placements, spec.half_width)


def test_a_stopped_round_goes_on_with_the_next_block(
    spec: ValidationSpec, tmp_path: Path, bench: _Bench
) -> None:
    cases = [_case(spec, "accounts-4")]
    bench.fails_after = 6
    first = Watcher()
    run_round(spec, cases, tmp_path / "v", first, seed=1)
    assert [row.status for row in first.rows][-1] == "failed" and len(first.rows) == 7
    bench.fails_after = None
    second = Watcher()
    run_round(spec, cases, tmp_path / "v", second)
    assert {row.block for row in second.rows} == {2}, "block 1 was not complete"
    assert case_in_slots.is_case_done(cases[0], spec, read_slot_rows(tmp_path / "v"))
    third = Watcher()
    run_round(spec, cases, tmp_path / "v", third)
    assert not third.rows and third.estimated_s == 0.0


def test_a_short_time_takes_one_case_of_each_load_first(
    spec: ValidationSpec, everything_installed: None
) -> None:
    cases, _ = cases_to_run(spec)
    needed = [estimated_time_s(case, spec, []) for case in cases]

    def names(time_s: float) -> list[str]:
        return [case.name for case in most_informative_cases(cases, spec, [], time_s)]

    assert names(sum(needed)) == ["accounts-1", "restore", "accounts-4"]
    assert names(needed[0] + needed[2]) == ["accounts-1", "restore"]
    assert names(1.0) == []


def test_a_slot_that_did_not_start_cold_says_so_also_on_a_terminal() -> None:
    warm = WarmFile(role=Role.LOG, file="wal", resident_bytes=1 << 20)
    cold = ColdStart(dropped="own files", warm=[warm])
    with StringIO() as text:
        console = Console(file=text, force_terminal=True, width=200)
        progress = RoundProgress(console)
        progress.slot_finished(row(block=0).model_copy(update={"cold_start": cold}))
        assert "not cold: 1,024 KiB of wal (log) stayed in the page cache" in text.getvalue()
        progress.left_out("a case", "its file is [bold] here")
        assert "  a case: skipped (its file is [bold] here)" in text.getvalue()


def test_what_was_cut_off_is_run_again(tmp_path: Path) -> None:
    append_slot_row(tmp_path, row(block=0))
    with (tmp_path / "slots.jsonl").open("a") as file:
        file.write('{"case": "acc')
    assert len(read_slot_rows(tmp_path)) == 1
    append_slot_row(tmp_path, row(block=1))
    assert [row.block for row in read_slot_rows(tmp_path)] == [0, 1]


def test_other_cases_or_another_model_need_another_folder(
    spec: ValidationSpec, tmp_path: Path, bench: _Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [_case(spec, "restore")]
    run_round(spec, cases, tmp_path / "v", Watcher(), round="prospective")
    other = load_validation(_file(tmp_path, TOML.replace("slot_s = 5", "slot_s = 6")))
    with pytest.raises(TierwiseError, match="other cases"):
        run_round(other, cases, tmp_path / "v", Watcher(), round="prospective")
    with pytest.raises(TierwiseError, match="prospective round"):
        run_round(spec, cases, tmp_path / "v", Watcher())
    monkeypatch.setattr("tierwise.lab.validation.validation_round.model_version", lambda: "abc-dirty")
    with pytest.raises(TierwiseError, match="differ from their commit"):
        run_round(spec, cases, tmp_path / "w", Watcher(), round="prospective")
    monkeypatch.setattr("tierwise.lab.validation.validation_round.model_version", lambda: "another")
    with pytest.raises(TierwiseError, match="is of model"):
        run_round(spec, cases, tmp_path / "v", Watcher(), round="prospective")
    run_round(other, cases, tmp_path / "v", Watcher(), fresh=True)

"""What a recording cost: the loss over the whole recording comes before that within bursts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.recording_factory import write_recording
from tierwise.predict.usability import Usability
from tierwise.recording import Recording
from tierwise.report.document import Text
from tierwise.report.recording.recording_report import taken_recording_document

COST = {"rate_ratio": 0.83, "rate_ratio_low": 0.8, "rate_ratio_high": 0.86}
CLIENT = {"program": "pgbench", "kind": "load_generator", "processes": 1, "sessions": 8}


def lines(path: Path) -> list[str]:
    blocks = taken_recording_document(Recording.open(path), Usability())
    return [block.text for block in blocks if isinstance(block, Text)]


def test_the_whole_comes_before_the_bursts(tmp_path: Path) -> None:
    """Of 0.1 s, bursts took a tenth, and lost 17 % of the rate."""
    (cost,) = [
        line
        for line in lines(write_recording(tmp_path / "r", cost=COST, duration_s=0.1))
        if line.startswith("cost")
    ]
    assert cost.startswith("cost: 1.7\u00a0% of the rate over the whole recording (95\u00a0%: 1.4 to 2.0)")
    assert cost.index("1.7\u00a0%") < cost.index("17.0\u00a0%")
    assert "within bursts, 10\u00a0% of the time, 17.0\u00a0% (95\u00a0%: 14.0 to 20.0)" in cost


def test_an_idle_database_tells_no_cost(tmp_path: Path) -> None:
    """It was "lost 9.4 % (95 %: -2937.0 to 97.3)"."""
    cost = {"rate_ratio": 0.9, "rate_ratio_low": 0.03, "rate_ratio_high": 30.4}
    (line,) = [line for line in lines(write_recording(tmp_path / "r", cost=cost)) if line.startswith("cost")]
    assert line.startswith("cost: not known, because the work varied") and "-" not in line


def test_the_processor_time_of_the_server_is_told_where_it_was_measured(tmp_path: Path) -> None:
    known = {**COST, "cpu_ratio": 1.07, "cpu_ratio_low": 1.03, "cpu_ratio_high": 1.1}
    (cost,) = [line for line in lines(write_recording(tmp_path / "r", cost=known)) if line.startswith("cost")]
    assert cost.endswith("the server takes 1.07 times (95\u00a0%: 1.03 to 1.10) the CPU time for a switch")
    assert "the server takes" not in "".join(lines(write_recording(tmp_path / "s", cost=COST)))


@pytest.mark.parametrize("clients", [[], [CLIENT]])
def test_the_programs_that_held_the_sessions_are_named(
    clients: list[dict[str, object]], tmp_path: Path
) -> None:
    shown = lines(write_recording(tmp_path / "r", clients=clients))
    named = [line for line in shown if line.startswith("clients: pgbench (a load generator), 8 sessions")]
    assert len(named) == len(clients)

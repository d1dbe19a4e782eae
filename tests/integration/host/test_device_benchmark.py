"""A study of devices: patterns in place of a database, from the file to the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.study_texts import BENCHMARK, PATTERNS, finished
from tierwise.lab import studies as study
from tierwise.lab.analysis.device_benchmark import pattern_title
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.cli.report import read_study_results, write_study_page
from tierwise.lab.report.study.study_document import benchmark_table
from tierwise.results import RunResult


@pytest.fixture(scope="module")
def on_own(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[RunResult]]:
    directory = tmp_path_factory.mktemp("own")
    (directory / "device").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tierwise.lab.studies.runner.pattern_run.FILE_BYTES", 32 << 20)
        on_own = finished(
            study.parse_study(BENCHMARK, "s.toml").on_own_storage(directory / "device"), directory
        )
    assert list((directory / "device").iterdir()) == []
    return on_own


def test_own_storage_is_one_device(on_own: tuple[Path, list[RunResult]]) -> None:
    _, results = on_own
    assert [run.run_id for run in results] == ["file/own-storage/0", "file/own-storage/1"]
    for run in results:
        assert run.status == "ok" and list(run.patterns) == PATTERNS
        assert run.flush is not None and run.flush.reasons
        assert run.transactions == sum(pattern.requests for pattern in run.patterns.values())
        mixed = run.patterns["mixed70-4k-qd4"]
        assert mixed.read is not None and mixed.write is not None


def test_report_shows_every_pattern(on_own: tuple[Path, list[RunResult]]) -> None:
    directory, _ = on_own
    answer = build_study_answer(*read_study_results(directory))
    page = write_study_page(answer, directory / "report.html").read_text("utf-8")
    for pattern in PATTERNS:
        assert pattern_title(pattern) in page
    assert "Does a flush reach the medium?" in page and "Log wait" not in page
    (comparison,) = answer.comparisons
    assert comparison.benchmark is not None
    assert len(benchmark_table(comparison.benchmark, comparison.colours).rows) == len(PATTERNS)
    assert comparison.words.finding.startswith("own-storage: ")
    assert any("fewer than 5 repeats" in caveat for caveat in comparison.words.caveats)


def test_an_unknown_pattern_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierwise.lab.studies.runner.pattern_run.FILE_BYTES", 16 << 20)
    text = BENCHMARK.replace("'mixed70-4k-qd4'", "'sideways-4k'").replace("repeats = 2", "repeats = 1")
    _, results = finished(study.parse_study(text, "s.toml").on_own_storage(tmp_path), tmp_path)
    assert results[0].status == "failed" and "sideways-4k" in results[0].problems[0]

"""A smaller buffer of the engine: answered only where the recorded one is known to have had room to spare."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.paths import RECORDINGS
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.predict import Prediction, Predictor, Scenario, rank_placements
from tierwise.report.recording.prediction_report import ranking_sentence


def with_buffer(
    tmp_path: Path, used_mib: int, tables_mib: Sequence[int] = (1,), growth: float | None = None
) -> Prediction:
    """A recording whose buffer of 256 MiB held something at its end, asked with one of 128 MiB."""
    of = opened(tmp_path, used_mib, tables_mib)
    (answer,) = of.predict([Scenario(buffer_bytes=128 << 20, growth=growth)])
    assert answer.scenario.buffer_bytes == 128 << 20
    return answer


def opened(tmp_path: Path, used_mib: int, tables_mib: Sequence[int] = (1,)) -> Predictor:
    recorded = tmp_path / "recorded"
    shutil.copytree(RECORDINGS / "order-entry", recorded)
    if used_mib:
        pages = {"pages": 256 << 7, "used_pages": used_mib << 7, "page_bytes": 8192}
        (recorded / "buffer.json").write_text(json.dumps({**pages, "files": []}))
    about = json.loads((recorded / "about.json").read_text())
    about["relations"] = [
        {"path": f"base/5/{place}", "name": f"public.t{place}", "kind": "table", "size_bytes": size << 20}
        for place, size in enumerate(tables_mib)
    ]
    (recorded / "about.json").write_text(json.dumps(about))
    return Predictor.open(recorded, seeds=1)


def test_a_smaller_buffer_that_holds_what_the_recorded_one_held_changes_nothing(tmp_path: Path) -> None:
    answer = with_buffer(tmp_path, used_mib=100)
    assert answer.speedup is not None
    assert answer.speedup.value == 1
    assert any("held 100 MiB at the end" in warning for warning in answer.warnings)


def test_placements_are_ranked_with_a_smaller_buffer_as_they_are_predicted(tmp_path: Path) -> None:
    ranking = rank_placements(opened(tmp_path, used_mib=100), ["nvme-dc"], Scenario(buffer_bytes=128 << 20))
    assert ranking.refused is None
    assert [placing.rate_per_s for placing in ranking.ranked] == [
        pytest.approx(answer.rate_per_s.value, rel=0.05) for answer in ranking.closer if answer.rate_per_s
    ]


def test_a_ranking_that_nothing_answers_says_why(tmp_path: Path) -> None:
    of = opened(tmp_path, used_mib=120)
    ranking = rank_placements(of, ["nvme-dc", "hdd-7k2"], Scenario(buffer_bytes=128 << 20))
    assert ranking.refused is not None and ranking.ranked == []
    assert "could be replayed: which reads a buffer of less than" in ranking_sentence(ranking)
    recorded = str(tmp_path / "recorded")
    result = CliRunner().invoke(app, ["predict", recorded, "--devices", "nvme-dc", "--buffer", "128M"])
    assert result.exit_code == 1, "as without --devices"


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"used_mib": 0}, "is not known"),
        ({"used_mib": 120}, "is not known: 120 MiB of it held pages at the end"),
        ({"used_mib": 256}, "is not known: 256 MiB of it held pages at the end"),
        ({"used_mib": 10, "growth": 2.0}, "is not known: more data fills more of it"),
        ({"used_mib": 10, "tables_mib": [40]}, "a table of more than 32 MiB would be scanned past it"),
    ],
)
def test_a_smaller_buffer_of_which_that_is_not_known_is_refused(
    tmp_path: Path, facts: dict[str, Any], why: str
) -> None:
    answer = with_buffer(tmp_path, **facts)
    assert answer.refused is not None
    assert why in answer.refused.message
    assert ("--buffer-content" in answer.refused.fix) == (facts["used_mib"] == 0)


def test_a_table_scanned_past_both_buffers_is_no_reason(tmp_path: Path) -> None:
    assert with_buffer(tmp_path, used_mib=10, tables_mib=[65, 5000]).refused is None


def test_a_damaged_sample_is_refused_by_its_field(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    shutil.copytree(RECORDINGS / "order-entry", recorded)
    (recorded / "buffer.json").write_text('{"page_bytes": 8192, "pages": 0, "used_pages": 0, "files": []}')
    of = Predictor.open(recorded, seeds=1)
    assert of.predict([Scenario(placement={"log": "nvme-dc"})])[0].refused is None, "nothing else needs it"
    with pytest.raises(TierwiseError, match=r"buffer\.json: pages: ") as error:
        of.predict([Scenario(buffer_bytes=128 << 20)])
    assert "delete the file" in error.value.fix

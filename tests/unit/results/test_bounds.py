"""What no run can have measured is refused when results are read, with the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from support.results_factory import study_runs
from tierwise.model.errors import TierwiseError
from tierwise.results import WaitShare
from tierwise.results.files import read_results


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"elapsed_s": -1.0}, "elapsed_s"),
        ({"transactions": -1}, "transactions"),
        ({"rate_per_s": -1.0}, "rate_per_s"),
        ({"machine": {"cores": 0}}, r"machine\.cores"),
        ({"waits": {"shares": {"cpu": {"share": -1.0, "sampling_error": 0.0}}}}, r"waits\.shares\.cpu.share"),
        (
            {"latency": {"all": study_runs()[0].latency["all"].model_dump() | {"p99_us": -5.0}}},
            r"latency\.all.p99_us",
        ),
    ],
)
def test_a_figure_below_its_bound_is_refused(change: dict[str, Any], field: str, tmp_path: Path) -> None:
    run = json.loads(study_runs(repeats=1)[0].model_dump_json())
    for name, value in change.items():
        run[name] = {**run[name], **value} if isinstance(value, dict) else value
    file = tmp_path / "results.jsonl"
    file.write_text(json.dumps(run) + "\n", "utf-8")
    with pytest.raises(TierwiseError, match=rf"results\.jsonl:1: {field}: Input should be greater than"):
        read_results(file)


def test_a_share_of_waits_above_one_is_refused() -> None:
    with pytest.raises(ValidationError, match="share"):
        WaitShare(share=7.0, sampling_error=0.0)

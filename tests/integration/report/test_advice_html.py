"""Pages of advice in full size: 4096 placements, each recording that ships, the chart library."""

from __future__ import annotations

import gzip
import runpy
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from support.fake_replay import predictor
from support.paths import RECORDINGS, ROOT
from tierwise.advise import AdviceOptions, Goal, PaymentTerms, advise
from tierwise.cli import app
from tierwise.predict import resolve_device
from tierwise.predict.inseparable_roles import MOVES
from tierwise.report.advice import AdviceSurvey, advice_page, survey_advice

EXAMPLES = RECORDINGS
TOOLS = ROOT / "tools"
FEW = ("nvme-dc", "gp3", "io2")
MANY = [
    *("hdd-10k-sas", "hdd-15k-sas", "hdd-7k2", "hdd-7k2-20t-nearline", "ssd-nvme-consumer", "ssd-nvme-dc"),
    *("ssd-nvme-dc-2020", "ssd-optane", "ssd-sata-consumer", "ssd-sata-dc", "volume-aws-gp3"),
    *("volume-aws-io2", "volume-aws-st1", "volume-gcp-pd-ssd", "array-raid1-2x-ssd-nvme-dc"),
]
MOST_BYTES = 1_500_000


@cache
def made(devices: tuple[str, ...], budget: float | None = None, goal: str | None = None) -> AdviceSurvey:
    toy = predictor()
    advice = advise(toy, AdviceOptions(devices, budget, Goal.parse(goal) if goal else None))
    return survey_advice(toy, advice, PaymentTerms(), Path("shop"))


def test_4096_placements_fit_into_one_file() -> None:
    toy = predictor()
    wide = advise(toy, AdviceOptions(FEW)).model_copy(
        update={"devices": [resolve_device(name).name for name in MANY]}
    )
    many = survey_advice(toy, wide, PaymentTerms(), Path("shop"))
    assert len(many.survey.predictions) == 4096
    assert len(advice_page(many).encode()) <= MOST_BYTES


def test_the_chart_library_is_the_locked_one() -> None:
    packed = (MOVES.parent / "templates" / "advice" / "vega.js.gz").read_bytes()
    made = runpy.run_path(str(TOOLS / "vega_bundle.py"))["bundle"]()
    assert gzip.decompress(packed).decode() == made, "run tools/vega_bundle.py"


@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/about.json")))
def test_each_shipped_recording_has_its_page(name: str, tmp_path: Path) -> None:
    page = tmp_path / "advice.html"
    asked = ["advise", str(EXAMPLES / name), "--devices", "nvme-dc,gp3", "--seeds", "2", "-o", str(page)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert f"advice for {name} (postgres" in page.read_text("utf-8")

"""The page of an advice as a file: its size, its policy, its words, the steps to type, and the command."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import altair as alt
import pytest
from typer.testing import CliRunner

from support.fake_replay import predictor
from support.paths import RECORDINGS
from tierwise import open_recording
from tierwise.advise import AdviceOptions, Goal, PaymentTerms, advise
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import Role
from tierwise.predict.inseparable_roles import MOVES
from tierwise.report.advice import AdviceSurvey, advice_page, page_decision, survey_advice
from tierwise.report.advice.advice_html import rate_cost_chart
from tierwise.report.advice.page_decision import device_risk
from tierwise.report.charts.chart_style import PAGE_WIDE, chart_of_records, finish_chart
from tierwise.report.document import Text
from tierwise.report.move_steps import move_guide

EXAMPLES = RECORDINGS
FEW = ("nvme-dc", "gp3", "io2")


@cache
def made(devices: tuple[str, ...], budget: float | None = None, goal: str | None = None) -> AdviceSurvey:
    toy = predictor()
    advice = advise(toy, AdviceOptions(devices, budget, Goal.parse(goal) if goal else None))
    return survey_advice(toy, advice, PaymentTerms(), Path("shop"))


def said(subject: AdviceSurvey) -> str:
    return " ".join(
        block.text for block in page_decision.decision_sentences(subject) if isinstance(block, Text)
    )


def test_nothing_comes_from_outside() -> None:
    page = advice_page(made(FEW))
    loading = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(src|srcset|action|background)=|<(link|img|iframe|object|base)\b|url\(", loading)
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    assert "default-src &#39;none&#39;" in policy[1] and "unsafe" not in policy[1] and "http" not in policy[1]
    assert "innerHTML" not in "".join(file.read_text("utf-8") for file in _scripts())


def test_the_chart_is_valid_and_in_the_style_of_the_others() -> None:
    chart = rate_cost_chart(made(FEW))
    drawn = alt.LayerChart.from_dict(chart).to_dict()
    assert drawn["layer"][1]["mark"]["interpolate"] == "step-after"
    others = finish_chart([chart_of_records([{"value": 1}]).mark_point()], PAGE_WIDE, 100, "").to_dict()[
        "config"
    ]
    own = chart["config"]
    assert {name: own[name] for name in ("aria", "background", "font")} == {
        name: others[name] for name in ("aria", "background", "font")
    }
    assert own["axis"].items() <= others["axis"].items() and own["view"].items() <= others["view"].items()


def _scripts() -> list[Path]:
    return sorted((MOVES.parent / "templates" / "advice").glob("*.js"))


@pytest.mark.parametrize("file", _scripts(), ids=lambda file: file.name)
def test_a_script_is_short_and_ends_no_element(file: Path) -> None:
    text = file.read_text("utf-8")
    assert len(text.splitlines()) <= 250 and "</script" not in text.lower()


def test_the_survey_has_every_placement_once_and_the_advised_under_all_seeds() -> None:
    page_of_few = made(FEW)
    assert page_of_few.survey.predictions[0] == page_of_few.advice.recorded
    for number, prediction in enumerate(page_of_few.survey.predictions):
        assert prediction is not None
        placed = {Role(role): device for role, device in prediction.scenario.placement.items()}
        assert page_of_few.survey.number(placed) == number
    advised = page_of_few.survey.predictions[page_of_few.survey.number(page_of_few.placement) or 0]
    assert advised and advised.seeds == 5
    assert page_of_few.survey.number({Role.TEMP: "ssd-nvme-dc"}) is None, "it stays where it is"


def test_the_decision_says_interval_budget_and_goal() -> None:
    free = made(FEW)
    assert re.search(r"Likely [\d.]+ to [\d.]+ times the throughput, best guess [\d.]+\.", said(free))
    assert "volume-aws-io2" in said(made(FEW, budget=50.0))
    rate = free.option.prediction.rate_per_s
    assert rate
    goals = {0.5 * rate.low: "Cheapest that reaches", 3 * rate.high: "No placement reaches"}
    for bound, words in goals.items():
        assert words in said(made(FEW, goal=f"tps={bound:.0f}")), words
    beyond = said(made(FEW, budget=0.0, goal=f"tps={0.5 * rate.low:.0f}"))
    assert "No placement for 0\u00a0$/month or less reaches" in beyond, "a dearer one does"


def test_without_a_gain_nothing_moves() -> None:
    still = made(("hdd-7k2",))
    assert page_decision.page_headline(still) == "Nothing you can buy here helps."
    assert 'id="steps"' not in advice_page(still)


def test_the_risks_name_a_single_drive_a_date_and_what_is_not_known() -> None:
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in page_decision.risk_blocks(made(FEW)).rows}
    holds, power, worn, death = rows["ssd-nvme-dc"]
    assert holds == "log, data and index" and "power cuts lost" in power and "one drive" in death
    assert worn == "over 10 years; 7 months at the predicted rate"
    assert rows["recorded devices"][2:] == ["no figure", "not known"]


def test_an_array_that_is_like_another_has_its_level_and_its_dead_members(tmp_path: Path) -> None:
    other, degraded = tmp_path / "other.toml", tmp_path / "degraded.toml"
    other.write_text('like = "array-raid1-2x-ssd-nvme-dc"\n', "utf-8")
    dead = 'failed_members = 1\n[source]\nfailed_members = "made for a test"\n'
    degraded.write_text(f'like = "array-raid1-2x-ssd-nvme-dc"\n{dead}', "utf-8")
    assert device_risk(str(other)).death == "survives the death of one member (RAID 1)"
    shown = device_risk(str(degraded))
    assert shown.alone and "one member is dead already" in shown.death


def test_steps_take_no_line_from_a_name() -> None:
    instructions = move_guide("postgres", {Role.LOG: "x\nrm -rf /", Role.DATA: "y"})
    assert len(instructions.variables.splitlines()) == 4
    assert "$NEW1" in instructions.steps[0].there and "$NEW2" in instructions.steps[1].there
    for unknown in ("../moves/postgres", "oracle", ""):
        assert move_guide(unknown, {Role.LOG: "x"}).without == ["log: no steps are known for this engine"]


def test_from_python(tmp_path: Path) -> None:
    open_recording(EXAMPLES / "order-entry").advise(["nvme-dc"]).to_html(tmp_path / "a.html")
    assert "Move the log to ssd-nvme-dc" in (tmp_path / "a.html").read_text("utf-8").replace("\u2060", "")


def test_a_page_is_html(tmp_path: Path) -> None:
    asked = ["advise", str(EXAMPLES / "order-entry"), "--devices", "nvme-dc", "-o", str(tmp_path / "x.pdf")]
    with pytest.raises(TierwiseError, match="--output"):
        CliRunner().invoke(app, asked, catch_exceptions=False)
    assert not list(tmp_path.iterdir())

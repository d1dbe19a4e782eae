"""Warnings of an advice: merged, ordered, three in sight, each with its placement; the rest is folded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from support.fake_replay import FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise.advise import Advice, AdviceOptions, PaymentTerms, advise
from tierwise.cli import app
from tierwise.cli.options import SETTINGS
from tierwise.cli.output import print_document
from tierwise.predict import Predictor
from tierwise.report.advice import advice_page, survey_advice
from tierwise.report.document import Section, Text
from tierwise.report.recording.advice_report import advice_document
from tierwise.report.recording.prediction_report import MOST_IN_SIGHT

EXAMPLES = Path(__file__).parents[3] / "examples" / "recordings"
OWN = [f"the recording has flaw {number}" for number in range(1, 6)]
GP3 = "a volume's credits were left out"


class Warned(FakeReplay):
    """The simulator warns of what is on a volume."""

    def _outcome(self, scenario: dict[str, Any], profiles: Any, factor: float = 1.0) -> dict[str, Any]:
        names = {profiles[place["profile"]].name for place in scenario["placement"].values()}
        warnings = [GP3] if "volume-aws-gp3" in names else []
        return super()._outcome(scenario, profiles, factor) | {"warnings": warnings}


def predictor(warnings: list[str], engine: str = "postgres", **fields: Any) -> Predictor:
    return fake_predictor(Warned(limits=[]), warnings, engine=engine, **fields)


def in_sight(advice: Advice) -> list[str]:
    blocks = [block for block in advice_document(advice) if isinstance(block, Text)]
    return [block.text for block in blocks if block.text.startswith("Warning")]


def folded(advice: Advice) -> list[str]:
    return [
        text.text
        for block in advice_document(advice)
        if isinstance(block, Section) and block.folded
        for text in block.blocks
        if isinstance(text, Text)
    ]


@pytest.mark.parametrize("engine", ["postgres", "sqlite"])
def test_three_are_in_sight_and_the_rest_is_folded(engine: str) -> None:
    of = predictor(OWN, engine)
    advice = advise(of, AdviceOptions(["nvme-dc", "gp3"]))
    assert in_sight(advice) == [f"Warning: {text}." for text in OWN[:MOST_IN_SIGHT]]
    assert set(folded(advice)) >= {f"Warning: {text}." for text in OWN[MOST_IN_SIGHT:]}
    page = advice_page(survey_advice(of, advice, PaymentTerms(), Path("shop")))
    assert page.index(OWN[2]) < page.index("<details>") < page.index(OWN[3])
    assert all(page.count(text) == 1 for text in OWN)


def test_a_warning_names_the_placements_that_it_belongs_to() -> None:
    advice = advise(predictor([]), AdviceOptions(["nvme-dc", "gp3"]))
    (caution,) = [warning for warning in advice.warnings if warning.text == GP3]
    assert caution.placements and all(
        "volume-aws-gp3" in placement.values() for placement in caution.placements
    )
    text = next(text for text in [*in_sight(advice), *folded(advice)] if GP3 in text)
    assert text.startswith("Warning, the ") and " to volume-aws-gp3" in text
    alone = advise(predictor([]), AdviceOptions(["gp3"]))
    (of_all,) = [warning for warning in alone.warnings if warning.text == GP3]
    assert of_all.placements == [], "every placement of this advice is on it"


def test_a_doubt_stands_before_the_answer_once_with_what_to_do() -> None:
    """It was the last of the warnings, below the answer."""
    document = advice_document(advise(predictor([], stolen_cpu_share=0.13), AdviceOptions(["nvme-dc"])))
    texts = [block.text for block in document if isinstance(block, Text)]
    assert [number for number, text in enumerate(texts) if "hypervisor" in text] == [0]
    assert texts[0].startswith("Doubt: ") and "Record at another hour" in texts[0]


def test_what_another_model_says_is_never_in_sight() -> None:
    asked = ["advise", str(EXAMPLES / "order-entry"), "--devices", "nvme-dc", "--seeds", "2"]
    shown = CliRunner().invoke(app, asked, env={"COLUMNS": "200"}).stdout
    assert "mean-value analysis" not in shown and "more warning" in shown
    try:
        shown = CliRunner().invoke(app, ["--verbose", *asked], env={"COLUMNS": "200"}).stdout
    finally:
        SETTINGS.verbose = False
    assert "mean-value analysis" in shown


def test_markdown_and_json_have_them_all() -> None:
    advice = advise(predictor(OWN), AdviceOptions(["nvme-dc"]))
    assert [warning.text for warning in advice.warnings][: len(OWN)] == OWN
    with (console := Console(width=200, force_terminal=True, color_system=None)).capture() as captured:
        print_document(advice_document(advice), console)
    assert OWN[4] not in captured.get()

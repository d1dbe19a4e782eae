"""Machines on the page of an advice: placements are behind the limits of the first, others are listed."""

from __future__ import annotations

from pathlib import Path

from support.fake_replay import predictor
from tierwise.advise import AdviceOptions, Terms, advise
from tierwise.device_models.instances import find_instances
from tierwise.report.advice import Subject, advice_page, subject


def made(name: str = "m6i.large") -> Subject:
    toy, terms = predictor(), Terms.parse(recorded_on="gp3")
    options = AdviceOptions(["io2"], terms=terms, instances=find_instances([name]))
    return subject(toy, advise(toy, options), terms, Path("shop"), instance=name)


def test_the_page_lists_the_larger_machines() -> None:
    page = advice_page(made())
    assert 'id="machines"' in page and "m6i.2xlarge" in page
    assert 'id="machines"' not in advice_page(plain())


def plain() -> Subject:
    toy = predictor()
    return subject(toy, advise(toy, AdviceOptions(["io2"])), Terms(), Path("shop"))


def test_every_placement_of_the_page_is_behind_the_limits_of_the_machine() -> None:
    answers = [answer for answer in made().survey.predictions if answer is not None]
    names = {answer.scenario.instance and answer.scenario.instance.name for answer in answers}
    assert len(answers) > 1 and names == {"m6i.large"}


def test_a_copied_command_names_the_machine_and_the_recorded_volume() -> None:
    command = made().command
    assert "--instance m6i.large --recorded-on all=volume-aws-gp3" in command
    assert "--instance" not in plain().command

"""Machines on the page of an advice: placements are behind the limits of the first, others are listed."""

from __future__ import annotations

from pathlib import Path

from support.fake_replay import predictor
from tierwise.advise import AdviceOptions, PaymentTerms, advise
from tierwise.device_models.instances import find_instances
from tierwise.report.advice import AdviceSurvey, advice_page, survey_advice
from tierwise.report.document import Text
from tierwise.report.recording.alternatives import machine_blocks


def made(name: str = "m6i.large") -> AdviceSurvey:
    toy, terms = predictor(), PaymentTerms.parse(recorded_on="gp3")
    options = AdviceOptions(["io2"], terms=terms, instances=find_instances([name]))
    return survey_advice(toy, advise(toy, options), terms, Path("shop"), instance=name)


def test_the_page_lists_the_larger_machines() -> None:
    page = advice_page(made())
    assert 'id="machines"' in page and "m6i.2xlarge" in page
    assert 'id="machines"' not in advice_page(plain())


def test_rents_in_another_currency_than_the_prices_are_said_to_be(tmp_path: Path) -> None:
    """The column had dashes without a reason."""
    figures = 'iops = 3000\nmb_per_s = 100\nper_month = 60\nsource = "the contract of 2026"\n'
    file, texts = tmp_path / "machines.toml", []
    for currency in ("USD", "EUR"):
        file.write_text(f'currency = "{currency}"\n[instances.a]\n{figures}[instances.b]\n{figures}')
        options = AdviceOptions(["io2"], instances=find_instances([str(file)]))
        *_, text = machine_blocks(advise(predictor(), options))
        assert isinstance(text, Text)
        texts.append(text.text)
    same, other = texts
    assert same == "Compared with a, every file where it is; $/month is the difference of the rents."
    assert other == f"{same} It is not known: these are in EUR, and the prices of devices in USD."


def plain() -> AdviceSurvey:
    toy = predictor()
    return survey_advice(toy, advise(toy, AdviceOptions(["io2"])), PaymentTerms(), Path("shop"))


def test_every_placement_of_the_page_is_behind_the_limits_of_the_machine() -> None:
    answers = [answer for answer in made().survey.predictions if answer is not None]
    names = {answer.scenario.instance and answer.scenario.instance.name for answer in answers}
    assert len(answers) > 1 and names == {"m6i.large"}


def test_a_copied_command_names_the_machine_and_the_recorded_volume() -> None:
    command = made().command
    assert "--instance m6i.large --recorded-on all=volume-aws-gp3" in command
    assert "--instance" not in plain().command


def test_a_rent_that_is_not_known_is_said_to_be(tmp_path: Path) -> None:
    """Of another machine in another currency, or without a rent, the column had a dash without a reason."""
    figures = 'iops = 3000\nmb_per_s = 100\nsource = "the contract of 2026"\n'
    file = tmp_path / "machines.toml"
    for rent, currency in (("", "USD"), ("per_month = 60\n", "EUR")):
        file.write_text(f'currency = "{currency}"\n[instances.b]\n{rent}{figures}')
        options = AdviceOptions(["io2"], instances=find_instances(["m6i.large", str(file)]))
        *_, text = machine_blocks(advise(predictor(), options))
        assert isinstance(text, Text)
        assert text.text.endswith("It is known if --instance FILE gives both machines per_month in USD.")

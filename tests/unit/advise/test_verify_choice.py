"""Which forecast a recording is compared with, and what is blamed where it did not come true."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from support.fake_replay import REQUESTS, FakeReplay
from support.fake_replay import predictor as fake_predictor
from tierwise import _core
from tierwise.advise import AdviceOptions, advise
from tierwise.advise.forecast_file import Forecast, choose_forecast, read_forecasts
from tierwise.advise.verification import ForecastVerification, verify_forecast
from tierwise.cli import app
from tierwise.model.errors import TierwiseError
from tierwise.predict import Predictor, Scenario, resolve_device
from tierwise.report.recording.verification_report import verification_headline

EXAMPLES = Path(__file__).parents[3] / "examples" / "recordings"
NVME, HDD = resolve_device("nvme-dc").profile.summary, "hdd-7k2"
"""Models of devices as recordings name them; the fake names its own so."""
ROLES = ["log", "data", "index", "temp"]


class Elsewhere(FakeReplay):
    """The same work on a device of its own speed, on which commits share flushes otherwise."""

    def __init__(self, *, times: float = 1.0, flushes: float = 1.0, turns: float = 3.0, **more: Any) -> None:
        super().__init__(**more)
        self.times, self.flushes, self.turns = times, flushes, turns

    def work(self) -> str:
        content = json.loads(super().work())
        rate = content["observed"]["transactions_per_s"] * self.times
        content["observed"] = {"turns_per_s": self.turns * rate, "transactions_per_s": rate}
        return json.dumps(content | {"turns": round(3000 * self.turns)} | self.more)

    def _outcome(
        self, scenario: dict[str, Any], profiles: Sequence[_core.Profile], factor: float = 1.0
    ) -> dict[str, Any]:
        outcome = super()._outcome(scenario, profiles, factor)
        outcome["transactions"] = round(outcome["transactions"] * self.times)
        for load in outcome["io"]:
            load["writes"] = load["flushes"] = round(load["flushes"] * self.times * self.flushes)
            load["busy_s"] /= self.times if self.times > 1 else 1.0
        return outcome


def predictor(fake: FakeReplay | None = None, engine: str = "postgres") -> Predictor:
    return fake_predictor(fake, engine=engine)


def forecasts(*placements: dict[str, str], label: str = "") -> list[Forecast]:
    of = predictor()
    answers = of.predict([Scenario(placement=placement) for placement in placements])
    return [Forecast(file="f.json", label=label, run=of.run, prediction=answer) for answer in answers]


AS_RECORDED: dict[str, str] = {}
LOG = {"log": "nvme-dc"}
ALL = {"all": "nvme-dc"}


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        (dict.fromkeys(ROLES, NVME), ALL),
        ({**dict.fromkeys(ROLES, HDD), "log": NVME}, LOG),
        ({**dict.fromkeys(ROLES, HDD)}, AS_RECORDED),
        ({**dict.fromkeys(ROLES, "recorded"), "log": NVME}, LOG),
        ({"log": NVME, "data": HDD}, LOG),
        ({"log": NVME}, LOG),
    ],
    ids=["all", "log", "as recorded", "the rest on a real disk", "untouched roles", "the log alone"],
)
def test_the_placement_of_the_emulated_disks_is_the_one_compared(
    models: dict[str, str], expected: dict[str, str]
) -> None:
    """Also where a part of the files lies on a real disk, or was not touched after the move."""
    choice = choose_forecast(forecasts(AS_RECORDED, LOG, ALL, label="x"), None, models)
    assert choice.prediction.scenario.placement == expected


def test_on_real_disks_it_is_the_recommended_one_or_the_one_that_is_named() -> None:
    models = dict.fromkeys(ROLES, "recorded")
    several = forecasts(LOG, ALL, label="x")
    assert choose_forecast(several, None, models).prediction.scenario.placement == LOG
    assert choose_forecast(several, {"all": "ssd-nvme-dc"}, models).prediction.scenario.placement == ALL
    with pytest.raises(TierwiseError, match="choose with --place"):
        choose_forecast(forecasts(LOG, ALL), None, models)


def written(directory: Path, placement: dict[str, str], engine: str) -> Path:
    """The forecast of a placement, as ``predict`` prints it."""
    of = predictor(engine=engine)
    (answer,) = of.predict([Scenario(placement=placement)])
    file = directory / "forecast.json"
    content = {"schema": "prediction", "schema_version": 1, "recorded": of.run.model_dump(mode="json")}
    file.write_text(json.dumps(content | {"predictions": [answer.model_dump(mode="json")]}))
    return file


def verified(
    tmp_path: Path, placement: dict[str, str], after: FakeReplay, patch: pytest.MonkeyPatch, engine: str
) -> ForecastVerification:
    file = written(tmp_path, placement, engine)
    patch.setattr(Predictor, "open", lambda *_, **__: predictor(after, engine))
    return verify_forecast(file, tmp_path)


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
@pytest.mark.parametrize("flushes", [0.3, 1.0, 3.0])
def test_another_device_is_never_blamed_on_the_mix(
    engine: str, flushes: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disks are ten times as fast, and commits share flushes otherwise: the clients ask the same."""
    real = [{"profile": None, "roles": ROLES}]
    after = Elsewhere(times=10.0, flushes=flushes, devices=real)
    verification = verified(tmp_path, {}, after, monkeypatch, engine)
    text = verification_headline(verification)
    assert not verification.inside and "mix" not in text and "other work" not in text
    assert "device of the log is faster than when it was recorded" in text, text


@pytest.mark.parametrize("engine", ["postgres", "mariadb"])
def test_another_mix_is_blamed_where_the_clients_ask_for_more(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = Elsewhere(times=0.5, turns=9.0)
    verification = verified(tmp_path, {}, after, monkeypatch, engine)
    assert "another mix of transactions (3.0 times the requests of the client)" in verification_headline(
        verification
    )


def test_advice_is_verified_by_its_decision_first(tmp_path: Path) -> None:
    """In its file, the placement of the headline comes first, that of a goal too."""
    advice = advise(predictor(), AdviceOptions(["nvme-dc"]))
    content = {"schema": "advice", "schema_version": 1, "recorded": advice.run.model_dump(mode="json")}
    file = tmp_path / "advice.json"
    file.write_text(json.dumps(content | {"advice": advice.model_dump(mode="json")}))
    first, *_ = read_forecasts(file)
    assert first.label == "the best placement"
    assert first.prediction.scenario == advice.decision.option.prediction.scenario


@pytest.mark.parametrize("names", [("order-entry", "keyed-update"), ("keyed-update", "order-entry")])
def test_compare_leads_from_recordings_to_verify(names: tuple[str, str]) -> None:
    asked = ["compare", *(str(EXAMPLES / name) for name in names)]
    with pytest.raises(TierwiseError, match="a recording, and compare takes results") as caught:
        CliRunner().invoke(app, asked, catch_exceptions=False)
    assert caught.value.fix.startswith(f"tierwise verify FORECAST.json {EXAMPLES / names[0]}")


def test_the_fake_has_all_roles() -> None:
    assert set(ROLES) == set(REQUESTS)

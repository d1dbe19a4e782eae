"""One real death of the device of a role."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.host import ledger
from tierwise.model.placement import Role
from tierwise.results.result_files import read_results


def test_a_lost_log_costs_commits_and_a_lost_temporary_file_none(tmp_path: Path) -> None:
    out = tmp_path / "deaths"
    arguments = ["study", "run", "device-death", "--engine", "sqlite", "--set", "dying=log,temp"]
    arguments += ["--set", "deaths=8", "--set", "seconds=0.5", "--output", str(out)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (file,) = out.glob("*/latest/results.jsonl")
    deaths = {
        run.device_deaths.role: run.device_deaths.deaths for run in read_results(file) if run.device_deaths
    }
    for death in deaths[Role.TEMP]:
        assert (death.outcome, death.start, death.ran_on) == ("whole", "as_is", True)
    # A death during a checkpoint, which copies the log into the data, loses none: 7 of 15 did.
    assert max(death.lost for death in deaths[Role.LOG]) > 0
    for death in deaths[Role.LOG]:
        assert (death.outcome in ("lost", "damaged")) == (death.lost > 0) and not death.ran_on
        assert death.acknowledged >= death.commits > 0
    text = CliRunner().invoke(app, ["report", str(file.parent), "--format", "json"]).stdout
    assert {row["role"] for row in json.loads(text)["answer"]["device_deaths"]} == {"log", "temp"}
    assert not [entry for entry in ledger.entries() if entry.owner == ledger.ProcessIdentity.mine()]

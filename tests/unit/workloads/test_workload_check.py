"""The list of workloads."""

from __future__ import annotations

from typer.testing import CliRunner

from tierwise.cli import app
from tierwise.lab.workloads import workload_names


def invoke(*arguments: str) -> list[str]:
    """Lines of a command that succeeds."""
    result = CliRunner().invoke(app, ["workload", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


def test_list() -> None:
    text = "\n".join(invoke("list"))
    assert all(name in text for name in workload_names())

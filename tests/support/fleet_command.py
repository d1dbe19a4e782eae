"""``tierwise fleet advise`` in the process of the test."""

from __future__ import annotations

from typer.testing import CliRunner

from tierwise.cli import app


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["fleet", "advise", *arguments], env={"COLUMNS": "160"})
    if done.exception:
        raise done.exception
    return done.stdout

"""``tierwise workload list``, ``new`` and ``check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.options import progress_console
from tierwise.cli.output import FormatOption, OutputFormat, print_result
from tierwise.cli.printing import print_text
from tierwise.lab.report.study.study_document import workload_check_document
from tierwise.lab.studies.runner import workload_check
from tierwise.lab.workloads import Workload, workload_names
from tierwise.lab.workloads.workload_reader import write_new_workload
from tierwise.model.errors import FailedCheckError
from tierwise.report.document import empty_table
from tierwise.results.result_schema import WorkloadCheck

app = typer.Typer(no_args_is_help=True, help="List, start and check workloads.")


@app.command("list")
def list_(format: FormatOption = OutputFormat.TEXT) -> None:
    """List the workloads that ship with tierwise."""
    listing = empty_table(["summary", "runs"], [], names=["workload"])
    shipped = [Workload.load(name) for name in workload_names()]
    for workload in shipped:
        laps = [lap.name for lap in workload.resolve(1).laps]
        runs = f"laps {_listed(laps)}" if laps else f"mix of {_listed(list(workload.spec.transactions))}"
        listing.add(workload.name, workload.summary, runs)
    print_result([listing], {"workloads": [workload.spec for workload in shipped]}, "workloads", format)


@app.command()
def new(folder: Annotated[Path, typer.Argument(help="new folder; its name is the workload's name")]) -> None:
    """Write a small workload with comments as a start for your own."""
    for file in write_new_workload(folder):
        print_text(f"wrote {file}")
    print_text(f"next: tierwise workload check {folder}")


@app.command()
def check(
    workload: Annotated[str, typer.Argument(help="folder, pgbench script, or name of a shipped workload")],
    engine: Annotated[str, typer.Option(help="engine, as in a study")] = "postgres",
    scale: Annotated[
        float | None, typer.Option(help="scale factor; default 0.01, or the least that works")
    ] = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Read a workload, load a few rows of it, and run each of its transactions or laps.

    The database is a new one in a temporary directory.
    """
    chosen = Workload.load(workload)
    tried = []
    with progress_console(to_stderr=True).status("starting", spinner="line") as status:
        for check in workload_check.check_on_new_database(chosen, engine, scale):
            tried.append(check)
            status.update(f"{check.name} done")
    result = WorkloadCheck(file=str(chosen.file), summary=chosen.summary, engine=engine, checks=tried)
    print_result(workload_check_document(result), result, "workload-check", format)
    if result.failed:
        raise FailedCheckError(
            f"{chosen.file}: {result.failed} of the above failed", "correct what they name"
        )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"

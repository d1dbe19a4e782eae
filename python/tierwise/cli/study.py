"""``tierwise run``, ``tierwise demo`` and ``tierwise studies``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise import lab, study
from tierwise.cli.progress import LabProgress
from tierwise.cli.report import print_answer, write_report
from tierwise.host import clean
from tierwise.host.doctor import examine, missing_for_emulation

DEMO = ["commit-rate", "redo-placement"]
RESULTS = Path("results")

Out = Annotated[Path, typer.Option(help="directory for results")]
Seed = Annotated[int | None, typer.Option(help="order of runs and parameters; random when not given")]
Repeats = Annotated[int | None, typer.Option(min=1, help="in place of the study's own number")]
Own = Annotated[
    Path | None, typer.Option(help="use this directory in place of every device; nothing is emulated")
]


def run(
    name: Annotated[str, typer.Argument(metavar="STUDY", help="name of a study, or path of its TOML file")],
    out: Out = RESULTS,
    seed: Seed = None,
    repeats: Repeats = None,
    fresh: Annotated[bool, typer.Option(help="do not go on with an unfinished one")] = False,
    own_storage: Own = None,
) -> None:
    """Run a study and print its answer; one that was stopped goes on where it was."""
    chosen = _load(name, repeats)
    if own_storage is not None:
        chosen = chosen.on_own_storage(own_storage)
    _run(chosen, out, seed, fresh)


def demo(out: Out = RESULTS, seed: Seed = None, repeats: Repeats = None) -> None:
    """Answer the main question here and now: does the log deserve the fast device?

    Where devices cannot be emulated, the same studies run on the machine's own storage.
    """
    missing = missing_for_emulation(examine())
    if missing:
        names = ", ".join(check.name for check in missing)
        typer.echo(f"Cannot emulate devices here (missing: {names}); running on this machine's own storage.")
    for name in DEMO:
        chosen = _load(name, repeats)
        if missing:
            chosen = chosen.on_own_storage(out / "own-storage")
            (out / "own-storage").mkdir(parents=True, exist_ok=True)
        _run(chosen, out, seed, fresh=False)


def studies() -> None:
    """List the studies that ship with tierwise."""
    table = Table("study", "question", "engines", "workload", "placements", "repeats", box=None)
    for name in study.names():
        one = study.load(name)
        table.add_row(
            one.name,
            one.question,
            ", ".join(one.engines),
            one.workload,
            ", ".join(one.placements),
            str(one.repeats),
        )
    Console().print(table)


def _load(name: str, repeats: int | None) -> study.Study:
    chosen = study.load(name)
    return chosen if repeats is None else chosen.model_copy(update={"repeats": repeats})


def _run(chosen: study.Study, out: Path, seed: int | None, fresh: bool) -> None:
    for line in clean.clean():
        typer.echo(f"cleaned up: {line}")
    console = Console()
    with LabProgress(console) as progress:
        directory = lab.run_study(chosen, out, progress, seed, fresh)
    print_answer(console, directory)
    typer.echo(f"report: {write_report(directory)}")

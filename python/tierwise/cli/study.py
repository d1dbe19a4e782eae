"""``tierwise run``, ``tierwise demo`` and ``tierwise studies``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tierwise import lab, study
from tierwise.cli import report as reports
from tierwise.cli.output import warn
from tierwise.cli.progress import LabProgress
from tierwise.cli.report import print_answer, write_report
from tierwise.errors import TierwiseError
from tierwise.host import clean
from tierwise.host.doctor import examine, missing_for_emulation
from tierwise.record import DEFAULT_DUTY, parse_duty
from tierwise.study import sweep

DEMO = ["commit-rate", "redo-placement"]
ALL = "all"
PAPER_SCALE = "paper"
RESULTS = Path("results")
_SOME_FAILED = 1

Out = Annotated[Path, typer.Option(help="directory for results")]
Seed = Annotated[int | None, typer.Option(help="order of runs and parameters; random when not given")]
Repeats = Annotated[int | None, typer.Option(min=1, help="in place of the study's own number")]
Own = Annotated[
    Path | None, typer.Option(help="use this directory in place of every device; nothing is emulated")
]
Engine = Annotated[str | None, typer.Option(help="in place of the first engine of the study")]
Quick = Annotated[bool, typer.Option("--quick", help="smaller and less often: 3 minutes a study or less")]
Scale = Annotated[
    str | None, typer.Option(help='"paper" for the size that the paper had, or a number', metavar="paper|X")
]
Chosen = Annotated[list[str] | None, typer.Option("--placement", help="run this one; may be given again")]
Fresh = Annotated[bool, typer.Option("--fresh", help="do not go on with an unfinished one")]
Resume = Annotated[bool, typer.Option("--resume", help="run again what failed, and what is missing")]

Record = Annotated[
    Path | None, typer.Option(help="record each run to this directory, for predict, profile and advise")
]
Duty = Annotated[str, typer.Option(help="share of the time that --record takes events; laps are taken whole")]


@dataclass(frozen=True)
class _Wanted:
    """What the options change in a study."""

    engine: str | None = None
    quick: bool = False
    scale: str | None = None
    repeats: int | None = None
    placements: list[str] | None = None
    own_storage: Path | None = None

    def load(self, name: str) -> study.Study:
        """The study with all of that."""
        chosen = study.load(name)
        if self.quick:
            chosen = chosen.with_overrides(self._but_placements(chosen.quick))
        if self.scale == PAPER_SCALE:
            chosen = chosen.with_overrides(self._but_placements(chosen.paper_scale))
        elif self.scale is not None:
            chosen = chosen.model_copy(update={"scale": _number(self.scale)})
        if self.repeats is not None:
            chosen = chosen.model_copy(update={"repeats": self.repeats})
        if self.placements:
            chosen = chosen.with_placements(self.placements)
        if self.engine is not None:
            chosen = chosen.on_engine(self.engine)
        return chosen if self.own_storage is None else chosen.on_own_storage(self.own_storage)

    def _but_placements(self, overrides: study.Overrides) -> study.Overrides:
        """Placements that were asked for need not be among the few of a quick run."""
        return overrides.model_copy(update={"placements": None}) if self.placements else overrides


def run(
    name: Annotated[str, typer.Argument(metavar="STUDY", help='name, path of a TOML file, or "all"')],
    *,
    out: Out = RESULTS,
    engine: Engine = None,
    quick: Quick = False,
    scale: Scale = None,
    placement: Chosen = None,
    seed: Seed = None,
    repeats: Repeats = None,
    fresh: Fresh = False,
    resume: Resume = False,
    own_storage: Own = None,
    record: Record = None,
    duty: Duty = DEFAULT_DUTY,
) -> None:
    """Run a study and print its answer; one that was stopped goes on where it was.

    "all" runs every study of a paper, one after the other, and writes one report of them all; one that cannot
    be run does not stop the rest.
    """
    if fresh and resume:
        raise TierwiseError("--fresh and --resume", "give one of the two")
    wanted = _Wanted(engine, quick, scale, repeats, placement, own_storage)
    if name == ALL:
        _run_all(wanted, out, seed, fresh, resume)
    else:
        recordings = None if record is None else lab.Recordings(record, parse_duty(duty))
        _run(wanted.load(name), out, seed, fresh, resume, recordings)


def demo(out: Out = RESULTS, seed: Seed = None, repeats: Repeats = None) -> None:
    """Answer the main question here and now: does the log deserve the fast device?

    Where devices cannot be emulated, the same studies run on the machine's own storage.
    """
    missing = missing_for_emulation(examine())
    own = None
    if missing:
        names = ", ".join(check.name for check in missing)
        typer.echo(f"Cannot emulate devices here (missing: {names}); running on this machine's own storage.")
        own = out / "own-storage"
        own.mkdir(parents=True, exist_ok=True)
    for name in DEMO:
        _run(_Wanted(repeats=repeats, own_storage=own).load(name), out, seed)


def studies() -> None:
    """List the studies that ship with tierwise, with the time that each takes at its default scale."""
    table = Table("study", "question", "engines", "workload", "placements", "runs", "time", box=None)
    for name in study.names():
        one = study.load(name)
        points = len(sweep.points(one.sweep))
        runs = len(one.placements) * points * one.repeats
        time = "" if one.estimate_s is None else f"{max(1, round(one.estimate_s / 60))} min"
        engines, placements = ", ".join(one.engines), ", ".join(one.placements)
        table.add_row(one.name, one.question, engines, one.workload, placements, str(runs), time)
    Console().print(table)


def _run(
    chosen: study.Study,
    out: Path,
    seed: int | None,
    fresh: bool = False,
    resume: bool = False,
    recordings: lab.Recordings | None = None,
) -> Path:
    for line in clean.clean_before(warn):
        typer.echo(f"cleaned up: {line}")
    console = Console()
    with LabProgress(console) as progress:
        directory = lab.run_study(
            chosen, out, progress, seed, fresh=fresh, resume=resume, recordings=recordings
        )
    print_answer(console, directory)
    typer.echo(f"report: {write_report(directory)}")
    if not any(result.status == "ok" for result in lab.results_in(directory)):
        raise TierwiseError(f"study {chosen.name}: no run is valid", "see the problems above, then --resume")
    return directory


def _run_all(wanted: _Wanted, out: Path, seed: int | None, fresh: bool, resume: bool) -> None:
    directories: list[Path] = []
    failures: dict[str, str] = {}
    for name in study.names():
        if study.load(name).source is None:
            continue
        try:
            directories.append(_run(wanted.load(name), out, seed, fresh, resume))
        # Whatever it is, it must not cost what the other studies have measured or are going to.
        except Exception as error:
            failures[name] = str(error) or type(error).__name__
            typer.echo(f"study {name}: {failures[name]}")
    typer.echo(f"report of all: {reports.write_combined_report(directories, out, failures)}")
    for name, reason in failures.items():
        typer.echo(f"not run: {name}: {reason}", err=True)
    if failures:
        raise typer.Exit(_SOME_FAILED)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise TierwiseError(f"--scale: {text!r} is no scale", 'give "paper" or a number above 0')
    return number

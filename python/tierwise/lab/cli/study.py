"""``tierwise study list``, ``show`` and ``run``, and ``tierwise demo``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from tierwise.capture.schedule import parse_burst_duty
from tierwise.cli import options as opt
from tierwise.cli.output import FormatOption, OutputFormat, print_document, print_result, print_warning
from tierwise.cli.printing import print_text
from tierwise.host import clean
from tierwise.host.doctor import check_machine, failed_emulation_checks
from tierwise.lab import studies
from tierwise.lab.analysis.study_answer import StudyAnswer, build_study_answer
from tierwise.lab.cli.progress import StudyProgress
from tierwise.lab.cli.report import REPORT_FILE, read_study_results, write_combined_report, write_study_page
from tierwise.lab.report.study.study_document import study_answer_document
from tierwise.lab.report.study.study_page import StudyChapter
from tierwise.lab.studies.runner import dask_hosts
from tierwise.lab.studies.runner import study_runner as runner
from tierwise.lab.studies.runner.run_recording import RecordingDestination
from tierwise.lab.studies.study import plan_runs, sweep_points, swept_values
from tierwise.lab.studies.study_options import StudyOptions
from tierwise.lab.workloads import Workload
from tierwise.model import numbers
from tierwise.model.errors import FailedCheckError, HostError, TierwiseError
from tierwise.model.names import split_names
from tierwise.model.output_files import make_own_folder
from tierwise.report.document import Cell, Text, Tone, empty_table, figure_cell

DEMO = ["commit-rate", "redo-placement"]
ALL = "all"
RESULTS = Path("results")

Repeats = Annotated[
    int | None, typer.Option(min=1, help="repeats of each run; by default those of the study")
]
OwnStorage = Annotated[
    Path | None, typer.Option(help="run on this directory in place of every device; nothing is emulated")
]
Place = Annotated[
    list[str] | None,
    typer.Option(metavar="ROLE=DEVICE,…", help="add a placement: the baseline with these roles moved"),
]
Placements = Annotated[
    str | None, typer.Option(metavar="NAME,NAME", help="run these placements of the study, and its baseline")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="change a field, for example memory=256M or constants.rows=1000"
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="NAME=DIRECTORY",
        help="replace a device of the study by a directory on a real device, or by a profile",
    ),
]

app = typer.Typer(no_args_is_help=True, help="List, show and run studies.")


@app.command("list")
def list_(format: FormatOption = OutputFormat.TEXT) -> None:
    """List the studies that ship with tierwise, with the time that each takes at its default scale."""
    chosen = [studies.load_study(name) for name in studies.study_names()]
    rows = empty_table(["question"], ["placements", "runs", "time"], names=["study"])
    for study in chosen:
        runs = len(study.placements) * len(sweep_points(study.sweep)) * study.repeats
        placements = figure_cell(len(study.placements), numbers.count_text)
        rows.add(
            study.name,
            study.question,
            placements,
            figure_cell(runs, numbers.count_text),
            _time(study.estimate_s),
        )
    print_result([rows], {"studies": chosen}, "studies", format)


@app.command("show")
def show_(
    study: Annotated[str, typer.Argument(help="name, or path of a TOML file")],
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Print what a study runs: its devices, placements and workload, and what the paper found."""
    _print_plan(studies.load_study(study), {}, format)


def _print_plan(
    study: studies.Study, skipped: Mapping[str, str], format: OutputFormat = OutputFormat.TEXT
) -> None:
    """Devices, placements, workload and number of runs of a study."""
    devices = empty_table(["is"], [], names=["device"])
    for name, spec in study.devices.items():
        devices.add(name, spec.profile or spec.path or "")
    placements = empty_table(["role=device"], [], names=["placement"])
    for name, placement in study.placements.items():
        roles = [f"{role}={device}" for role, device in placement.roles.items()]
        below = (Text("baseline", Tone.QUIET),) if name == study.baseline else ()
        placements.add(Cell(name, below=below), ", ".join([*roles, f"all={placement.default}"]))
    swept = swept_values(study.sweep)
    sweep = empty_table(["values"], [], names=["swept"])
    for name, several in swept.items():
        sweep.add(name, ", ".join(several))
    clients = "clients as swept" if "clients" in swept else numbers.counted_noun(study.clients, "client")
    first, *others = study.engines
    engines = f"{first} (or {', '.join(others)})" if others else first
    facts = f"{study.workload} on {engines}, scale {study.scale:g}, {clients}"
    source = [Text(f"Source: {study.source}.")] if study.source else []
    count = len(plan_runs(study, seed=0))
    runs = f"{facts}, {numbers.counted_noun(study.repeats, 'repeat')}: {numbers.counted_noun(count, 'run')}."
    words = [Text(study.question, Tone.HEADLINE), *source, Text(runs)]
    notes = [Text(f"Not run: {name}: {reason}", Tone.WARNING) for name, reason in skipped.items()]
    notes += [Text(note, Tone.QUIET) for note in study.notes]
    _warn_of_clients(study)
    tables = [devices, placements, *([sweep] if swept else [])]
    print_result([*words, *tables, *notes], {"study": study}, "plan", format)


def _warn_of_clients(study: studies.Study) -> None:
    """Say that a study which gives no clients runs one, if its workload is meant for others."""
    ran_by_one = study.clients == 1 and "clients" not in study.model_fields_set and not study.sweep.clients
    if not ran_by_one or study.patterns or study.cuts is not None or study.deaths is not None:
        return
    spec = Workload.load(study.workload).spec
    if spec.clients > 1 and not spec.laps:
        print_warning(
            f"study {study.name} runs 1 client, as it gives no clients, and its workload {study.workload} is "
            f"meant for {spec.clients}: give the study clients = {spec.clients}"
        )


@app.command()
def run(
    study: Annotated[str, typer.Argument(help='name, path of a TOML file, or "all"')],
    *,
    output: opt.Output = RESULTS,
    engine: Annotated[str | None, typer.Option(help="engine; default: the first of the study")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="smaller run, at most 3 minutes for a study")
    ] = False,
    scale: Annotated[
        str | None, typer.Option(help='scale factor, or "paper" for the size in the paper')
    ] = None,
    clients: Annotated[int | None, typer.Option(min=1, max=100_000, help="number of clients")] = None,
    duration: opt.Duration = None,
    set_: Settings = None,
    device: Devices = None,
    place: Place = None,
    placements: Placements = None,
    only: Annotated[bool, typer.Option("--only", help="leave out the baseline")] = False,
    seed: opt.Seed = None,
    repeats: Repeats = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="start again instead of resuming")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="also repeat failed runs")] = False,
    own_storage: OwnStorage = None,
    record: Annotated[
        Path | None, typer.Option(help="record each run to this directory, for predict, profile and advise")
    ] = None,
    duty: Annotated[
        str | None, typer.Option(help="share of the time to record with --record; default 1/10")
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="run on the lab workers of this Dask scheduler, tls://HOST:PORT"
        ),
    ] = None,
    drop_caches: opt.DropCaches = False,
    trust_scheduler: opt.TrustScheduler = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="check the study and list its runs without running them")
    ] = False,
) -> None:
    """Run a study and print its answer. An interrupted study is resumed.

    "all" runs every study of a paper and writes one report of them all. A study that fails does not stop the
    others.
    """
    if fresh and resume:
        raise TierwiseError("--fresh and --resume", "give one of the two")
    options = StudyOptions(
        quick=quick,
        scale=scale,
        set=set_ or [],
        clients=clients,
        duration_s=opt.duration_option_s(duration, "--duration"),
        repeats=repeats,
        devices=device or [],
        place=place or [],
        placements=split_names(placements or ""),
        only=only,
        engine=engine,
        own_storage=own_storage,
    )
    if hosts is not None and (study == ALL or record is not None):
        raise TierwiseError("--hosts runs one study and does not record", 'leave out --record, or "all"')
    if study == ALL and record is not None:
        raise TierwiseError('--record: "all" records nothing', "name one study, or leave out --record")
    if record is None and duty is not None:
        raise TierwiseError("--duty is of --record", "add --record, or leave it out")
    recordings = (
        None
        if record is None
        else RecordingDestination(record, parse_burst_duty("1/10" if duty is None else duty))
    )
    if dry_run:
        for each in _of_papers() if study == ALL else [studies.load_study(study)]:
            chosen, skipped = runner.restrict_to_runnable(options.applied_to(each))
            runner.check_study(chosen, here=hosts is None)
            if recordings is not None:
                runner.require_recordable(chosen, recordings)
            _print_plan(chosen, skipped)
        return
    if hosts is not None and drop_caches:
        raise TierwiseError("--drop-caches drops the caches of this machine only", "leave it out")
    begun: dict[str, Any] = {"fresh": fresh, "resume": resume, "drop_caches": drop_caches}
    if study == ALL:
        _run_all(options, output, seed, begun)
        return
    with (
        nullcontext()
        if hosts is None
        else dask_hosts.open_dask_hosts(hosts, trusted=trust_scheduler) as lab_hosts
    ):
        begun |= {"recordings": recordings, "hosts": lab_hosts}
        _run(options.applied_to(studies.load_study(study)), output, seed, **begun)


def demo(output: opt.Output = RESULTS, seed: opt.Seed = None, repeats: Repeats = None) -> None:
    """Answer the main question here and now: does the log deserve the fast device?

    If devices cannot be emulated, the same studies run on this machine's own storage.
    """
    missing = failed_emulation_checks(check_machine())
    own = None
    if missing:
        names = ", ".join(check.name for check in missing)
        print_text(f"Cannot emulate devices here (missing: {names}); running on this machine's own storage.")
        own = output / "own-storage"
        make_own_folder(own, 0o755)
    options = StudyOptions(repeats=repeats, own_storage=own)
    for name in DEMO:
        _run(options.applied_to(studies.load_study(name)), output, seed)


def _run(chosen: studies.Study, output: Path, seed: int | None, **begun: Any) -> StudyAnswer:
    """Run a study; further arguments: :func:`~tierwise.lab.studies.runner.study_runner.run_study`."""
    for line in clean.clean_before_operation(print_warning):
        print_text(f"cleaned up: {line}")
    _warn_of_clients(chosen)
    with StudyProgress(opt.progress_console()) as progress:
        directory = runner.run_study(chosen, output, progress, seed, **begun)
    results, info = read_study_results(directory)
    answer = build_study_answer(results, info)
    print_document(study_answer_document(answer))
    _report(lambda: write_study_page(answer, directory / REPORT_FILE))
    if not any(result.status == "ok" for result in results):
        raise FailedCheckError(
            f"study {chosen.name}: no run is valid", "see the problems above, then --resume"
        )
    return answer


def _of_papers() -> list[studies.Study]:
    return [study for study in map(studies.load_study, studies.study_names()) if study.source is not None]


def _run_all(options: StudyOptions, output: Path, seed: int | None, begun: Mapping[str, Any]) -> None:
    chapters: list[StudyChapter] = []
    failures: dict[str, str] = {}
    for study in _of_papers():
        name = study.name
        try:
            answer = _run(options.applied_to(study), output, seed, **begun)
            chapters.append(StudyChapter(answer.study.name, answer.study.question, answer))
        # No error in one study may lose the results of the others or stop them.
        except Exception as error:
            failures[name] = str(error) or type(error).__name__
            print_text(f"study {name}: {failures[name]}")
    chapters += [StudyChapter(name, problem=reason) for name, reason in failures.items()]
    _report(lambda: write_combined_report(chapters, output), "report of all")
    for name, reason in failures.items():
        print_text(f"not run: {name}: {reason}", err=True)
    if failures:
        raise FailedCheckError(
            f"not run: {numbers.counted_noun(len(failures), 'study', 'studies')}", "see the reasons above"
        )


def _report(written: Callable[[], Path], name: str = "report") -> None:
    """Print where the page is, or why there is none: its charts may lack a library, and the runs remain."""
    try:
        print_text(f"{name}: {written()}")
    except HostError as error:
        print_warning(f"no {name}: {error}")


def _time(seconds: float | None) -> Cell:
    if seconds is None:
        return Cell(numbers.NONE)
    return Cell(f"{max(1, round(seconds / 60))} min", value=seconds)

"""``tierwise advise``, ``verify`` and ``serve``: what to move first, what came of it, and the page, live."""

from __future__ import annotations

import signal
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tierwise.advise import Advice, AdviceOptions, DayAdvice, PaymentTerms, advise_day
from tierwise.advise import advise as advised
from tierwise.advise.advice import candidate_devices
from tierwise.advise.costs import HEADROOM
from tierwise.advise.table_advice import advise_tables
from tierwise.cli import options as opt
from tierwise.cli.output import (
    FormatOption,
    OutputFormat,
    output_file_option,
    print_result,
    print_warning,
    require_suffix,
    simulation_progress,
    write_page,
)
from tierwise.cli.printing import print_text
from tierwise.cluster.simulations import distribution_to_cluster
from tierwise.device_models.prices import YEARS
from tierwise.model.errors import FailedCheckError, TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.names import split_names
from tierwise.model.placement import parse_placement
from tierwise.model.units import parse_monthly_amount, parse_size_bytes
from tierwise.predict import Predictor
from tierwise.predict.predictor import SEEDS
from tierwise.predict.timeline import timeline_of
from tierwise.predict.usability import judge_usability
from tierwise.recording import Day, Observation, open_recorded_source
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.document import Block
from tierwise.report.recording.advice_report import advice_document
from tierwise.report.recording.day_report import day_advice_document, day_advice_section
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.tables_report import tables_document

if TYPE_CHECKING:
    from tierwise.report.change import PlacementChange


class ChangeTool(StrEnum):
    """Tool that an advice is written for."""

    CNPG = "cnpg"
    TERRAFORM = "terraform"
    ANSIBLE = "ansible"
    FIO = "fio"


def refuse_emit_for_day(emit: ChangeTool | None, recording: Path) -> None:
    """Refuse a day, whose loads may have several advices."""
    if emit is not None and Day.is_at(recording):
        raise TierwiseError(
            f"--emit: {recording} is a day, which has an advice for each of its loads",
            "name one of its recordings",
        )


def emit_change(
    emit: ChangeTool, advice: Advice, terms: PaymentTerms, recording: Path, output: Path | None
) -> None:
    """Write what an advice changes, to standard output without a file; nothing where it moves nothing."""
    if not advice.usable:
        reason = next(remark.reason for remark in advice.remarks if remark.blocks)
        raise FailedCheckError(f"--emit: the recording is not usable: {reason}", "record again, then advise")
    if advice.instead:
        print_text(
            f"The advice is to set {advice.instead.setting} in place of a move; there is nothing to emit. "
            "Leave out --may-lose to emit the move.",
            err=True,
        )
        return
    from tierwise.report.change import recommended_change  # only an advice with --emit needs it

    change = recommended_change(advice, terms.room)
    if change is None:
        print_text("The advice is to leave every file where it is; there is nothing to emit.", err=True)
        return
    text = change.cautioned(_text(emit, change, recording))
    if output is None:
        print_text(text, nl=False)
    else:
        print_text(f"{emit}: {write_output_file(output, text.encode())}", err=True)


def _text(emit: ChangeTool, change: PlacementChange, recording: Path) -> str:
    from tierwise.recording.role_requests import role_requests
    from tierwise.report.change import ansible_playbook, cluster_patch, fio_jobs, terraform_volumes

    match emit:
        case ChangeTool.CNPG:
            return cluster_patch(change)
        case ChangeTool.TERRAFORM:
            return terraform_volumes(change)
        case ChangeTool.ANSIBLE:
            return ansible_playbook(change)
        case ChangeTool.FIO:
            source = open_recorded_source(recording)
            if isinstance(source, Observation):
                raise TierwiseError(
                    "--emit fio: an observation has no requests", "record with tierwise record"
                )
            return fio_jobs(change, role_requests(source))


def show_table_advice(
    recording: Path,
    devices: str,
    capacity: str | None,
    budget: str | None,
    names: Path | None,
    terms: PaymentTerms,
    *,
    seeds: int,
    fresh: bool,
    format: OutputFormat,
) -> None:
    """Print which tables and indexes of a recording to move to each of some devices."""
    named = split_names(devices)
    if not (named or terms.have):
        raise TierwiseError("--by table: no device is asked about", "write for example --devices nvme-dc,gp3")
    size_bytes = None if capacity is None else parse_size_bytes(capacity, "--capacity", 1)
    most = None if budget is None else parse_monthly_amount(budget, "--budget", terms.prices.currency)
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh, names=names)
    with simulation_progress(predictor, opt.progress_console(to_stderr=True)):
        placed = candidate_devices(predictor, named, terms)
        advice = advise_tables(predictor, placed, terms, size_bytes, budget_per_month=most)
    judged = judge_usability(predictor)
    content = {"recorded": predictor.run, "advice": advice, "usability": judged.fields}
    document = [*doubt_texts(judged.usable, judged.ordered), *tables_document(advice, predictor.run)]
    print_result(document, content, "table-advice", format)


def show_day_advice(folder: Path, ask: Callable[[Path], Advice], format: OutputFormat) -> DayAdvice:
    """Print the advice for each load of a day, and return it."""
    advised = advise_day(timeline_of(Day.open(folder)), lambda name: ask(folder / name))
    print_result(day_advice_document(advised), {"day_advice": advised}, "day-advice", format)
    return advised


class PlacedUnit(StrEnum):
    """What is placed."""

    TABLE = "table"


def advise(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote, also of a day")],
    *,
    devices: opt.Devices = "",
    have: opt.Have = "",
    budget: opt.Budget = None,
    goal: opt.GoalText = None,
    may_lose: opt.MayLose = None,
    headroom: opt.Headroom = HEADROOM,
    growth: opt.Growth = "",
    instance: opt.Instances = None,
    grow: opt.Grow = None,
    years: opt.Years = YEARS,
    prices: opt.PricesFile = None,
    recorded_on: opt.RecordedOn = "",
    rebuildable: opt.Rebuildable = False,
    by: Annotated[
        PlacedUnit | None, typer.Option(help="table: which tables and indexes to move to each device")
    ] = None,
    capacity: Annotated[
        str | None, typer.Option(help="space for tables on the device, for example 100G; with --by table")
    ] = None,
    names: opt.Names = None,
    fresh: opt.Fresh = False,
    seeds: opt.Seeds = SEEDS,
    scheduler: opt.Scheduler = None,
    trust_scheduler: opt.TrustScheduler = False,
    workers: opt.Workers = None,
    output: Annotated[
        Path | None,
        output_file_option(
            "-o", "--output", help="write a page, advice.html, with every placement; or the file of --emit"
        ),
    ] = None,
    emit: Annotated[
        ChangeTool | None,
        typer.Option(help="write the recommended placement for another tool; alone to standard output"),
    ] = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Advise which files to move first, the best placement for the money, and how long its devices last."""
    refuse_emit_for_day(emit, recording)
    emitted, output = (output, None) if emit is not None else (None, output)
    if emit is not None and emitted is None and format is not OutputFormat.TEXT:
        raise TierwiseError(
            "--emit and --format: both would go to standard output",
            "name a file for --emit with -o, or leave out --format",
        )
    require_suffix(output, ".html", "page")
    if output is not None and Day.is_at(recording):
        require_extra("report", "--output of a day")  # its timeline is drawn
    terms = PaymentTerms.parse(
        have=have,
        headroom=headroom,
        growth=growth,
        years=years,
        prices=prices,
        recorded_on=recorded_on,
        rebuildable=rebuildable,
    )
    if by is not None:
        others: dict[str, object] = {
            **{"--goal": goal, "--may-lose": may_lose, "--recorded-on": recorded_on},
            **{"--output": output or emitted, "--emit": emit, "--instance": instance, "--grow": grow},
            **{"--scheduler": scheduler, "--workers": workers},
        }
        if refused := [name for name, value in others.items() if value]:
            raise TierwiseError(f"{refused[0]}: tables are chosen by size", f"leave out {refused[0]}")
        show_table_advice(
            recording, devices, capacity, budget, names, terms, seeds=seeds, fresh=fresh, format=format
        )
        return
    if capacity is not None:
        raise TierwiseError("--capacity is of tables", "add --by table")
    options = AdviceOptions.parse(
        devices, budget, goal, terms, fresh=fresh, may_lose=may_lose, instances=instance or [], grow=grow
    )
    with distribution_to_cluster(scheduler, workers, trusted=trust_scheduler) as distribute:
        opened: dict[Path, Predictor] = {}

        def ask(path: Path) -> Advice:
            predictor = Predictor.open(path, seeds=seeds, fresh=fresh, names=names)
            distribute(predictor.replayer, path)
            if output is not None:
                predictor.replayer.remember()  # the page needs the placements that the advice ranks
                opened[path] = predictor
            with simulation_progress(predictor, opt.progress_console(to_stderr=True)):
                return advised(predictor, options, tables=output is not None, named=names is not None)

        day: list[Block] = []
        if Day.is_at(recording):
            of_day = show_day_advice(recording, ask, format)
            if output is None:
                return
            peak = next(answer for answer in of_day.answers if answer.load == "peak")
            day, recording = day_advice_section(of_day), recording / peak.recording
            advice = peak.advice or ask(recording)  # which raises its reason again
        else:
            advice = ask(recording)
            if emit is None or emitted is not None:
                content = {"recorded": advice.run, "advice": advice}
                print_result(advice_document(advice), content, "advice", format)
            if emit is not None:
                emit_change(emit, advice, terms, recording, emitted)
        if output is not None:
            from tierwise.report.advice import advice_page, survey_advice

            predictor = opened[recording]
            with simulation_progress(predictor, opt.progress_console(to_stderr=True)):
                machine = instance[0] if instance else ""
                surveyed = survey_advice(predictor, advice, terms, recording, fresh, names, instance=machine)
            write_page(output, advice_page(surveyed, day=day), err=format is not OutputFormat.TEXT)


def verify(
    forecast: Annotated[
        Path,
        typer.Argument(metavar="FORECAST", help="file that advise or predict printed with --format json"),
    ],
    recording: Annotated[Path, typer.Argument(metavar="RECORDING", help="recording taken after the move")],
    *,
    place: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=DEVICE,…",
            help="the placement of FORECAST to verify; by default the one that fits the recorded devices, "
            "else the recommended one",
        ),
    ] = None,
    names: opt.Names = None,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="simulation runs for each replay")] = SEEDS,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Compare a forecast with what came of it, and if they differ, say why.

    Exit status 1 if a measured figure lies outside its interval.
    """
    from tierwise.advise.verification import verify_forecast  # no other command needs them
    from tierwise.report.recording.verification_report import verification_document

    verification = verify_forecast(
        forecast,
        recording,
        None if place is None else parse_placement(place, relations=True),
        seeds=seeds,
        names=names,
    )
    print_result(verification_document(verification), {"verification": verification}, "verification", format)
    if not verification.inside:
        raise typer.Exit(1)


def serve(
    recordings: Annotated[list[Path], typer.Argument(help="folders that tierwise record wrote")],
    *,
    devices: opt.Devices = "",
    have: opt.Have = "",
    budget: opt.Budget = None,
    goal: opt.GoalText = None,
    may_lose: opt.MayLose = None,
    headroom: opt.Headroom = HEADROOM,
    growth: opt.Growth = "",
    years: opt.Years = YEARS,
    prices: opt.PricesFile = None,
    recorded_on: opt.RecordedOn = "",
    rebuildable: opt.Rebuildable = False,
    fresh: opt.Fresh = False,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="port; a free one by default")] = 0,
) -> None:
    """Serve the page of advise with sliders for clients, cores, memory, growth and arrival rate."""
    require_extra("serve", "serve")
    from tierwise.serve.page_server import listening_socket, serve_recordings
    from tierwise.serve.request_guard import is_loopback  # which import the extra
    from tierwise.serve.served_recordings import ServedRecordings
    from tierwise.serve.simulation_queue import SimulationQueue

    terms = PaymentTerms.parse(
        have=have,
        headroom=headroom,
        growth=growth,
        years=years,
        prices=prices,
        recorded_on=recorded_on,
        rebuildable=rebuildable,
    )
    options = AdviceOptions.parse(devices, budget, goal, terms, fresh=fresh, may_lose=may_lose)
    with listening_socket(host, port) as listening:
        if not is_loopback(host):
            print_warning(
                f"--host {host}: whoever reaches this machine and knows the address sees the recordings; "
                "it travels unencrypted"
            )
        simulator = SimulationQueue()
        try:
            server = serve_recordings(
                ServedRecordings(recordings, options, simulator), simulator, listening, host
            )
            if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
                signal.signal(signal.SIGHUP, lambda *_: server.stop())  # as uvicorn takes the other signals
            print_text(server.url)
            server.run()
        finally:
            simulator.close()

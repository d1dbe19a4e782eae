"""``tierwise predict``: the recorded work on other devices, memory, cores or clients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer

from tierwise.advise.costs import parse_recorded_on
from tierwise.cli import options as opt
from tierwise.cli.output import (
    FormatOption,
    OutputFormat,
    Png,
    print_result,
    progress_counter,
    simulation_progress,
)
from tierwise.cli.printing import print_text
from tierwise.cluster.simulations import distribution_to_cluster
from tierwise.device_models.instances import find_instance
from tierwise.model.errors import TierwiseError
from tierwise.model.extras import require_extra
from tierwise.model.names import resolved_path, split_names, unknown_name_fix
from tierwise.model.placement import is_relation_name, parse_placement
from tierwise.predict import Prediction, Predictor, Scenario, predict_together, rank_placements
from tierwise.predict.predictor import SEEDS
from tierwise.predict.ranking import require_rankable
from tierwise.predict.rate_unit import parse_rate_unit
from tierwise.predict.scenario import LEAST_MEMORY_BYTES
from tierwise.predict.scenario_machine import network_volumes
from tierwise.predict.usability import DatabaseUsability, judge_usability
from tierwise.recording.command_outputs import write_output_file
from tierwise.report.charts.chart_style import to_png
from tierwise.report.document import Document, Text
from tierwise.report.recording.decision_words import doubt_texts
from tierwise.report.recording.prediction_report import (
    joint_document,
    prediction_document,
    predictions_chart,
    ranking_document,
)
from tierwise.report.recording.recording_report import add_usability_verdict

_EXAMPLE = "write for example --place shop.log=nvme-dc#1,bank.log=nvme-dc#1"


def print_joint_prediction(
    recordings: Sequence[Path],
    places: Sequence[str],
    refused: Sequence[str],
    machine: Scenario,
    *,
    seeds: int,
    fresh: bool,
    format: OutputFormat,
) -> None:
    """Print what each database does while the others use the devices that they share."""
    if refused:
        raise TierwiseError(
            f"{refused[0]} is for one recording, and {len(recordings)} are given",
            "leave it out, or ask one by one",
        )
    names = _names(recordings)
    if not places:
        raise TierwiseError(f"{len(names)} recordings without --place share no device", _EXAMPLE)
    asked = [_scenarios(text, list(names), machine) for text in places]
    predictors = {name: Predictor.open(path, seeds=seeds, fresh=fresh) for name, path in names.items()}
    with progress_counter("simulating", opt.progress_console(to_stderr=True)):
        answers = [predict_together(predictors, scenarios, seeds=seeds) for scenarios in asked]
    judged = {name: judge_usability(predictor) for name, predictor in predictors.items()}
    unusable = "{} is not usable: do not act on what follows."
    document = [
        *chain(
            *(
                doubt_texts(each.usable, each.ordered, unusable.format(name), name)
                for name, each in judged.items()
            )
        ),
        *chain(*map(joint_document, answers)),
        *(Text(f"{name}: {sentence}") for name, each in judged.items() for sentence in each.sentences),
    ]
    verdicts = [DatabaseUsability(database=name, **dict(each.fields)) for name, each in judged.items()]
    content = {"predictions": [*chain(*answers)], "usability": verdicts}
    print_result(document, content, "joint-prediction", format)


def _names(recordings: Sequence[Path]) -> dict[str, Path]:
    """Name of each database, that of its folder."""
    names: dict[str, Path] = {}
    for path in recordings:
        name = resolved_path(path).name
        if name in names:
            raise TierwiseError(
                f"{names[name]} and {path} have one name, {name!r}",
                "copy or link one folder under another name",
            )
        names[name] = path
    return names


def _scenarios(text: str, names: Sequence[str], machine: Scenario) -> dict[str, Scenario]:
    """The scenario of each database from ``NAME.ROLE=DEVICE,…``."""
    parts: dict[str, list[str]] = {name: [] for name in names}
    for part in split_names(text):
        database, dot, rest = part.partition("=")[0].strip().rpartition(".")
        if not dot:
            raise TierwiseError(f"--place: {part!r} names no database", _EXAMPLE)
        if database not in parts:
            raise TierwiseError(
                f"--place: no recording is named {database!r}", unknown_name_fix(database, names)
            )
        parts[database].append(f"{rest}={part.partition('=')[2]}")
    return {
        name: machine.changed(placement=parse_placement(",".join(own)) if own else {})
        for name, own in parts.items()
    }


def predict(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING…", help="folder that tierwise record wrote; several share the numbered devices"
        ),
    ],
    *,
    place: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=DEVICE,…",
            help="move roles, such as log=nvme-dc,data=hdd-7k2; all=DEVICE moves the rest. A scenario each. "
            "Tables and indexes too: public.orders=nvme-dc,index:public.*=nvme-dc. "
            "Of several recordings: shop.log=nvme-dc#1,bank.log=nvme-dc#1",
        ),
    ] = None,
    devices: Annotated[
        str | None, typer.Option(metavar="DEVICE,DEVICE", help="rank every placement over these devices")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="memory of the machine, as 48G; the engine's own buffer keeps its size without --buffer"
        ),
    ] = None,
    buffer: Annotated[
        str | None,
        typer.Option(
            help="the engine's own buffer, such as shared_buffers or innodb_buffer_pool_size, for example 8G"
        ),
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, max=1024, help="number of cores; as recorded by default")
    ] = None,
    cpu_speed: Annotated[
        float, typer.Option(min=0.01, max=100.0, help="speed of a core relative to the recorded machine")
    ] = 1.0,
    clients: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000,
            help="number of sessions of the server, behind a pooler not of users; as recorded by default",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, max=1e7, help="arrivals per second in an open loop")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="another setting of the engine for every scenario, such as synchronous_commit=off",
        ),
    ] = None,
    growth: Annotated[
        float | None,
        typer.Option(min=0.01, max=1000.0, help="factor by which data and load grow, as --grow of advise"),
    ] = None,
    instance: opt.InstanceName = None,
    recorded_on: opt.RecordedOn = "",
    emulated: Annotated[
        bool, typer.Option(help="predict emulated disks, which are no faster than their path")
    ] = False,
    unit: Annotated[str | None, typer.Option(help="unit of rates: transactions or requests")] = None,
    names: opt.Names = None,
    fresh: opt.Fresh = False,
    seeds: opt.Seeds = SEEDS,
    scheduler: opt.Scheduler = None,
    trust_scheduler: opt.TrustScheduler = False,
    workers: opt.Workers = None,
    png: Png = None,
    format: FormatOption = OutputFormat.TEXT,
) -> None:
    """Predict the recorded work on another machine, with intervals and warnings.

    Several recordings are answered together: each database has its own machine, and those that name one
    numbered device, such as nvme-dc#1, share it.
    """
    if png is not None:
        require_extra("report", "--png")
    machine_instance = None if instance is None else find_instance(instance)
    machine = Scenario().changed(
        memory_bytes=opt.size_option_bytes(memory, "--memory", LEAST_MEMORY_BYTES),
        buffer_bytes=opt.size_option_bytes(buffer, "--buffer", LEAST_MEMORY_BYTES),
        cores=cores,
        cpu_speed=cpu_speed,
        clients=clients,
        rate_per_s=rate,
        growth=growth,
        settings=set_ or [],
        instance=machine_instance,
        recorded_volumes=network_volumes(parse_recorded_on(recorded_on), machine_instance),
        emulated=emulated,
    )
    if devices is None:
        machine.require_disk(placed=bool(place))
    if devices is not None and place:
        raise TierwiseError(
            "--place: --devices ranks every placement, and would leave it out",
            "leave out --devices or --place",
        )
    if devices is not None:
        require_rankable(machine)
    if len(recordings) > 1:
        options: dict[str, object] = {"--devices": devices, "--unit": unit, "--png": png, "--names": names}
        options |= {"--scheduler": scheduler, "--workers": workers, "--set": set_ or None}
        refused = [name for name, value in options.items() if value is not None]
        refused += [f"--{name.replace('_', '-')}" for name in machine.beside_placement if name != "settings"]
        print_joint_prediction(
            recordings, place or [], refused, machine, seeds=seeds, fresh=fresh, format=format
        )
        return
    placements = [parse_placement(place_text, relations=True) for place_text in place or []]
    if names is not None and buffer is None and not any(map(is_relation_name, chain(*placements))):
        raise TierwiseError(
            "--names: no table or index is placed",
            "place one, as --place public.orders=nvme-dc, or leave out --names",
        )
    with distribution_to_cluster(scheduler, workers, trusted=trust_scheduler) as distribute:
        counted = None if unit is None else parse_rate_unit(unit)
        predictor = Predictor.open(recordings[0], seeds=seeds, fresh=fresh, unit=counted, names=names)
        distribute(predictor.replayer, recordings[0])
        with simulation_progress(predictor, opt.progress_console(to_stderr=True)):
            if devices is not None:
                answers, document, content = _ranked(predictor, split_names(devices), machine)
                unanswered = content["ranking"].refused is not None
            else:
                answers, document, content = _predicted(predictor, placements, machine)
                unanswered = False
    judged = judge_usability(predictor)
    content |= {"recorded": predictor.run, "usability": judged.fields}
    document = add_usability_verdict(judged, document)
    print_result(document, content, "ranking" if devices else "prediction", format)
    if png is not None:
        chart = to_png(predictions_chart(predictor.as_recorded, answers))
        print_text(f"chart: {write_output_file(png, chart)}", err=True)
    if unanswered or any(answer.refused for answer in answers):
        raise typer.Exit(1)


_Answered = tuple[list[Prediction], Document, dict[str, Any]]


def _ranked(predictor: Predictor, devices: list[str], machine: Scenario) -> _Answered:
    """Predictions of the best placements, then the ranking as a document and in fields."""
    ranking = rank_placements(predictor, devices, machine)
    document = ranking_document(predictor.run, predictor.as_recorded, ranking)
    return ranking.closer, document, {"ranking": ranking}


def _predicted(predictor: Predictor, placements: list[dict[str, str]], machine: Scenario) -> _Answered:
    """Predictions of these placements, also as a document and in fields."""
    scenarios = [machine.changed(placement=placement) for placement in placements or [{}]]
    answers = predictor.predict(scenarios)
    document = prediction_document(predictor.run, predictor.as_recorded, answers)
    return answers, document, {"predictions": answers}

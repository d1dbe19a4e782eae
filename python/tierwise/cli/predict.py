"""``tierwise predict``: the recorded work on other devices, memory, cores or clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tierwise.cli.options import Png
from tierwise.cli.output import Format, FormatOption, show, write_file
from tierwise.cli.progress import simulations
from tierwise.cli.settings import progress_console
from tierwise.model.errors import TierwiseError
from tierwise.model.placement import parse_place
from tierwise.model.suggestions import names_in
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Prediction, Predictor, Scenario, rank
from tierwise.predict.counting import parse_unit
from tierwise.predict.predictor import SEEDS
from tierwise.predict.scenario import LEAST_MEMORY_BYTES
from tierwise.predict.usability import usability
from tierwise.report.document import Document
from tierwise.report.recording.prediction import prediction_document, ranking_document
from tierwise.report.recording.usability import usability_texts


def predict(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote")],
    *,
    place: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=DEVICE,…",
            help="as log=nvme-dc,data=hdd-7k2; all=DEVICE for the rest; each --place is a scenario",
        ),
    ] = None,
    devices: Annotated[
        str | None, typer.Option(metavar="DEVICE,DEVICE", help="rank every placement over these")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(help="of the machine, as 48G; the engine keeps its own buffer")
    ] = None,
    cores: Annotated[int | None, typer.Option(min=1, max=1024, help="as recorded if not given")] = None,
    cpu_speed: Annotated[
        float, typer.Option(min=0.01, max=100.0, help="of a core; 1 is that of the recorded machine")
    ] = 1.0,
    clients: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="at the same time; as recorded if not given")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(min=0.001, max=1e7, help="transactions that arrive in a second, open loop")
    ] = None,
    growth: Annotated[
        float | None,
        typer.Option(min=0.01, max=1000.0, help="data and load, as a multiple of the recorded ones"),
    ] = None,
    emulated: Annotated[
        bool, typer.Option(help="for devices as tierwise emulates them live, no faster than their path")
    ] = False,
    unit: Annotated[
        str | None, typer.Option(help="what rates count: transactions, or requests of clients")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="new devices as on their first day, not after long use")
    ] = False,
    seeds: Annotated[int, typer.Option(min=2, max=100, help="runs of the simulator for each")] = SEEDS,
    png: Png = None,
    format: FormatOption = Format.TEXT,
) -> None:
    """Predict the recorded work on another machine, with intervals and warnings."""
    machine = Scenario(
        memory_bytes=parse_size_bytes(memory, "--memory", LEAST_MEMORY_BYTES) if memory else None,
        cores=cores,
        cpu_speed=cpu_speed,
        clients=clients,
        rate_per_s=rate,
        growth=growth,
        emulated=emulated,
    )
    if devices is not None and (rate is not None or growth is not None):
        option = "--rate" if rate is not None else "--growth"
        raise TierwiseError(
            f"{option}: placements are ranked by the highest rate", f"leave out --devices or {option}"
        )
    placements = [parse_place(one) for one in place or []]
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh, unit=parse_unit(unit) if unit else None)
    if devices is not None:
        with simulations(predictor, progress_console(to_stderr=True)):
            ranking = rank(predictor, names_in(devices), machine)
        answers = ranking.closer
        document: Document = ranking_document(predictor.run, predictor.as_recorded, ranking)
        found: dict[str, Any] = {"ranking": ranking.model_dump(mode="json")}
    else:
        scenarios = [machine.model_copy(update={"placement": one}) for one in placements or [{}]]
        answers = predictor.predict(scenarios)
        document = prediction_document(predictor.run, predictor.as_recorded, answers)
        found = {"predictions": [answer.model_dump(mode="json") for answer in answers]}
    judged = usability(predictor)
    found |= {"recorded": predictor.run.model_dump(mode="json"), "usability": judged.described}
    show([*document, *usability_texts(judged)], found, "ranking" if devices else "prediction", format)
    if png is not None:
        _draw(predictor, answers, png)
    if any(answer.refused for answer in answers):
        raise typer.Exit(1)


def _draw(predictor: Predictor, answers: list[Prediction], png: Path) -> None:
    from tierwise.report.charts.prediction import answers_chart  # slow to import
    from tierwise.report.charts.render import to_png

    chart = to_png(answers_chart(predictor.as_recorded, answers))
    typer.echo(f"chart: {write_file(png, chart)}", err=True)

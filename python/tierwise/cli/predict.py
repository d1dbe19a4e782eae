"""``tierwise predict``: the recorded work on other devices, memory, cores or clients."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tierwise.cli.output import print_json, print_parts, print_verdict, write_file
from tierwise.errors import TierwiseError
from tierwise.predict import Prediction, Predictor, Question, Ranking, parse_placement, rank
from tierwise.predict.counting import parse_unit
from tierwise.predict.predictor import SEEDS
from tierwise.predict.question import LEAST_MEMORY_BYTES
from tierwise.report.prediction import prediction_parts, ranking_parts
from tierwise.spelling import names_in
from tierwise.units import parse_size_bytes
from tierwise.verdict import verdict


def predict(
    recording: Annotated[Path, typer.Argument(help="folder that tierwise record wrote")],
    *,
    placement: Annotated[
        list[str] | None,
        typer.Option(
            help="role=device,… as log=nvme-dc,data=hdd-7k2; all=DEVICE for the rest; may be repeated"
        ),
    ] = None,
    all_: Annotated[
        str | None, typer.Option("--all", metavar="DEVICE,DEVICE", help="rank every placement over these")
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
    png: Annotated[Path | None, typer.Option(help="file to draw the answers into")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON")] = False,
) -> None:
    """Say how the recorded work would go on another machine, how sure that is, and what cannot be said."""
    machine = Question(
        memory_bytes=parse_size_bytes(memory, "--memory", LEAST_MEMORY_BYTES) if memory else None,
        cores=cores,
        cpu_speed=cpu_speed,
        clients=clients,
        rate_per_s=rate,
        growth=growth,
        emulated=emulated,
    )
    if all_ is not None and (rate is not None or growth is not None):
        option = "--rate" if rate is not None else "--growth"
        raise TierwiseError(
            f"{option}: placements are ranked by the highest rate", f"leave out --all or {option}"
        )
    placements = [parse_placement(one) for one in placement or []]
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh, unit=parse_unit(unit) if unit else None)
    if all_ is not None:
        ranking = rank(predictor, names_in(all_), machine)
        _show_ranking(predictor, ranking, as_json)
        answers = ranking.closer
    else:
        questions = [machine.model_copy(update={"placement": one}) for one in placements or [{}]]
        answers = predictor.predict(questions)
        _show(predictor, answers, as_json)
    if png is not None:
        _draw(predictor, answers, png)
    if any(answer.refused for answer in answers):
        raise typer.Exit(1)


def _draw(predictor: Predictor, answers: list[Prediction], png: Path) -> None:
    from tierwise.report.charts.prediction import answers_chart  # slow to import
    from tierwise.report.charts.render import to_png

    chart = to_png(answers_chart(predictor.as_recorded, answers))
    typer.echo(f"chart: {write_file(png, chart)}", err=True)


def _show(predictor: Predictor, answers: list[Prediction], as_json: bool) -> None:
    if as_json:
        shown = [answer.model_dump(mode="json") for answer in answers]
        print_json(predictor.run, predictions=shown, verdict=verdict(predictor).described)
    else:
        print_parts(prediction_parts(predictor.run, predictor.as_recorded, answers))
        print_verdict(verdict(predictor))


def _show_ranking(predictor: Predictor, ranking: Ranking, as_json: bool) -> None:
    if as_json:
        shown = ranking.model_dump(mode="json")
        print_json(predictor.run, ranking=shown, verdict=verdict(predictor).described)
    else:
        print_parts(ranking_parts(predictor.run, predictor.as_recorded, ranking))
        print_verdict(verdict(predictor))

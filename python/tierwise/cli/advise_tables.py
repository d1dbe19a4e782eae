"""``tierwise advise --by table``: which tables and indexes to move."""

from __future__ import annotations

from pathlib import Path

from tierwise.advise import Terms
from tierwise.advise.tables import advise_tables
from tierwise.cli.options import progress_console
from tierwise.cli.output import Format, show
from tierwise.cli.progress import simulations
from tierwise.model.errors import TierwiseError
from tierwise.model.names import names_in
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Predictor
from tierwise.predict.usability import usability
from tierwise.recording import Day
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.tables import tables_document


def show_table_advice(
    recording: Path,
    devices: str,
    capacity: str | None,
    names: Path | None,
    terms: Terms,
    *,
    seeds: int,
    fresh: bool,
    format: Format,
) -> None:
    """Print which tables and indexes of a recording to move to each of some devices.

    Raises:
        TierwiseError: no device; a day, or an observation; no names of tables.
    """
    named = names_in(devices)
    if not named:
        raise TierwiseError("--by table: no device is asked about", "write for example --devices nvme-dc,gp3")
    if Day.is_at(recording):
        raise TierwiseError(f"{recording}: a day holds several recordings", "name one of its folders")
    size_bytes = None if capacity is None else parse_size_bytes(capacity, "--capacity", 1)
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh, names=names)
    with simulations(predictor, progress_console(to_stderr=True)):
        advice = advise_tables(predictor, named, terms, size_bytes)
    judged = usability(predictor)
    content = {
        "recorded": predictor.run.model_dump(mode="json"),
        "advice": advice.model_dump(mode="json"),
        "usability": judged.fields.model_dump(),
    }
    document = [*unusable_texts(judged.usable, judged.ordered), *tables_document(advice, predictor.run)]
    show(document, content, "table-advice", format)

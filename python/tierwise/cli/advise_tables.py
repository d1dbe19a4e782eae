"""``tierwise advise --by table``: which tables and indexes to move."""

from __future__ import annotations

from pathlib import Path

from tierwise.advise.tables import advise_tables
from tierwise.cli.options import progress_console
from tierwise.cli.output import Format, show
from tierwise.cli.progress import simulations
from tierwise.model.errors import TierwiseError
from tierwise.model.names import names_in
from tierwise.model.units import parse_size_bytes
from tierwise.predict import Predictor
from tierwise.predict.usability import usability
from tierwise.recording import Day, Observation, open_source
from tierwise.report.recording.decision_words import unusable_texts
from tierwise.report.recording.tables import tables_document


def show_table_advice(
    recording: Path,
    devices: str,
    capacity: str | None,
    names: Path | None,
    *,
    seeds: int,
    fresh: bool,
    format: Format,
) -> None:
    """Print which tables and indexes of a recording to move to one device.

    Raises:
        TierwiseError: not one device; a day, or an observation; no names of tables.
    """
    named = names_in(devices)
    if len(named) != 1:
        raise TierwiseError("--by table: one device is asked about", "write for example --devices nvme-dc")
    if Day.is_at(recording):
        raise TierwiseError(f"{recording}: a day holds several recordings", "name one of its folders")
    opened = open_source(recording)
    if isinstance(opened, Observation):
        raise TierwiseError(
            f"{recording}: an observation does not tell tables apart", "record with tierwise record"
        )
    size_bytes = None if capacity is None else parse_size_bytes(capacity, "--capacity", 1)
    predictor = Predictor.open(recording, seeds=seeds, fresh=fresh, names=names)
    with simulations(predictor, progress_console(to_stderr=True)):
        advice = advise_tables(predictor, opened.relations(names), named[0], size_bytes)
    judged = usability(predictor)
    found = {"advice": advice.model_dump(mode="json"), "usability": judged.fields.model_dump()}
    document = [*unusable_texts(judged.usable, judged.ordered), *tables_document(advice)]
    show(document, found, "table-advice", format)

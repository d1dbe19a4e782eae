"""``tierwise predict`` of several recordings: databases that share devices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierwise.cli.output import Format, show
from tierwise.model.errors import TierwiseError
from tierwise.model.names import names_in, one_of, resolved
from tierwise.model.placement import parse_place
from tierwise.predict import Predictor, Scenario, predict_together
from tierwise.report.recording.prediction import joint_document

_EXAMPLE = "write for example --place shop.log=nvme-dc#1,bank.log=nvme-dc#1"


def predict_joint(
    recordings: Sequence[Path],
    places: Sequence[str],
    refused: Sequence[str],
    machine: Scenario,
    *,
    seeds: int,
    fresh: bool,
    format: Format,
) -> None:
    """Print what each database does while the others use the devices that they share.

    Args:
        recordings: folders, each the name of its database.
        places: placements, each of all databases.
        refused: options that were given and cannot be asked of several recordings.
        machine: what holds for every database beside its placement.
        seeds: simulation runs for each answer.
        fresh: whether devices are in factory state.
        format: of the output.
    """
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
    answers = [predict_together(predictors, scenarios, seeds=seeds) for scenarios in asked]
    document = [block for answer in answers for block in joint_document(answer)]
    content = [prediction.model_dump(mode="json") for answer in answers for prediction in answer]
    show(document, {"predictions": content}, "joint-prediction", format)


def _names(recordings: Sequence[Path]) -> dict[str, Path]:
    """Name of each database, that of its folder."""
    names: dict[str, Path] = {}
    for path in recordings:
        name = resolved(path).name
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
    for part in names_in(text):
        database, dot, rest = part.partition("=")[0].strip().rpartition(".")
        if not dot:
            raise TierwiseError(f"--place: {part!r} names no database", _EXAMPLE)
        if database not in parts:
            raise TierwiseError(f"--place: no recording is named {database!r}", one_of(database, names))
        parts[database].append(f"{rest}={part.partition('=')[2]}")
    return {
        name: machine.changed(placement=parse_place(",".join(own)) if own else {})
        for name, own in parts.items()
    }

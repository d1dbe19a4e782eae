"""The rows behind docs/accuracy.md, as the repository keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tierwise.errors import TierwiseError
from tierwise.validate.answers import ANSWERS_FILE
from tierwise.validate.pairs import RoundData
from tierwise.validate.rows import RUNS_FILE
from tierwise.validate.runner import OWN_PROFILE, PLAN_FILE, SPEC_FILE

_FILES = (PLAN_FILE, SPEC_FILE, RUNS_FILE, ANSWERS_FILE, OWN_PROFILE)


def publish(rounds: Sequence[RoundData], folder: Path) -> list[Path]:
    """Copy what judging needs of each round, without recordings and paths, to a folder of its round's name.

    Raises:
        TierwiseError: if it cannot be written.
    """
    made = []
    for one in rounds:
        same = sum(other.started.round == one.started.round for other in rounds[: rounds.index(one)])
        into = folder / (f"{one.started.round}-{same + 1}" if same else one.started.round)
        if into.resolve() == one.folder.resolve():
            continue
        try:
            into.mkdir(parents=True, exist_ok=True)
            for name in _FILES:
                if (one.folder / name).exists():
                    text = (one.folder / name).read_text("utf-8")
                    (into / name).write_text(text.replace(str(one.folder.absolute()), into.name), "utf-8")
        except OSError as error:
            raise TierwiseError(f"{into}: {error.strerror}", "name a folder that you may write") from error
        made.append(into)
    return made

"""The fields of data/settings: a file for each engine, with settings that cost nothing and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Literal

from pydantic import Field, model_validator

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA, read_shipped_toml
from tierwise.model.placement import Role
from tierwise.model.units import parse_duration_s, parse_size_bytes
from tierwise.results.measurements import StrictModel

SETTINGS_FOLDER = DATA / "settings"


class RecordedOrDefault(StrictModel):
    """A value from the recorded settings, or else the engine's default."""

    setting: str = ""
    """Its name; empty where no setting has it."""
    usual: str
    """The engine's default."""

    def seconds(self, recorded: Mapping[str, str]) -> float:
        """The recorded duration, or the default where none is recorded."""
        try:
            return parse_duration_s(recorded[self.setting], self.setting)
        except (KeyError, TierwiseError):
            return parse_duration_s(self.usual, self.setting)

    def number(self, recorded: Mapping[str, str]) -> int:
        """The recorded number, or the default where none is recorded."""
        text = recorded.get(self.setting, "")
        return int(text if text.isascii() and text.isdigit() and len(text) < _DIGITS else self.usual)


_DIGITS = 10
Effect = Literal[
    "unflushed",
    "unflushed_written",
    "second_log",
    "without_replica",
    "commit_delay",
    "fewer_log_bytes",
    "fewer_checkpoints",
    "fewer_page_writes",
    "unknown",
]
LIMITS: Mapping[str, tuple[dict[str, bool], str]] = {
    "fewer_log_bytes": ({"least_log": True}, "no flush of the log writes more than one page"),
    "fewer_checkpoints": (
        {"least_log": True, "without_page_writes": True},
        "no flush of the log writes more than one page and no background process computes or writes pages",
    ),
    "fewer_page_writes": ({"without_page_writes": True}, "no background process computes or writes pages"),
}
"""Effects with a bound alone -> what the simulator leaves out for it, and the same in words."""


def parse_setting_amount(text: str, kind: Literal["size", "duration"], unit: str) -> float | None:
    """In bytes or seconds, where ``unit`` is that of a number without one; ``None`` for what is neither."""
    whole = f"{text}{unit}" if text.isdigit() else text
    with suppress(TierwiseError):
        return parse_size_bytes(whole, "") if kind == "size" else parse_duration_s(whole, "")
    return None


class EnlargedSetting(StrictModel):
    """A size or a duration; a setting has a greater one than the recorded."""

    kind: Literal["size", "duration"]
    unit: str = ""
    """Of a number without one."""
    usual: str
    """The engine's default."""
    most: str
    """The engine's greatest."""
    advised_times: int = Field(default=4, gt=1)
    """An advice tries so many times the recorded one; the bound does not depend on it."""

    def amount(self, text: str) -> float | None:
        """In bytes or seconds; ``None`` for what is neither."""
        return parse_setting_amount(text, self.kind, self.unit)

    def advised(self, recorded: str | None) -> str:
        """The value that an advice tries."""
        now = self.amount(recorded or self.usual) or self.amount(self.usual) or 1.0
        each = self.amount(f"1{self.unit}") or 1.0
        most = self.amount(self.most) or now
        return f"{min(now * self.advised_times, most) / each:.0f}{self.unit}"


class Setting(StrictModel):
    """One setting with one value, or with a range of whole numbers."""

    name: str
    value: str = ""
    """In small letters; empty for a range, for several values, and for one that grows."""
    values: list[str] = []
    """Several values with the same effect, in small letters; an advice tries the first."""
    grown: EnlargedSetting | None = None
    """A greater size or duration than the recorded one."""
    rival: str = ""
    """The setting that begins checkpoints too, whichever comes first."""
    range: tuple[int, int] | None = None
    """Least and greatest number."""
    advised: list[str] = []
    """Numbers of the range that an advice tries."""
    already: list[str] = []
    """Recorded values with which commits already do as little, in small letters."""
    requires: dict[str, str] = {}
    """Recorded settings without which it means something else."""
    required_shown_by: Role | None = None
    """A role whose files an engine has with ``requires`` alone: they show it where no setting does."""
    effect: Effect
    """``unflushed``: commits do not wait for the log. ``unflushed_written``: they write it, and do not wait
    for its flush. ``second_log``: each n-th group of commits syncs the binary log. ``without_replica``:
    commits do not wait for the replica. ``commit_delay``: a flush waits n microseconds for more commits.
    With a bound alone: ``fewer_log_bytes``, ``fewer_page_writes`` of background threads, and
    ``fewer_checkpoints`` for both. ``unknown``: the recording does not tell."""
    why: str = ""
    """Why there is a bound alone, or nothing; empty for what is predicted."""
    flush_period: RecordedOrDefault | None = None
    """Interval at which another thread flushes the log, for ``unflushed``."""
    siblings: RecordedOrDefault | None = None
    """Transactions that must be under way for a wait, for ``commit_delay``."""
    loses: str
    """What may be lost and when, in words."""
    loses_s: float | None = Field(default=None, ge=0)
    """Documented bound of what is lost, in seconds; ``None`` if there is none."""
    loses_periods: float | None = Field(default=None, gt=0)
    """The same as a multiple of ``flush_period``."""
    cuts: str = ""
    """Its name in the studies of power cuts; empty if none has tried it."""
    there: str
    """How to set it."""
    back: str
    """How to go back where the recorded value is not known."""
    back_to: str = ""
    """The same to the recorded value, ``{recorded}``; empty where ``back`` does it."""
    note: str = ""
    measured: str = ""
    """What measurements say of the predictions of it, as a warning; empty where they agree or are missing."""
    restart: bool = False
    """Whether the database or its program has to start again."""
    source: str
    """Address of the documentation."""

    @model_validator(mode="after")
    def _is_whole(self) -> Setting:
        periodic = self.effect.startswith("unflushed")
        forms = [form for form in (self.value, self.range, self.values, self.grown) if form]
        whole = len(forms) == 1 and periodic == (self.flush_period is not None)
        if not whole or (self.effect == "commit_delay") != (self.siblings is not None):
            raise ValueError(f"{self.name}: a value or a range; a period for unflushed commits; siblings")
        if bool(self.why) != (self.effect == "unknown" or self.effect in LIMITS):
            raise ValueError(f"{self.name}: why there is a bound alone, where there is")
        return self

    @property
    def text(self) -> str:
        """``synchronous_commit=off``, or ``commit_delay=N``."""
        return f"{self.name}={self.value or '|'.join(self.values) or 'N'}"

    @property
    def wanted(self) -> str:
        """The values that can be predicted, in words."""
        if self.range:
            return f"a whole number from {self.range[0]} to {self.range[1]}"
        if self.grown:
            return f"a {self.grown.kind} of at most {self.grown.most}, more than recorded"
        return " or ".join([self.value] if self.value else self.values)

    @property
    def limited(self) -> bool:
        """Whether the recording tells a bound alone."""
        return self.effect in LIMITS

    def tried(self, recorded: Mapping[str, str]) -> list[str]:
        """Values that an advice tries."""
        if self.grown:
            return [self.grown.advised(recorded.get(self.name))]
        return self.values[:1] or ([self.value] if self.value else self.advised)

    def has(self, value: str) -> bool:
        """Whether this is the setting with that value."""
        if self.grown:
            amount, most = self.grown.amount(value), self.grown.amount(self.grown.most)
            return amount is not None and most is not None and amount <= most
        if self.range is None:
            return value.lower() in (self.values or [self.value])
        number = int(value) if value.isascii() and value.isdigit() and len(value) < _DIGITS else -1
        return self.range[0] <= number <= self.range[1]


@lru_cache
def engine_settings(engine: str) -> tuple[str, tuple[Setting, ...]]:
    """The file of an engine, without its suffix, and its settings; none for one that is not known."""
    for file in sorted(SETTINGS_FOLDER.glob("*.toml")):
        if file.stem in engine.lower():
            return file.stem, tuple(
                Setting.model_validate(entry) for entry in read_shipped_toml(file)["setting"]
            )
    return engine, ()

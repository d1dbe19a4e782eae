"""Settings that change how commits become durable: what the recorded work would do with another value.

``data/settings`` has a file for each engine, with the source of each setting. Not there, since the model has
no figure for them: compression of the log, the distance of checkpoints, ways to call the device.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import Field, model_validator

from tierwise.model.errors import TierwiseError
from tierwise.model.input_files import DATA
from tierwise.model.names import one_of
from tierwise.model.units import parse_duration_s
from tierwise.predict.prediction import Refusal
from tierwise.recording import About
from tierwise.results.measurements import Record

SETTINGS_FOLDER = DATA / "settings"
_FIX = "leave it out, or set another"


class RecordedOrDefault(Record):
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
Effect = Literal["unflushed", "unflushed_written", "second_log", "without_replica", "commit_delay"]


class Setting(Record):
    """One setting with one value, or with a range of whole numbers."""

    name: str
    value: str = ""
    """In small letters; empty for a range."""
    range: tuple[int, int] | None = None
    """Least and greatest number."""
    advised: list[str] = []
    """Numbers of the range that an advice tries."""
    already: list[str] = []
    """Recorded values with which commits already do as little, in small letters."""
    requires: dict[str, str] = {}
    """Recorded settings without which it means something else."""
    effect: Effect
    """``unflushed``: commits do not wait for the log. ``unflushed_written``: they write it, and do not wait
    for its flush. ``second_log``: each n-th group of commits syncs the binary log. ``without_replica``:
    commits do not wait for the replica. ``commit_delay``: a flush waits n microseconds for more commits."""
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
    """How to go back."""
    note: str = ""
    restart: bool = False
    """Whether the database or its program has to start again."""
    source: str
    """Address of the documentation."""

    @model_validator(mode="after")
    def _is_whole(self) -> Setting:
        periodic = self.effect.startswith("unflushed")
        whole = bool(self.value) != bool(self.range) and periodic == (self.flush_period is not None)
        if not whole or (self.effect == "commit_delay") != (self.siblings is not None):
            raise ValueError(f"{self.name}: a value or a range; a period for unflushed commits; siblings")
        return self

    @property
    def text(self) -> str:
        """``synchronous_commit=off``, or ``commit_delay=N``."""
        return f"{self.name}={self.value or 'N'}"

    def has(self, value: str) -> bool:
        """Whether this is the setting with that value."""
        if self.range is None:
            return value == self.value
        number = int(value) if value.isascii() and value.isdigit() and len(value) < _DIGITS else -1
        return self.range[0] <= number <= self.range[1]


class ChosenSetting(Record):
    """A setting with its value, for one recording."""

    engine: str
    """Name of its file of settings."""
    setting: Setting
    value: str
    recorded: dict[str, str]
    """The recorded settings."""

    @property
    def text(self) -> str:
        """``commit_delay=1000``."""
        return f"{self.setting.name}={self.value}"

    @property
    def loses(self) -> str:
        """What may be lost, in words."""
        return self.setting.loses.replace("{value}", self.value)

    @property
    def there(self) -> str:
        """How to set it."""
        return self.setting.there.replace("{value}", self.value)

    @property
    def loses_s(self) -> float | None:
        """Documented bound of what is lost, in seconds; ``None`` if there is none."""
        setting = self.setting
        if setting.loses_periods is None or setting.flush_period is None:
            return setting.loses_s
        return round(setting.loses_periods * setting.flush_period.seconds(self.recorded), 6)

    @property
    def refusal(self) -> Refusal | None:
        """Why the recording cannot answer it, if it cannot."""
        setting, now = self.setting, self.recorded.get(self.setting.name)
        if now is not None and now.lower() in {self.value, *setting.already}:
            message = f"{self.text}: {setting.name} is {now} in the recording, so that it changes nothing"
            return Refusal(message=message, fix=_FIX)
        for name, value in setting.requires.items():
            if self.recorded.get(name, "").lower() != value:
                message = (
                    f"{self.text} means this with {name}={value} alone, which the recording does not have"
                )
                return Refusal(message=message, fix=_FIX)
        return None

    @property
    def warnings(self) -> list[str]:
        """What may be lost, and what is assumed of the recording."""
        bound = self.loses_s
        most = f" (here {bound:g} s)" if bound and self.setting.loses_periods else ""
        texts = [f"{self.text}: {self.loses}{most}"]
        if self.setting.name not in self.recorded:
            texts.append(f"the recording does not tell {self.setting.name}: what it shows is compared")
        return texts

    @property
    def change(self) -> dict[str, Any]:
        """What the simulator is asked: fields of ``CommitSettings`` of the crate ``network``."""
        setting = self.setting
        match setting.effect:
            case "second_log":
                return {"second_log_every": int(self.value)}
            case "without_replica":
                return {"without_replica": True}
            case "commit_delay":
                siblings = setting.siblings.number(self.recorded) if setting.siblings else 0
                return {"commit_delay": {"time_us": int(self.value), "siblings": siblings}}
        period_s = setting.flush_period.seconds(self.recorded) if setting.flush_period else 1.0
        period_us = min(max(round(period_s * 1e6), 1), _LONGEST_US)
        return {"unflushed": {"flush_period_us": period_us, "writes": setting.effect == "unflushed_written"}}


_LONGEST_US = 2**32 - 1


@lru_cache
def settings_of(engine: str) -> tuple[str, tuple[Setting, ...]]:
    """The file of an engine, without its suffix, and its settings; none for one that is not known."""
    for file in sorted(SETTINGS_FOLDER.glob("*.toml")):
        if file.stem in engine.lower():
            entries = tomllib.loads((SETTINGS_FOLDER / file.name).read_text("utf-8"))["setting"]
            return file.stem, tuple(Setting.model_validate(entry) for entry in entries)
    return engine, ()


def chosen(texts: Sequence[str], about: About) -> list[ChosenSetting]:
    """The settings named by texts such as ``synchronous_commit=off``, of the recorded engine.

    Raises:
        TierwiseError: one that is not NAME=VALUE, that is not known of the engine, or that is named twice.
    """
    by_name: dict[str, ChosenSetting] = {}
    for text in texts:
        setting = _chosen(text, about)
        if setting.setting.name in by_name:
            raise TierwiseError(f"{setting.setting.name} is set twice", "give it one value")
        by_name[setting.setting.name] = setting
    return list(by_name.values())


def _chosen(text: str, about: About) -> ChosenSetting:
    engine, known = settings_of(about.engine)
    if not known:
        raise TierwiseError(f"no setting of {about.engine} can be predicted", "leave out the setting")
    name, equals, value = (part.strip().lower() for part in text.partition("="))
    names = list(dict.fromkeys(setting.text for setting in known))
    if not equals or not name or not value:
        raise TierwiseError(f"{text!r} is not NAME=VALUE", f"use one of {', '.join(names)}")
    setting = next(
        (candidate for candidate in known if candidate.name == name and candidate.has(value)), None
    )
    if setting is None:
        raise TierwiseError(
            f"the setting {name}={value} of {about.engine} cannot be predicted",
            one_of(f"{name}={value}", names),
        )
    return ChosenSetting(engine=engine, setting=setting, value=value, recorded=about.settings)


def advised(about: About) -> list[ChosenSetting]:
    """Those that an advice tries: each that the recorded settings do not rule out."""
    texts = [
        f"{setting.name}={value}"
        for setting in settings_of(about.engine)[1]
        for value in ([setting.value] if setting.value else setting.advised)
    ]
    every = [_chosen(text, about) for text in texts]
    return [setting for setting in every if setting.refusal is None]


def refusal(texts: Sequence[str], about: About) -> Refusal | None:
    """Why the recording cannot answer some settings, if it cannot.

    Raises:
        TierwiseError: as :func:`chosen`.
    """
    return next((why for setting in chosen(texts, about) if (why := setting.refusal)), None)


def warnings(texts: Sequence[str], about: About) -> list[str]:
    """What may be lost with some settings, and what is assumed, as sentences."""
    return [warning for setting in chosen(texts, about) for warning in setting.warnings]


def changes(texts: Sequence[str], about: About) -> dict[str, Any]:
    """Some settings in the simulator's form."""
    return {name: value for setting in chosen(texts, about) for name, value in setting.change.items()}

"""Settings that cost nothing: what the recorded work would do with another value.

``data/settings`` has a file for each engine, with the source of each setting. Those that change how commits
become durable are predicted. Of those that leave bytes of the log or writes of pages out, the recording
tells a bound alone: the simulator leaves all of them out, and the high end of its answer is the bound. Of
the rest it tells nothing, and the answer says why.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from tierwise.model.errors import TierwiseError
from tierwise.model.names import unknown_name_fix
from tierwise.model.numbers import percent_text, ratio_text, size_text
from tierwise.model.placement import Role
from tierwise.model.units import significant_text
from tierwise.predict.prediction import Bound, Prediction, Refusal
from tierwise.predict.setting_data import (
    LIMITS,
    SETTINGS_FOLDER,
    Setting,
    engine_settings,
    parse_setting_amount,
)
from tierwise.predict.simulator_output import SimulationOutcome
from tierwise.recording import RecordingMetadata
from tierwise.results.measurements import StrictModel

_FIX = "leave it out, or set another"
_WORD = re.compile(r"[A-Za-z0-9_.]+")
"""Of a recorded value that goes into a statement to type: nothing else of a recording does."""
_MEASURE = "set it, record again, and compare the two recordings"
_PAGES = {Role.DATA, Role.INDEX, Role.SELECTED, Role.UNDO, Role.SYSTEM, Role.DOUBLEWRITE}
"""Roles whose pages checkpoints write."""
_LOGS = {Role.LOG, Role.ARCHIVE}
"""Roles whose files commits may wait for, with MariaDB's binary log."""


class ChosenSetting(StrictModel):
    """A setting with its value, for one recording."""

    engine: str
    """Name of its file of settings."""
    setting: Setting
    value: str
    recorded: dict[str, str]
    """The recorded settings."""
    beside: dict[str, str] = {}
    """Other settings that are changed too."""
    counters: dict[str, int] = {}
    """Of the recording; empty if they were not read."""
    counted_s: float = 0.0
    """Time that they were counted in."""

    @property
    def text(self) -> str:
        """``commit_delay=1000``."""
        return f"{self.setting.name}={self.value}"

    @property
    def loses(self) -> str:
        """What may be lost, in words."""
        return self.setting.loses.replace("{value}", self.value).replace("{replay}", self._replay)

    @property
    def there(self) -> str:
        """How to set it."""
        return self.setting.there.replace("{value}", self.value)

    @property
    def back(self) -> str:
        """How to go back, to the recorded value where it is known and a plain word, such as ``1GB``."""
        if self.setting.back_to and self.now is not None and _WORD.fullmatch(self.now):
            return self.setting.back_to.replace("{recorded}", self.now)
        return self.setting.back

    @property
    def loses_s(self) -> float | None:
        """Documented bound of what is lost, in seconds; ``None`` if there is none."""
        setting = self.setting
        if setting.loses_periods is None or setting.flush_period is None:
            return setting.loses_s
        return round(setting.loses_periods * setting.flush_period.seconds(self.recorded), 6)

    @property
    def now(self) -> str | None:
        """The recorded value; ``None`` if the recording does not tell it."""
        return self.recorded.get(self.setting.name)

    @property
    def is_set(self) -> bool:
        """Whether the recording has it, or a value with which commits already do as little."""
        return self.now is not None and self.now.lower() in {self.value.lower(), *self.setting.already}

    @property
    def refusal(self) -> Refusal | None:
        """Why the recording cannot answer it, if it cannot."""
        setting, now = self.setting, self.now
        if setting.effect == "unknown":
            message = f"what {setting.name} does is not known from a recording: {setting.why}"
            return Refusal(message=message, fix=_MEASURE)
        if setting.effect == "fewer_log_bytes" and now is not None and now.lower() in setting.values:
            message = f"{self.text}: {setting.name} is {now} in the recording, and methods are not compared"
            return Refusal(message=message, fix=_FIX)
        if (so := self._changes_nothing(now)) is not None:
            return Refusal(message=f"{self.text}: {so}, so that it changes nothing", fix=_FIX)
        if self.is_set:
            message = f"{self.text}: {setting.name} is {now} in the recording, so that it changes nothing"
            return Refusal(message=message, fix=_FIX)
        for name, value in setting.requires.items():
            if self.recorded.get(name, "").lower() != value:
                message = (
                    f"{self.text} means this with {name}={value} alone, which the recording does not have"
                )
                return Refusal(message=message, fix=_FIX)
        return None

    def _changes_nothing(self, now: str | None) -> str | None:
        """Why it changes no checkpoint and no image that was recorded; ``None`` where it may."""
        setting, grown = self.setting, self.setting.grown
        if setting.effect == "fewer_log_bytes" and self.counters.get(IMAGES) == 0:
            return "no full-page image was logged in the recording"
        if grown is None or now is None:
            return None
        before, after = grown.amount(now), grown.amount(self.value)
        if before is not None and after is not None and after <= before:
            return f"{setting.name} is {now} in the recording, no less"
        rival, rate = self._of(setting.rival), self._log_bytes_per_s
        fills_s = self._fills_s(rate)
        timeout_s = parse_setting_amount(self._of("checkpoint_timeout") or "", "duration", "s")
        if rival is None or rate is None or fills_s is None or timeout_s is None:
            return None
        if timeout_s > fills_s if grown.kind == "size" else fills_s > timeout_s:
            return None
        log = f"{significant_text(rate / 1e6)} MB of log a second"
        return f"with the recorded {log}, {setting.rival} ({rival}) begins checkpoints first"

    def _of(self, name: str) -> str | None:
        """The value of a setting: of another one as it is changed too, else as recorded."""
        return self.beside.get(name) or self.recorded.get(name)

    def _bytes_of(self, name: str) -> float | None:
        return parse_setting_amount(self._of(name) or "", "size", "MB")

    @property
    def _log_bytes_per_s(self) -> float | None:
        counted = self.counters.get("log_bytes")
        return None if counted is None or self.counted_s <= 0 else counted / self.counted_s

    def _fills_s(self, bytes_per_s: float | None) -> float | None:
        """Seconds until the log begins a checkpoint: ``CalculateCheckpointSegments``, xlog.c."""
        most_bytes = self._bytes_of("max_wal_size")
        if most_bytes is None or bytes_per_s is None:
            return None
        return most_bytes / (1 + self._target) / bytes_per_s if bytes_per_s > 0 else float("inf")

    @property
    def _target(self) -> float:
        """Part of the time to the next checkpoint in which one writes its pages."""
        with suppress(KeyError, ValueError):
            return min(max(float(self.recorded["checkpoint_completion_target"]), 0.0), 1.0)
        return 0.9

    @property
    def _replay(self) -> str:
        """The log that a crash may have to replay: since the last checkpoint that is complete."""
        grown = self.setting.grown
        if grown is None:
            return ""
        amount = grown.amount(self.value) or 0.0
        known: list[float | None] = [amount]
        if grown.kind == "duration":
            rate = self._log_bytes_per_s
            by_rate = None if rate is None else amount * (1 + self._target) * rate
            known = [by_rate, self._bytes_of("max_wal_size")]
        least = min((size_bytes for size_bytes in known if size_bytes is not None), default=None)
        return "more log than now is" if least is None else f"up to about {size_text(least)} of log are"

    @property
    def image_share(self) -> float | None:
        """Most of the log's bytes that full-page images had; ``None`` if they were not counted."""
        images, logged = self.counters.get(IMAGES), self.counters.get("log_bytes", 0)
        if images is None or logged <= 0:
            return None
        page = self.recorded.get("block_size", "")
        return min(images * (int(page) if page.isdecimal() else _PAGE_BYTES) / logged, 1.0)

    @property
    def warnings(self) -> list[str]:
        """What may be lost, and what is assumed of the recording."""
        bound = self.loses_s
        most = f" (here {bound:g} s)" if bound and self.setting.loses_periods else ""
        texts = [f"{self.text}: {self.loses}{most}"]
        if self.setting.limited and self.image_share is not None:
            texts.append(f"full-page images are at most {percent_text(self.image_share)} of the log's bytes")
        if self.setting.name not in self.recorded:
            texts.append(f"the recording does not tell {self.setting.name}: what it shows is compared")
        if self.setting.effect.startswith("unflushed"):
            texts.append(_CPU_OF_WAIT)
        if self.setting.measured:
            texts.append(self.setting.measured)
        return texts

    @property
    def change(self) -> dict[str, Any]:
        """What the simulator is asked: fields of ``CommitSettings`` of the crate ``network``."""
        setting = self.setting
        if setting.limited:
            return dict(LIMITS[setting.effect][0])
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


_CPU_OF_WAIT = (
    "the recording does not tell how much processor time goes with the wait for a flush: the interval holds "
    "that none of it does, and that nearly all does"
)
_LONGEST_US = 2**32 - 1
IMAGES = "full_page_images"
"""Counter of PostgreSQL 14 and later."""
_PAGE_BYTES = 8192
_LEAST_WRITES = 0.001
"""Writes of pages a request below which they count as none."""


def with_shown_settings(about: RecordingMetadata, roles: Collection[Role]) -> RecordingMetadata:
    """Metadata with the settings that recorded files show, where they were not recorded themselves.

    Args:
        roles: those with recorded files.
    """
    _, known = engine_settings(about.engine)
    shown = [setting.requires for setting in known if setting.required_shown_by in roles]
    return about.model_copy(update={"settings": dict(ChainMap(about.settings, *shown))})


def choose_settings(texts: Sequence[str], about: RecordingMetadata) -> list[ChosenSetting]:
    """The settings named by texts such as ``synchronous_commit=off``, of the recorded engine."""
    by_name: dict[str, ChosenSetting] = {}
    for text in texts:
        setting = _chosen(text, about)
        if setting.setting.name in by_name:
            raise TierwiseError(f"{setting.setting.name} is set twice", "give it one value")
        by_name[setting.setting.name] = setting
    values = {name: setting.value for name, setting in by_name.items()}
    return [
        setting.changed(beside={other: values[other] for other in values if other != name})
        for name, setting in by_name.items()
    ]


def _chosen(text: str, about: RecordingMetadata) -> ChosenSetting:
    engine, known = engine_settings(about.engine)
    if not known:
        raise TierwiseError(f"no setting of {about.engine} can be predicted", "leave out the setting")
    name, equals, value = (part.strip() for part in text.partition("="))
    name = name.lower()
    names = list(dict.fromkeys(setting.text for setting in known))
    if not equals or not name or not value:
        raise TierwiseError(f"{text!r} is not NAME=VALUE", f"use one of {', '.join(names)}")
    setting = next(
        (candidate for candidate in known if candidate.name == name and candidate.has(value)), None
    )
    if setting is None:
        wanted = [candidate.wanted for candidate in known if candidate.name == name]
        raise TierwiseError(
            f"the setting {name}={value} of {about.engine} cannot be predicted",
            f"give {name} {' or '.join(wanted)}" if wanted else unknown_name_fix(f"{name}={value}", names),
        )
    return ChosenSetting(
        engine=engine,
        setting=setting,
        value=value if setting.grown else value.lower(),
        recorded=about.settings,
        counters=about.counters,
        counted_s=about.duration_s,
    )


def _tried(about: RecordingMetadata) -> list[ChosenSetting]:
    """Each that an advice may speak of."""
    return [
        _chosen(f"{setting.name}={value}", about)
        for setting in engine_settings(about.engine)[1]
        for value in setting.tried(about.settings)
    ]


def advised_settings(about: RecordingMetadata) -> list[ChosenSetting]:
    """Those that an advice predicts: each that the recorded settings do not rule out."""
    return [setting for setting in _tried(about) if not setting.setting.why and setting.refusal is None]


def unpredicted_settings(about: RecordingMetadata) -> list[ChosenSetting]:
    """Those of which an advice tells a bound alone, or why it tells nothing."""
    return [setting for setting in _tried(about) if setting.setting.why]


def ends_log_flushes(texts: Sequence[str], about: RecordingMetadata) -> bool:
    """Whether commits stop waiting for flushes of the log with some settings."""
    return any(setting.setting.effect.startswith("unflushed") for setting in choose_settings(texts, about))


def roles_of_ending_waits(texts: Sequence[str]) -> set[Role]:
    """Roles whose waits some settings may end, for a bound without a model."""
    names = {text.partition("=")[0].strip().lower() for text in texts}
    return (_LOGS if texts else set()) | (_PAGES if names & _writing_less() else set())


@lru_cache
def _writing_less() -> frozenset[str]:
    """Names of settings, of any engine, with which fewer pages are written."""
    every = [setting for file in SETTINGS_FOLDER.glob("*.toml") for setting in engine_settings(file.stem)[1]]
    return frozenset(
        setting.name for setting in every if "without_page_writes" in LIMITS.get(setting.effect, ({},))[0]
    )


def upper_bound_answer(
    answer: Prediction, about: RecordingMetadata, recorded: SimulationOutcome
) -> Prediction:
    """An answer as it is; or its upper end alone, where all that a setting may save was left out.

    There is no bound where the recording has nothing that the setting could save.

    Args:
        recorded: the recorded run as it is reproduced.
    """
    limited = [
        setting for setting in choose_settings(answer.scenario.settings, about) if setting.setting.limited
    ]
    if not limited or answer.rate_per_s is None or answer.speedup is None:
        return answer
    named = ", ".join(setting.text for setting in limited)
    if roles_of_ending_waits(answer.scenario.settings) >= _PAGES and not _writes_pages(recorded):
        message = f"what {named} gains is not known: no write of a page by a checkpoint was recorded"
        return _without_figure(
            answer, Refusal(message=message, fix="record until a checkpoint has written pages"), None
        )
    left_out = " and ".join(dict.fromkeys(LIMITS[setting.setting.effect][1] for setting in limited))
    whys = dict.fromkeys(setting.setting.why for setting in limited)
    because = (
        f"{ratio_text(answer.speedup.value)} times in a simulation in which {left_out}, with the sessions' "
        "processor time as recorded; the rest is the error of the model"
    )
    alone = Refusal(message=f"The recording tells a bound alone, since {'; '.join(whys)}", fix=_MEASURE)
    bound = Bound(rate_per_s=answer.rate_per_s.high, speedup=answer.speedup.high, because=because)
    return _without_figure(answer, alone, bound)


def _without_figure(answer: Prediction, refused: Refusal, bound: Bound | None) -> Prediction:
    return Prediction(
        scenario=answer.scenario,
        refused=refused,
        bound=bound,
        once=answer.once,
        unit=answer.unit,
        seeds=answer.seeds,
        warnings=answer.warnings,
    )


def _writes_pages(recorded: SimulationOutcome) -> bool:
    """Whether the reproduced run writes pages of tables."""
    written = sum(role_io.writes for role_io in recorded.io if role_io.role in _PAGES)
    return written > _LEAST_WRITES * max(recorded.turns, 1)


def settings_refusal(texts: Sequence[str], about: RecordingMetadata) -> Refusal | None:
    """Why the recording cannot answer some settings, if it cannot."""
    return next((why for setting in choose_settings(texts, about) if (why := setting.refusal)), None)


def settings_warnings(texts: Sequence[str], about: RecordingMetadata) -> list[str]:
    """What may be lost with some settings, and what is assumed, as sentences."""
    return [warning for setting in choose_settings(texts, about) for warning in setting.warnings]


def settings_for_simulator(texts: Sequence[str], about: RecordingMetadata) -> dict[str, Any]:
    """Some settings in the simulator's form."""
    return {
        name: value for setting in choose_settings(texts, about) for name, value in setting.change.items()
    }

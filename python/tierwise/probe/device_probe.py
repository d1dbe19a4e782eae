"""The probe: measures a real device, checks its flush, and fits a profile."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from tierwise import _core
from tierwise.device_models import profiles
from tierwise.host import cpu, doctor, ledger
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.output_files import rename_proof_path
from tierwise.probe import flush_check as trouble
from tierwise.probe.disk_fit import DiskFit, fit_disk
from tierwise.probe.flash_fit import LEAST_PER_S, FlashFit, fit_flash, fit_to_measured_rates, modelled_per_s
from tierwise.probe.flush_check import check_flush
from tierwise.probe.probe_samples import CRYSTALDISKMARK, median_times, sample_flush, sample_patterns
from tierwise.probe.probe_target import (
    ProbeTarget,
    capacity_bytes,
    choose_probe_file_bytes,
    inspect_probe_target,
)
from tierwise.probe.profile_text import (
    MeasurementOrigin,
    disk_profile_text,
    flash_profile_text,
    memory_profile_text,
    profile_with_doubts,
)
from tierwise.results.measurements import FlushCheck, FlushTimes, PatternResult, StrictModel

DEFAULT_SIZE_BYTES = 1 << 30
"""CrystalDiskMark's file size."""
SHORTEST_S = 5.0
_SHORTEST_REPEAT_S = 1e-3
"""Time of a few requests of a solid-state disk."""
FILE = "probe"
SWEEP = tuple(
    f"{kind}-{size}" + (f"-qd{depth}" if depth > 1 else "")
    for kind in ("seqread", "seqwrite", "randread", "randwrite", "mixed70")
    for size in ("4k", "16k", "64k", "256k", "1m")
    for depth in (1, 4, 16, 64)
    if not (kind == "mixed70" and size != "4k")
)
"""Sizes and depths in addition to CrystalDiskMark's."""

_SHARES = {"patterns": 0.5, "flush": 0.07, "fit": 0.35, "checks": 0.08}


@dataclass(frozen=True)
class ProbeOptions:
    """Options of a probe.

    Attributes:
        seconds: of measuring; filling the file takes additional time.
        size_bytes: of the file; by default 1 GiB or the available space. A device is probed whole.
        repeats: of each pattern, interleaved.
        extra: patterns besides CrystalDiskMark's.
        destroy: consent to overwrite a block device.
        fill: write everything first; only memory and previously written disks can do without.
        fit: whether to take the measurements that only a profile needs.
        engine: ``io_uring`` or ``threads``; ``None`` for the best available.
        seed: seed of the random places and order.
    """

    seconds: float = 60.0
    size_bytes: int | None = None
    repeats: int = 5
    extra: tuple[str, ...] = ()
    destroy: bool = False
    fill: bool = True
    fit: bool = True
    engine: str | None = None
    seed: int = 0


class ProbeReport(StrictModel):
    """Results of a probe. ``patterns`` has the repeats of each pattern, in the order taken."""

    path: str
    device: str
    file_system: str | None
    engine: str
    size_bytes: int
    host: str
    kernel: str
    measured_at: datetime
    patterns: dict[str, list[PatternResult]]
    flush: FlushCheck
    warnings: list[str]
    profile: str | None
    """TOML text of the fitted profile."""


def probe_device(
    path: Path, options: ProbeOptions, progress: ProgressCallback = lambda _: None
) -> ProbeReport:
    """Measure the device under a path and fit a profile to it.

    Args:
        path: a directory for a temporary file; or, with consent, a block device.
        progress: called at the start of each phase.
    """
    _require_sensible(options)
    place = inspect_probe_target(path)
    random = Random(options.seed)
    with open_probe_target(place, options, progress) as (target, file):
        names = _patterns(options)
        patterns_s = _SHARES["patterns"] * options.seconds
        patterns = sample_patterns(target, names, options.repeats, patterns_s, random, progress)
        progress("flush")
        flush = check_flush(median_flush_times(target, options, random), place)
        warnings = trouble.cache_warnings(place, file, target.size_bytes, flush)
        about = doctor.describe_machine()
        now = datetime.now(UTC)
        size_bytes = max(capacity_bytes(place), target.size_bytes)
        day = now.strftime("%Y-%m-%d")
        origin = MeasurementOrigin(
            day, about.host, about.kernel, str(path), place.label, options.repeats, size_bytes, place.memory
        )
        progress("fit")
        profile = None
        if options.fit:
            profile, apart = fit_profile(target, patterns, flush, origin, options, random)
            warnings += apart
        return ProbeReport(
            path=str(path),
            device=place.label,
            file_system=place.file_system,
            engine=target.engine,
            size_bytes=target.size_bytes,
            host=about.host,
            kernel=about.kernel,
            measured_at=now,
            patterns=patterns,
            flush=flush,
            warnings=warnings,
            profile=profile,
        )


@contextmanager
def open_probe_target(
    place: ProbeTarget, options: ProbeOptions, progress: ProgressCallback
) -> Iterator[tuple[_core.ProbeTarget, Path | None]]:
    """Open the target: a filled temporary file, or the device itself."""
    with ExitStack() as undo:
        undo.enter_context(cpu.raised_priority())
        file = None
        if place.is_device:
            target = _device(place, options)
        else:
            if options.destroy or not options.fill:
                raise TierwiseError(
                    f"--destroy and --no-fill are of a block device, and {place.path} is a directory",
                    "leave them out, or name the device",
                )
            size_bytes = choose_probe_file_bytes(place, options.size_bytes, DEFAULT_SIZE_BYTES)
            # The directory may be a database's, whose account could move what is made in it.
            folder = undo.enter_context(
                ledger.make_directory("tierwise-probe", parent=place.path, in_foreign=True)
            )
            file = undo.enter_context(rename_proof_path(folder)) / FILE
            try:
                target = _core.ProbeTarget.create(str(file), size_bytes, options.engine)
            except TierwiseError as error:
                message = error.message.replace(str(file), str(folder / FILE))
                raise type(error)(message, error.fix) from None
        undo.callback(target.close)
        if options.fill or file is not None:
            progress(f"filling {target.size_bytes >> 20} MiB")
            target.fill()
        yield target, file


def median_flush_times(target: _core.ProbeTarget, options: ProbeOptions, random: Random) -> FlushTimes:
    """Medians over the repeats."""
    each_s = _SHARES["flush"] * options.seconds / options.repeats
    return median_times([sample_flush(target, each_s, random) for _ in range(options.repeats)])


def fit_profile(
    target: _core.ProbeTarget,
    patterns: dict[str, list[PatternResult]],
    flush: FlushCheck,
    origin: MeasurementOrigin,
    options: ProbeOptions,
    random: Random,
) -> tuple[str, list[str]]:
    """TOML text of a profile of the kind that matches the device, and what it contradicts."""
    seconds = _SHARES["fit"] * options.seconds
    disk_fit = flush.device_class == "disk" and fit_disk(target, seconds, options.repeats, random)
    checked = _CHECKED if disk_fit else _CHECKED + _CHECKED_IF_FAST
    checks = [pattern for pattern in checked if pattern not in patterns]
    checked_s = _SHARES["checks"] * options.seconds
    patterns = patterns | sample_patterns(target, checks, options.repeats, checked_s, random, lambda _: None)
    no_disk = []
    if disk_fit:
        disk = _with_queue(disk_fit, origin, patterns)
        # A limit of I/Os may delay reads as long as a disk takes for them.
        if not profile_contradictions(disk, patterns, most_apart=_NO_DISK):
            return profile_with_doubts(disk, profile_contradictions(disk, patterns))
        no_disk.append(_FITTED_AS_FLASH)
    fit = fit_flash(target, patterns, seconds, options.repeats, random)
    if flush.device_class == "memory":
        memory = memory_profile_text(fit, origin, lasting=flush.verdict != "cannot have reached the medium")
        # A loop device answers as fast, and does no more requests at depth than its threads.
        apart = profile_contradictions(memory, patterns, fit.read_cpu_us, fit.write_cpu_us)
        if not any(" of rnd4k-q32t1-" in text for text in apart):
            return profile_with_doubts(memory, apart)
    write_back = flush.write_cache == "write back"

    def text(fit: FlashFit) -> str:
        return flash_profile_text(fit, origin, not write_back or fit.protected, write_back)

    profile = text(fit_to_measured_rates(fit, text))
    apart = profile_contradictions(profile, patterns, fit.read_cpu_us, fit.write_cpu_us)
    return profile_with_doubts(profile, [*no_disk, *apart])


_FITTED_AS_FLASH = (
    "random reads take as long as a disk's, but no disk does the measured rates (an array, a disk behind a "
    "cache or a volume with a limit), so the profile is of flash, and what outlasts a cache is slower"
)


def _with_queue(
    fit: DiskFit, origin: MeasurementOrigin, patterns: Mapping[str, Sequence[PatternResult]]
) -> str:
    """The disk's profile; with a shorter queue if it does fewer random reads at depth 32."""
    taken = patterns[_QUEUED]

    def apart(text: str) -> float:
        return abs(math.log(_modelled_per_s(text, _QUEUED, taken) / _rate_per_s(taken)))

    texts = [disk_profile_text(fit, origin, depth) for depth in _QUEUE_DEPTHS]
    return texts[0] if apart(texts[0]) < math.log(_MOST_APART) else min(texts, key=apart)


_QUEUED = "rnd4k-q32t1-read"
_QUEUE_DEPTHS = (32, 16, 8, 4, 2, 1)
_CHECKED = ("log-append-8k", "log-append-64k", "mixed70-4k-qd16")
"""Measured only to see what a profile makes of them: what a log does, and reads among writes."""
_CHECKED_IF_FAST = ("mixed70-4k-qd64", "seqread-64k")
"""Likewise; a disk ends too few of so many in the time of a repeat to tell a rate."""
_MOST_APART = 1.25
"""Ratio of a profile's rate to the measured one that is worth a warning."""
_NO_DISK = 2.0
"""Ratio above which the device is no disk: fits of modelled disks came within 1.2."""


def profile_contradictions(
    profile: str,
    patterns: Mapping[str, Sequence[PatternResult]],
    read_cpu_us: float = 0.0,
    write_cpu_us: float = 0.0,
    *,
    most_apart: float = _MOST_APART,
) -> list[str]:
    """One line for each measured pattern that the fitted profile serves at another rate.

    Of a disk with a write cache, writes without flushes are left out: it takes in as many as it has room for.

    Args:
        profile: TOML text.
        patterns: the repeats of each.
        read_cpu_us: processor time of the host for a read, which is no part of the profile.
        write_cpu_us: likewise, for a write.
        most_apart: ratio of the rates up to which they agree.
    """
    model = profiles.parse_profile(profile, Path("probed.toml"))
    cached = model.kind == "hdd" and model.write_cache
    texts = []
    for name, results in patterns.items():
        if cached and ("write" in name or "mixed" in name):
            continue
        measured = _rate_per_s(results)
        modelled = _modelled_per_s(profile, name, results)
        # A log's append is a write and a flush.
        cpu_us = read_cpu_us if "read" in name else write_cpu_us * (2 if "append" in name else 1)
        step_us = 1e6 / modelled
        modelled = 1e6 / (max(step_us, cpu_us) if _DEEP.search(name) else step_us + cpu_us)
        if not 1 / most_apart <= modelled / measured <= most_apart:
            texts.append(
                f"the profile does {modelled:,.0f} requests a second of {name}, and {measured:,.0f} were "
                "measured: predictions of such requests would be as far off; if the load on this machine "
                "varied, probe again, for longer"
            )
    return texts


_DEEP = re.compile(r"-q(?:d\d|(?!1t1)\d+t)")
"""Of a pattern with several requests outstanding."""


_SHORTEST_MODELLED_S = 1.0


def _modelled_per_s(profile: str, pattern: str, results: Sequence[PatternResult]) -> float:
    """In the time of a repeat: requests that are not done by its end do not count."""
    most_s = max(statistics.median([result.elapsed_s for result in results]), _SHORTEST_MODELLED_S)
    return max(modelled_per_s(profile, pattern, _rate_per_s(results), most_s), LEAST_PER_S)


def _rate_per_s(results: Sequence[PatternResult]) -> float:
    return max(statistics.median([result.rate_per_s for result in results]), LEAST_PER_S)


def median_rate_repeat(results: Sequence[PatternResult]) -> PatternResult:
    """The repeat of median rate, whose latencies represent all repeats."""
    rate = statistics.median_low([result.rate_per_s for result in results])
    return next(result for result in results if result.rate_per_s == rate)


def _device(place: ProbeTarget, options: ProbeOptions) -> _core.ProbeTarget:
    if not options.destroy:
        raise TierwiseError(
            f"{place.path} is a block device, and probing it destroys what is on it",
            "give --destroy if that is meant, or name a directory on its file system",
        )
    if options.size_bytes is not None:
        raise TierwiseError("--size: a device is probed whole", "leave --size out")
    return _core.ProbeTarget.open_device(str(place.path), options.engine)


def _patterns(options: ProbeOptions) -> list[str]:
    """Each once: an option may name one of another option."""
    return list(dict.fromkeys([*CRYSTALDISKMARK.values(), *options.extra]))


def _require_sensible(options: ProbeOptions) -> None:
    if options.engine not in (None, "io_uring", "threads"):
        raise TierwiseError(f"--engine: {options.engine!r} is not known", "use io_uring or threads")
    if options.seconds < SHORTEST_S:
        raise TierwiseError(
            f"--duration: {options.seconds:g} s is too short to tell anything",
            f"give {SHORTEST_S:g}s or more",
        )
    most = int(_SHARES["patterns"] * options.seconds / len(_patterns(options)) / _SHORTEST_REPEAT_S)
    if options.repeats > most:
        raise TierwiseError(
            f"--repeats: {options.repeats} repeats of {len(_patterns(options))} patterns leave less than "
            f"{_SHORTEST_REPEAT_S * 1e3:g} ms for each in {options.seconds:g} s",
            f"give {max(most, 1)} or fewer, or a longer --duration",
        )

"""What follows from a scenario: its machine's cores, memory and limits for volumes, and growing data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tierwise.device_models.instances import CloudInstance
from tierwise.model.errors import TierwiseError
from tierwise.model.names import join_words
from tierwise.model.numbers import counted_noun
from tierwise.model.placement import EVERYTHING, Role
from tierwise.model.units import GIB, significant_text
from tierwise.predict.named_devices import RECORDED, resolve_device
from tierwise.predict.prediction import RecordedRun
from tierwise.predict.scenario import Scenario
from tierwise.predict.simulator_output import WorkSummary
from tierwise.recording import RecordingMetadata

_SAME = 0.1
"""Part of a machine's memory that firmware and kernel may keep: up to it, the recorded size is the same."""
_VOLUME_MODELS = ("Amazon Elastic Block Store", "nvme_card-pd", "PersistentDisk", "MSFT NVMe Accelerator")
"""Models that network volumes of AWS, Google Cloud and Azure report to the kernel (their documentation of
NVMe and SCSI devices, from memory)."""


def scenario_on_instance(scenario: Scenario, work: WorkSummary) -> Scenario:
    """The scenario with the cores and the memory of its instance, unless it names its own.

    The recorded memory is kept where the recording does not tell what another size changes. What is named as
    it was recorded is no change.
    """
    scenario = _without_recorded(scenario, work)
    instance = scenario.instance
    if instance is None or scenario.set_by_instance:
        return scenario
    changes: dict[str, Any] = {}
    if scenario.cores is None and instance.vcpus not in (None, work.cores):
        changes["cores"] = instance.vcpus
    if scenario.memory_bytes is None and _other_memory(instance, work) and work.can_change_memory:
        changes["memory_bytes"] = round((instance.memory_gib or 0) * GIB)
    return scenario.changed(**changes, set_by_instance=sorted(changes))


def _without_recorded(scenario: Scenario, work: WorkSummary) -> Scenario:
    """The scenario without cores, memory, buffer and clients that are as recorded.

    Clients tell what ``growth`` keeps, and end recorded arrivals; memory stays as named while data grow.
    Named cores and memory replace those of an instance.
    """
    recorded = {"buffer_bytes": work.page_cache.engine_bytes}
    if scenario.instance is None:
        recorded |= {"cores": work.cores}
    if scenario.growth is None:
        recorded |= {} if scenario.instance else {"memory_bytes": work.memory_bytes}
        recorded |= {} if work.observed.arrive else {"clients": work.sessions}
    same = [name for name, value in recorded.items() if getattr(scenario, name) == value]
    return scenario.changed(**dict.fromkeys(same)) if same else scenario


def instance_limits(
    scenario: Scenario, work: WorkSummary, about: RecordingMetadata | None
) -> dict[str, Any] | None:
    """The limits in the simulator's form; ``None`` without an instance."""
    instance = scenario.instance
    if instance is None:
        return None
    burst = instance.burst
    known = _known_volumes(scenario, about)
    return {
        "iops": instance.iops,
        "mb_per_s": instance.mb_per_s,
        "burst": burst and {"iops": burst.iops, "mb_per_s": burst.mb_per_s, "time_s": burst.minutes * 60},
        "recorded": [
            number
            for number, device in enumerate(work.devices)
            if device.profile is None and known & set(device.roles)
        ],
    }


def instance_note(scenario: Scenario, fresh: bool) -> str:
    """The cores, memory and limits that the answer holds for, as a sentence; empty without an instance."""
    instance = scenario.instance
    if instance is None:
        return ""
    burst = instance.burst
    text = ""
    if burst and fresh:
        text = (
            f"; its burst of {burst.iops:,.0f} I/Os a second and {significant_text(burst.mb_per_s, 4)} MB/s, "
            f"which lasts {burst.minutes:g} min, is there"
        )
    elif burst:
        text = f"; its burst of {burst.minutes:g} min is spent, as under steady load"
    taken = {
        "cores": counted_noun(instance.vcpus or 0, "core"),
        "memory_bytes": f"{instance.memory_gib or 0:,g} GiB of memory",
    }
    parts = join_words([taken[name] for name in scenario.set_by_instance])
    has = f"has {parts}, and " if parts else ""
    return (
        f"machine: {instance.name} {has}sustains {instance.iops:,.0f} I/Os a second and "
        f"{significant_text(instance.mb_per_s, 4)} MB/s to all its network volumes together{text}"
    )


def instance_warnings(scenario: Scenario, work: WorkSummary, about: RecordingMetadata | None) -> list[str]:
    """What limits the trust in an answer for an instance, as sentences."""
    instance = scenario.instance
    if instance is None:
        return []
    texts = []
    known = _known_volumes(scenario, about)
    stays = [role for role, device in scenario.devices_of(work.footprints).items() if device == RECORDED]
    unknown = [
        role
        for device in work.devices
        if device.profile is None
        for role in device.roles
        if role in stays and role not in known
    ]
    if unknown:
        texts.append(
            f"the recorded device of {', '.join(unknown)} is not known to be a network volume, so the limits "
            f"of {instance.name} do not hold for it: --recorded-on names it"
        )
    if _other_memory(instance, work) and not work.can_change_memory and scenario.memory_bytes is None:
        texts.append(
            f"memory stays as recorded, {work.memory_bytes / GIB:,.3g} GiB where {instance.name} has "
            f"{instance.memory_gib:,g}: {work.memory_reason}"
        )
    if "cores" in scenario.set_by_instance and scenario.cpu_speed == 1.0:
        texts.append(
            f"a core of {instance.name} is taken to be as fast as a recorded one: --cpu-speed of "
            "tierwise predict says otherwise"
        )
    if not instance.checked:
        texts.append(
            f"nobody checked the limits of {instance.name} against their source: --instance FILE takes the "
            "provider's own description"
        )
    return texts


def _other_memory(instance: CloudInstance, work: WorkSummary) -> bool:
    if instance.memory_gib is None:
        return False
    whole_bytes = instance.memory_gib * GIB
    return not (1 - _SAME) * whole_bytes <= work.memory_bytes <= whole_bytes


def _known_volumes(scenario: Scenario, about: RecordingMetadata | None) -> set[Role]:
    """Roles whose recorded device is a network volume: by the scenario, or by the model of its disk."""
    recorded_volumes = set(scenario.recorded_volumes)
    for device in about.devices if about else []:
        labels = [link.label or "" for link in device.chain]
        if any(model in label for label in labels for model in _VOLUME_MODELS):
            recorded_volumes |= set(device.roles)
    return recorded_volumes


def network_volumes(recorded_on: Mapping[str, str], instance: CloudInstance | None) -> list[Role]:
    """The roles that were recorded on a network volume, by what their devices are said to be.

    Raises:
        TierwiseError: without an instance, whose limits alone hold for them.
    """
    if recorded_on and instance is None:
        raise TierwiseError(
            "--recorded-on: only the limits of a machine need it", "add --instance, or leave it out"
        )
    named = {role: recorded_on.get(role, recorded_on.get(EVERYTHING)) for role in Role}
    profiles = {role: resolve_device(device).profile for role, device in named.items() if device}
    return [role for role, profile in profiles.items() if (profile.member or profile).kind == "volume"]


_LEAST_CACHE = 1 << 20
"""Least memory for the page cache beside the engine's own buffer, in bytes."""


def scenario_with_growth(scenario: Scenario, run: RecordedRun, work: WorkSummary) -> Scenario:
    """The scenario with the recorded rate multiplied by ``growth``, and a page cache scaled to match.

    Reuse distances grow with the data: with n times the data, a page cache holds the share of each file that
    one of 1/n its size held before. A rate or memory that the scenario names itself is kept.

    Raises:
        TierwiseError: the recording shows no rate of transactions, or work that is done once.
    """
    if scenario.growth is None:
        return scenario
    if work.once:
        why = "growth: work that is done once has no rate that grows"
        raise TierwiseError(why, "record clients that go on")
    if run.unit != "transactions":
        raise TierwiseError(
            f"growth: rates count {run.unit}, not transactions",
            "count transactions (--unit), or record with --dsn where they cannot be told",
        )
    changes: dict[str, object] = {}
    if scenario.rate_per_s is None and scenario.clients is None:
        changes["rate_per_s"] = run.rate_per_s * scenario.growth
    is_named = scenario.memory_bytes is not None and "memory_bytes" not in scenario.set_by_instance
    if not is_named and work.can_change_memory:
        cache = work.page_cache
        memory_bytes = scenario.memory_bytes or work.memory_bytes
        cache_bytes = max(cache.likely_bytes + memory_bytes - work.memory_bytes, 0)
        less_bytes = round(cache_bytes * (1 - 1 / scenario.growth))
        changes["memory_bytes"] = max(memory_bytes - less_bytes, cache.engine_bytes + _LEAST_CACHE)
    return scenario.changed(**changes, set_by_growth=sorted(changes))


def growth_assumptions(scenario: Scenario, run: RecordedRun, work: WorkSummary) -> str | None:
    """The assumptions of an answer with growth, as a sentence."""
    if scenario.growth is None:
        return None
    load = "as many clients as named"
    if scenario.clients is None:
        load = f"{significant_text(scenario.rate_per_s or run.rate_per_s)} transactions arriving a second"
    cache = (
        "the page cache holds a smaller share of them"
        if work.can_change_memory
        else "the recording does not tell what another share of them in memory would change"
    )
    return (
        f"growth: files {scenario.growth:g} times as large, {load}; {cache}; "
        "each transaction does what it did, and the engine's own buffer answers the same share of its reads: "
        "enlarge it with the data"
    )

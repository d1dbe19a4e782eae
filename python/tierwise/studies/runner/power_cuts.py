"""A database under a load of commits, on emulated devices whose power is cut again and again."""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

from tierwise.host.disk.disk import CutReport
from tierwise.model.errors import TierwiseError
from tierwise.results.faults import PowerCut
from tierwise.studies.runner.commit_books import Load
from tierwise.studies.runner.fault_bed import FaultBed


@dataclass
class CutBed(FaultBed):
    """Every device's power is cut at once."""

    def cut(self, seed: int, longest_s: float, *, keep_random: bool = True) -> PowerCut:
        """Load, cut the power at a random moment, recover with devices that answer at once, and compare.

        Args:
            seed: of the moment, and of the unflushed sectors that survive.
            longest_s: of the load.
            keep_random: keep a random subset of unflushed sectors; without it, all of them are lost.

        Returns:
            The cut; after one with ``damage`` the database is of no further use.

        Raises:
            TierwiseError: if the load fails while the power is on.
        """
        dice, reports = Random(seed), list[CutReport]()

        def power_goes() -> int:
            cut_ns = time.monotonic_ns()
            reports.extend(self._cut_power(dice, keep_random))
            return cut_ns

        load = self.load_until(power_goes, dice, longest_s)
        return self._recover(seed, load, reports)

    def _cut_power(self, dice: Random, keep_random: bool) -> list[CutReport]:
        """Cut the devices one right after the other, in random order."""
        disks = dice.sample(list(self.disks), len(self.disks))
        return [disk.cut(keep_random=keep_random, seed=dice.getrandbits(32), remount=False) for disk in disks]

    def _recover(self, seed: int, load: Load, reports: list[CutReport]) -> PowerCut:
        cut = PowerCut(
            seed=seed,
            load_s=load.seconds,
            commits=load.counted,
            unflushed_sectors=sum(report.unflushed_sectors for report in reports),
            kept_sectors=sum(report.kept_sectors for report in reports),
            torn_writes=sum(report.torn_writes for report in reports),
        )
        self.set_timing(False)
        found: dict[str, object] = {}
        try:
            started_s = time.monotonic()
            for disk in self.disks:
                disk.remount()
            self.engine.start()
            found["recovery_s"] = time.monotonic() - started_s
            loss, check, damage = self.compare(self.books, load)
            found |= {"lost": loss.commits, "oldest_lost_ms": loss.oldest_ms, "whole_load": loss.whole_load}
            found |= {"check": check, "damage": damage}
        except (TierwiseError, OSError) as error:
            found["damage"] = error.message if isinstance(error, TierwiseError) else str(error)
        self.set_timing(True)
        return cut.model_copy(update=found)

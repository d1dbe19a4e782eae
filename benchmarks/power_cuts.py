"""Power cuts under five engines: what each setting loses and gains; writes docs/evidence/durability.md.

``python benchmarks/power_cuts.py`` makes 1,040 cuts on honest devices, then some on a device that lies about
flushes, then looks for a planted defect. It needs root and a quiet machine. ``--judge-only`` writes the page
from what earlier calls left in ``--results``. Exit status 1 if a durable setting lost a commit on an honest
device, or if the planted defect was not found.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

from skipped_fsync import ENGINE, EVERY, SETTINGS, planted

from tierwise.advise.durability import SHOWN_FILE, PowerCutCounts, PowerCutFindings
from tierwise.lab import engines, studies
from tierwise.lab.analysis.fault_summary import (
    PowerCutRow,
    build_durability_frontier,
    durability_headline,
    power_cut_sentence,
)
from tierwise.lab.analysis.study_conditions import constant_and_varying_facts
from tierwise.lab.report.fault_report import frontier_chart, frontier_in_words, frontier_table
from tierwise.lab.studies.runner import fault_run
from tierwise.lab.studies.runner.study_runner import restrict_to_runnable
from tierwise.lab.studies.study import plan_runs, study_at_point
from tierwise.lab.studies.study_options import StudyOptions
from tierwise.report.charts import WIDE, to_svg
from tierwise.report.render.text import to_markdown
from tierwise.results import RunResult, StudyInfo
from tierwise.results.result_files import read_results, read_study_info

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "evidence" / "durability.md"
STUDY = "power-cut"
ENGINES = ("postgres", "mariadb", "sqlite", "rocksdb", "duckdb")
HONEST, LYING = "all-consumer,all-dc", "all-liar"
LYING_CUTS = 10
PLANTED_CUTS = 50
FULL_CUTS = 1_000
TITLES = dict(zip(ENGINES, ("PostgreSQL", "MariaDB", "SQLite", "RocksDB", "DuckDB"), strict=True))
HEAD = """# Would I lose data?

Written by `python benchmarks/power_cuts.py`. Each engine commits on emulated devices whose power is cut at
random moments. Then it recovers, runs its own checks, and is compared with what its clients were told. The
study is `tierwise study run power-cut` ([studies](../how-to/studies.md)).

*Lost* counts cuts after which acknowledged commits were gone, *oldest lost* the greatest age of such a commit
when the power went. *Harmed at most* is the greatest share of cuts with loss or damage that the counts allow:
exact one-sided bound (Clopper and Pearson), 95 % confidence. *Times* is the rate over that of the durable
setting on the same placement in the same repeat.
"""
SHOWN = ("Engine", "Clients", "Processor", "Memory", "Operating system", "Kernel", "tierwise")


def main() -> None:
    """Cut, judge, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "power-cuts")
    parser.add_argument("--cuts", type=int, default=40, help="of each placement and setting")
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--judge-only", action="store_true")
    chosen = parser.parse_args()
    if not chosen.judge_only:
        measure(chosen.results, chosen.cuts, chosen.repeats)
    content = json.loads((chosen.results / "pace.json").read_text("utf-8"))
    runs = [
        run
        for file in sorted(chosen.results.glob("*/*/*/latest/results.jsonl"))
        for run in read_results(file)
    ]
    rows = build_durability_frontier(runs, study_info(chosen.results))
    PAGE.write_text(page(rows, runs, content), encoding="utf-8")
    SHOWN_FILE.write_text(shown_of(rows, runs).model_dump_json(indent=1) + "\n", "utf-8")
    for row in rows:
        print(power_cut_sentence(row))
    print(f"{pace_words(content)}\nwritten: {PAGE.relative_to(ROOT)}")
    sys.exit(any(row.breaks_promise for row in rows) or content["planted"] is None)


def measure(results: Path, cuts: int, repeats: int) -> None:
    """Honest devices first, which alone count for the pace; then a lying one, then the planted defect."""
    began_s = time.monotonic()
    for engine in ENGINES:
        run_study(engine, results / "honest", HONEST, cuts, repeats, [])
    honest_s, load = time.monotonic() - began_s, os.getloadavg()[2]
    for engine in ENGINES:
        durable = engines.create_engine(engine).durability()[0].name
        run_study(
            engine, results / "lying", LYING, min(LYING_CUTS, cuts), 1, ["--set", f"durability={durable}"]
        )
    honest = [
        run for file in sorted(results.glob("honest/*/*/latest/results.jsonl")) for run in read_results(file)
    ]
    made = sum(len(run.power_cuts.cuts) for run in honest if run.power_cuts)
    facts = {"seconds": honest_s, "cuts": made, "load": load, "planted": planted_cut()}
    (results / "pace.json").write_text(json.dumps(facts), "utf-8")


def run_study(engine: str, out: Path, placements: str, cuts: int, repeats: int, more: list[str]) -> None:
    """Run the study on one engine, with results of its own."""
    arguments = ["study", "run", STUDY, "--engine", engine, "--placements", placements, "--only", "--fresh"]
    arguments += ["--set", f"cuts={cuts}", "--repeats", str(repeats), *more, "--output", str(out / engine)]
    subprocess.run([sys.executable, "-m", "tierwise", *arguments], check=False, cwd=ROOT)


def planted_cut() -> int | None:
    """The cut, counted from 1, that found the planted defect; ``None`` if none did."""
    changes = [f"settings.{ENGINE}.{name}={value}" for name, value in SETTINGS.items()]
    options = StudyOptions(engine=ENGINE, placements=["all-dc"], only=True, set=changes)
    study, _ = restrict_to_runnable(options.applied_to(studies.load_study(STUDY)))
    plan = next(plan for plan in plan_runs(study, seed=1) if plan.setting["variant"] == "sync=on")
    dice = Random(1)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with planted(Path(folder), salt=1), ExitStack() as undo:
            cut, _ = fault_run.open_fault_bed(study_at_point(study, plan.setting), plan, 1, undo)
            for number in range(1, PLANTED_CUTS + 1):
                if cut(dice.getrandbits(32), study.seconds or 0).outcome != "whole":
                    return number
    return None


def study_info(results: Path) -> StudyInfo:
    """The study's own order of placements and settings."""
    infos = [read_study_info(file) for file in sorted(results.glob("*/*/*/latest/study.json"))]
    placements = list(dict.fromkeys(name for info in infos for name in info.placements))
    sweep = {"variant": [name for info in infos for name in info.sweep.get("variant", [])]}
    return infos[0].model_copy(update={"placements": placements, "sweep": sweep})


def pace_words(facts: dict[str, Any]) -> str:
    """How long it took, and what became of the planted defect."""
    seconds, cuts = facts["seconds"], facts["cuts"]
    text = f"found by cut {facts['planted']}" if facts["planted"] else f"not found in {PLANTED_CUTS} cuts"
    short = f"This is a shortened run, at a load average of {facts['load']:.0f} on {os.cpu_count()} cores: "
    note = f"{short}rates are too low and their ratios uncertain. " if cuts < FULL_CUTS else ""
    return (
        f"{note}{cuts:,} cuts on honest devices took {seconds / 60:.0f} min, {seconds / cuts:.1f} s each. "
        f"A planted defect (a flush skipped for one file in {EVERY}, {ENGINE}) was {text}."
    )


def page(rows: list[PowerCutRow], runs: list[RunResult], measured: dict[str, Any]) -> str:
    """docs/evidence/durability.md, with a chart for each engine beside it."""
    parts = [HEAD, f"**{durability_headline(rows)}** {pace_words(measured)}\n"]
    for engine in dict.fromkeys(row.engine for row in rows):
        own = [row for row in rows if row.engine == engine]
        chart, words = PAGE.with_name(f"durability-{engine}.svg"), frontier_in_words(own)
        drawing = to_svg(frontier_chart(own, "all-consumer", WIDE), f"durability-{engine}", words)
        chart.write_text(drawing + "\n", encoding="utf-8")
        text = "\n".join(f"- {power_cut_sentence(row)}" for row in own)
        table = to_markdown([frontier_table(own, "all-consumer")])
        parts.append(
            f"## {TITLES[engine]}\n\n![{engine}: rate against loss]({chart.name})\n\n{text}\n\n{table}"
        )
    facts = "\n".join(f"- {name}: {'; '.join(constant_and_varying_facts(runs)[name])}" for name in SHOWN)
    checks = "\n".join(
        f"- {name}" for name in dict.fromkeys(f"{row.engine}: {row.check}" for row in rows if row.check)
    )
    parts.append(f"## Conditions\n\n{facts}\n\nThe engines' own checks after each cut:\n\n{checks}\n")
    notes = "\n".join(f"- {note}" for note in studies.load_study(STUDY).notes)
    return "\n".join([*parts, f"## What was cut, and how\n\n{notes}\n"])


def shown_of(rows: Sequence[PowerCutRow], runs: Sequence[RunResult]) -> PowerCutFindings:
    """One entry for each row, with the profiles of its placement's devices."""
    profiles = {
        (run.engine.name, run.placement): [device.profile for device in run.devices if device.profile]
        for run in runs
    }
    return PowerCutFindings(
        cuts=[
            PowerCutCounts(
                engine=row.engine,
                profiles=profiles[row.engine, row.placement],
                lies=row.lies,
                durability=row.durability,
                durable=row.durable,
                cuts=row.cuts,
                harmed=row.harmed,
            )
            for row in rows
        ]
    )


if __name__ == "__main__":
    main()

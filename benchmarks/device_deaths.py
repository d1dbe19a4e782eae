"""Deaths of devices under five engines: what survives; writes docs/evidence/device-death.md.

``python benchmarks/device_deaths.py`` lets the device of each role die, then compares a mirror with one that
has lost a member. It needs root and about ten minutes. ``--judge-only`` writes the page from what earlier
calls left in ``--results``.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

from power_cuts import ENGINES, ROOT, SHOWN, TITLES

from tierwise.advise.durability import DEATHS_FILE, DeviceDeathCounts, DeviceDeathFindings
from tierwise.lab import studies
from tierwise.lab.analysis.fault_summary import DeviceDeathRow, build_death_rows, death_sentence
from tierwise.lab.analysis.study_answer import build_study_answer
from tierwise.lab.analysis.study_conditions import constant_and_varying_facts
from tierwise.lab.report.fault_report import death_table
from tierwise.lab.report.study.study_document import benchmark_table
from tierwise.report.render.text import to_markdown
from tierwise.results import RunResult
from tierwise.results.result_files import read_results, read_study_info

PAGE = ROOT / "docs" / "evidence" / "device-death.md"
STUDY, MIRROR = "device-death", "mirror-member"
_FOLDERS = re.compile(r"/run/\S*/")
"""Where the emulated devices were mounted."""
HEAD = """# What survives the death of a device?

Written by `python benchmarks/device_deaths.py`. Each engine commits with every role on an emulated device of
its own. At a random moment the device of one role dies for good, and a blank one takes its place. The study
is `tierwise study run device-death` ([studies](../how-to/studies.md)).

*As it is*: the engine starts with the blank device. *After a step*: it starts after the step that its
documentation gives for lost files. *Never*: only a backup helps. *Lost*: the engine starts, and commits that
it had acknowledged are gone; *most lost* is their greatest share of all acknowledged commits. *Damaged*: it
starts, and its content is not what whole transactions leave, or its own check fails. *Load ran on*: clients
still committed until the engine was stopped, half a second after the death. *Start* is the median time until
the engine answers, with all steps, on devices that answer at once.
"""


def main() -> None:
    """Kill, judge, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "device-deaths")
    parser.add_argument("--deaths", type=int, default=3, help="of each role")
    parser.add_argument("--judge-only", action="store_true")
    chosen = parser.parse_args()
    if not chosen.judge_only:
        began_s = time.monotonic()
        for engine in ENGINES:
            run_study(
                STUDY, chosen.results / engine, ["--engine", engine, "--set", f"deaths={chosen.deaths}"]
            )
        run_study(MIRROR, chosen.results / "mirror", [])
        print(f"{(time.monotonic() - began_s) / 60:.1f} min")
    paths = sorted(chosen.results.glob("*/*/latest/results.jsonl"))
    runs = [run for file in paths for run in read_results(file)]
    rows = build_death_rows(runs)
    PAGE.write_text(page(rows, runs, mirror_words(chosen.results)), encoding="utf-8")
    kept = DeviceDeathFindings(
        deaths=[
            DeviceDeathCounts.model_validate(row.model_dump(include=set(DeviceDeathCounts.model_fields)))
            for row in rows
        ]
    )
    DEATHS_FILE.write_text(kept.model_dump_json(indent=1) + "\n", "utf-8")
    for row in rows:
        print(f"{row.engine}: {death_sentence(row)}")
    print(f"written: {PAGE.relative_to(ROOT)}")


def run_study(name: str, out: Path, more: list[str]) -> None:
    """Run a study with results of its own."""
    arguments = ["study", "run", name, "--fresh", *more, "--output", str(out)]
    subprocess.run([sys.executable, "-m", "tierwise", *arguments], check=False, cwd=ROOT)


def mirror_words(results: Path) -> str:
    """The section on the mirror: both states, pattern by pattern."""
    paths = list((results / "mirror").glob("*/latest/results.jsonl"))
    if not paths:
        return f"Not measured here: `tierwise study run {MIRROR}`."
    (file,) = paths
    answer = build_study_answer(read_results(file), read_study_info(file.with_name("study.json")))
    (states,) = answer.comparisons
    assert states.benchmark is not None, "a study of patterns"
    return to_markdown([benchmark_table(states.benchmark, states.colours)])


def page(rows: list[DeviceDeathRow], runs: list[RunResult], mirror: str) -> str:
    """docs/evidence/device-death.md."""
    parts = [HEAD]
    for engine in dict.fromkeys(row.engine for row in rows):
        own = [row for row in rows if row.engine == engine]
        sentence = "\n".join(f"- {death_sentence(row)}" for row in own)
        texts = [
            f"- {row.role}: `{_FOLDERS.sub('', message)}`"
            for row in own
            if (message := row.refused or row.damage)
        ]
        why = "What the engine or the check said:\n\n" + "\n".join(texts) + "\n" if texts else ""
        parts.append(f"## {TITLES[engine]}\n\n{sentence}\n\n{to_markdown([death_table(own)])}\n\n{why}")
    mirrored = "\n".join(f"- {note}" for note in studies.load_study(MIRROR).notes)
    parts.append(f"## One member of a mirror\n\n{mirrored}\n\n{mirror}\n")
    facts = "\n".join(f"- {name}: {'; '.join(constant_and_varying_facts(runs)[name])}" for name in SHOWN)
    notes = "\n".join(f"- {note}" for note in studies.load_study(STUDY).notes)
    return "\n".join([*parts, f"## Conditions\n\n{facts}\n", f"## What was done, and how\n\n{notes}\n"])


if __name__ == "__main__":
    main()

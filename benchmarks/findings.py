"""Seven findings of the papers, as tests of direction on emulated hardware; writes docs/evidence/findings.md.

``python benchmarks/findings.py`` runs the studies that findings.toml names, small and often, then judges.
``--judge-only`` judges what earlier calls left in ``--results``. Exit status 1 if a finding is not borne out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path

from paper_findings import (
    Finding,
    JudgedFinding,
    Outcome,
    PredictedPaper,
    Runs,
    judge,
    predicted_to_markdown,
    to_markdown,
)

from tierwise.lab.analysis.study_conditions import constant_and_varying_facts
from tierwise.results import RunResult
from tierwise.results.result_files import read_results

ROOT = Path(__file__).parents[1]
PREDICTED = ROOT / "benchmarks" / "predicted.json"
PAGE = ROOT / "docs" / "evidence" / "findings.md"
SPEC = tomllib.loads((ROOT / "benchmarks" / "findings.toml").read_text("utf-8"))
SHOWN = ("Engine", "Machine", "Processor", "Memory", "Operating system", "Kernel", "tierwise")


def main() -> None:
    """Run, judge, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "findings")
    parser.add_argument("--judge-only", action="store_true")
    chosen = parser.parse_args()
    if not chosen.judge_only:
        for name in SPEC["studies"]:
            run_study(name, chosen.results)
    runs = {name: runs_of(name, chosen.results) for name in SPEC["studies"]}
    verdicts = [judge(Finding.model_validate(finding), runs) for finding in SPEC["findings"]]
    PAGE.write_text(page(verdicts, runs), encoding="utf-8")
    for verdict in verdicts:
        print(f"{verdict.outcome:12} {verdict.finding.name}")
        for check in verdict.judged:
            print(f"{'':12} {check.check.what}: {check.figure} {check.outcome}")
    print(f"written: {PAGE.relative_to(ROOT)}")
    sys.exit(any(verdict.outcome is not Outcome.PASS for verdict in verdicts))


def study_of(name: str) -> str:
    """The study run under a name in findings.toml, which may be the study's own name."""
    return str(SPEC["studies"][name].get("study", name))


def arguments(name: str) -> list[str]:
    """Arguments of ``tierwise`` for one study."""
    wanted = SPEC["studies"][name]
    scale = ["--scale", str(wanted["scale"])] if "scale" in wanted else []
    placements = ["--placements", ",".join(wanted["placements"]), "--only"]
    repeats = str(wanted.get("repeats", SPEC["repeats"]))
    return ["study", "run", study_of(name), "--quick", *scale, "--repeats", repeats, *placements]


def run_study(name: str, results: Path) -> None:
    """Run one study; one that fails leaves its findings undecided."""
    out = str(results / name)
    subprocess.run(
        [sys.executable, "-m", "tierwise", *arguments(name), "--output", out], check=False, cwd=ROOT
    )


def runs_of(name: str, results: Path) -> list[RunResult]:
    """The latest results of a study; none if it did not run."""
    file = results / name / study_of(name) / "latest" / "results.jsonl"
    return read_results(file) if file.exists() else []


def predicted() -> list[PredictedPaper]:
    """Predictions by benchmarks/papers.py; empty before its first call."""
    content = json.loads(PREDICTED.read_text("utf-8")) if PREDICTED.exists() else []
    return [PredictedPaper.model_validate(load) for load in content]


def predictions() -> list[str]:
    """The page's section of predictions, if there are any."""
    predictions = predicted()
    if not predictions:
        return []
    return [
        "## Predicted for the papers' machines",
        "",
        "From one recording each of a run here, by `python benchmarks/papers.py`: the paper's devices,",
        "cores and a factor of the processor's speed ([predict.md](predict.md)). Ratios of times, with",
        "95 % intervals.",
        "",
        predicted_to_markdown(predictions),
    ]


def page(verdicts: list[JudgedFinding], runs: Runs) -> str:
    """docs/evidence/findings.md."""
    everything = [run for several in runs.values() for run in several]
    facts = constant_and_varying_facts(everything) if everything else {}
    conditions = [f"- {name}: {'; '.join(facts[name])}" for name in SHOWN if name in facts]
    days = sorted({run.started_at.date().isoformat() for run in everything})
    commands = [f"    tierwise {' '.join(arguments(name))}" for name in SPEC["studies"]]
    return "\n".join(
        [
            "# The papers' findings, tested here",
            "",
            "Written by `python benchmarks/findings.py`, which `make bench` calls; the findings and their",
            "checks are [benchmarks/findings.toml](../benchmarks/findings.toml). Ratios are of times, with",
            "95 % intervals.",
            "",
            to_markdown(verdicts, predicted()),
            *predictions(),
            "## Conditions",
            "",
            *conditions,
            *([f"- Days: {', '.join(days)}"] if days else []),
            "- Devices are emulated, of the papers' times. Commands:",
            "",
            *commands,
            "",
        ]
    )


if __name__ == "__main__":
    main()

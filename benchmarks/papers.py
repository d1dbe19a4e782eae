"""The papers' experiments, predicted for the papers' machines; writes benchmarks/predicted.json.

``python benchmarks/papers.py`` makes one recording of each experiment that papers.toml names, with
``tierwise study run … --record``, then predicts; ``--predict-only`` uses the recordings of earlier calls.
benchmarks/findings.py puts what was written into docs/evidence/findings.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from paper_findings import PredictedPaper

from tierwise.model.errors import TierwiseError
from tierwise.predict import Prediction, Predictor, Scenario, estimates

ROOT = Path(__file__).parents[1]
SPEC = tomllib.loads((ROOT / "benchmarks" / "papers.toml").read_text("utf-8"))
WRITTEN = ROOT / "benchmarks" / "predicted.json"


def main() -> None:
    """Record, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=Path, default=ROOT / "results" / "papers")
    parser.add_argument("--predict-only", action="store_true")
    chosen = parser.parse_args()
    predicted = []
    for wanted in SPEC["predictions"]:
        if not chosen.predict_only:
            record(wanted, chosen.recordings)
        prediction = predict(wanted, chosen.recordings)
        predicted.append(prediction)
        print(f"{prediction.experiment:22} {prediction.figure}")
    text = json.dumps([prediction.model_dump() for prediction in predicted], indent=2, ensure_ascii=False)
    WRITTEN.write_text(text + "\n", encoding="utf-8")
    print(f"written: {WRITTEN.relative_to(ROOT)}")


def record(wanted: dict[str, Any], recordings: Path) -> None:
    """One run of the experiment, recorded."""
    folder = recordings / str(wanted["experiment"]).replace(" ", "-")
    arguments = ["study", "run", *wanted["record"], "--repeats", "1", "--record", str(folder)]
    out = ["--output", str(folder / "results"), "--fresh"]
    subprocess.run([sys.executable, "-m", "tierwise", *arguments, *out], check=False, cwd=ROOT)


def predict(wanted: dict[str, Any], recordings: Path) -> PredictedPaper:
    """The ratio that an experiment's recording predicts for the paper's machine."""
    machine = SPEC["machines"][wanted["machine"]]
    predict: dict[str, Any] = {
        key: wanted[key] for key in ("experiment", "finding", "what", "paper", "why") if key in wanted
    }
    predict |= {"machine": machine["source"], "warnings": []}
    try:
        predictor = Predictor.open(recording_of(wanted, recordings))
        questions = [question(wanted[side], machine, predictor) for side in ("base", "move")]
        base, move = predictor.predict(questions)
    except TierwiseError as error:
        return PredictedPaper(**predict, ratio=None, refused=str(error))
    refused = next((prediction.refused for prediction in (base, move) if prediction.refused), None)
    return PredictedPaper(
        **predict | {"warnings": move.warnings},
        ratio=None if refused else ratio(base, move),
        refused=str(refused.message) if refused else "",
        reproduction_error=predictor.run.error,
    )


def recording_of(wanted: dict[str, Any], recordings: Path) -> Path:
    """The recording of the run at the requested setting.

    Raises:
        TierwiseError: if there is none.
    """
    folder = recordings / str(wanted["experiment"]).replace(" ", "-")
    parents = sorted(file.parent for file in folder.rglob("about.json"))
    fitting = [parent for parent in parents if wanted.get("setting", "") in str(parent.relative_to(folder))]
    if not fitting:
        raise TierwiseError(f"{folder.name}: no recording", "run benchmarks/papers.py as root")
    return fitting[-1]


def question(side: dict[str, Any], machine: dict[str, Any], predictor: Predictor) -> Scenario:
    """One side of a ratio on the paper's machine."""
    times = side.get("memory_times")
    return Scenario(
        placement=side["placement"],
        cores=machine.get("cores"),
        cpu_speed=machine["cpu_speed"],
        memory_bytes=round(times * predictor.run.memory_bytes) if times else None,
    )


def ratio(base: Prediction, move: Prediction) -> Any:
    """Time under base over time under move, with the uncertainty of the move's rate."""
    doubt = estimates.half_width(move.rate_per_s) if move.rate_per_s else 0.0
    return estimates.estimate_ratio(move.seed_rates_per_s, base.seed_rates_per_s, [doubt])


if __name__ == "__main__":
    main()

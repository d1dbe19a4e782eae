"""Studies from Python: loaded, changed, run, compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tierwise.api.arguments import boolean_argument, errors_naming_arguments, path_argument
from tierwise.api.views import Rows
from tierwise.model import numbers
from tierwise.model.errors import TierwiseError
from tierwise.model.executor import ProgressCallback
from tierwise.model.names import unknown_name_fix
from tierwise.results import RunResult, StudyInfo
from tierwise.results.result_files import latest_results, read_results, read_study_info

if TYPE_CHECKING:
    from tierwise.lab import studies
    from tierwise.lab.studies.study import RunPlan


class Study:
    """A study that can be changed and run."""

    def __init__(self, study: studies.Study) -> None:
        self.study = study

    @errors_naming_arguments({"device": "devices", "duration": "duration_s"})
    def override(self, **options: Any) -> Study:
        """The study with some options changed.

        Args:
            options: fields of :class:`~tierwise.lab.studies.study_options.StudyOptions`, such as ``clients``,
                ``quick``, ``placements``, ``place``, ``set``.
        """
        from tierwise.lab.studies.study_options import StudyOptions

        known = StudyOptions.__dataclass_fields__
        for name in options:
            if name not in known:
                raise TierwiseError(f"{name} is no option of a study", unknown_name_fix(name, list(known)))
        for name in ("set", "devices", "place", "placements"):
            given = options.get(name) or ()
            if not isinstance(given, (list, tuple)):
                raise TierwiseError(f"{name}: {given!r} is no list", f"write [{str(given)!r}]")
        boolean_argument(options.get("quick", False), "quick")
        return Study(StudyOptions(**options).applied_to(self.study))

    def run(
        self, output: str | Path, *, seed: int | None = None, progress: ProgressCallback | None = None
    ) -> Results:
        """Run it; an interrupted run is resumed.

        Args:
            output: directory for results.
            seed: seed of the order of runs; random if not given.
            progress: called for each run.
        """
        from tierwise.lab.studies.runner import study_runner as runner

        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
            raise TierwiseError(f"seed: {seed!r} is no whole number", "write for example 1")
        observer = _RunObserver(progress or (lambda _: None))
        return Results(runner.run_study(self.study, path_argument(output, "output"), observer, seed))


class Results:
    """The results of a study."""

    def __init__(self, directory: Path) -> None:
        """Read them.

        Raises:
            TierwiseError: if the results are missing or malformed.
        """
        from tierwise.lab.studies.runner import study_runner as runner

        self.directory = directory
        self.info: StudyInfo = read_study_info(directory / runner.STUDY_FILE)
        self.runs: list[RunResult] = read_results(directory / runner.RESULTS_FILE, study=self.info.name)

    def compare(self, baseline: str | None = None) -> Rows[RunResult]:
        """The answer: each placement against a baseline, the study's own if none is given.

        Raises:
            TierwiseError: no such placement.
        """
        from tierwise.lab.analysis.study_answer import build_study_answer
        from tierwise.lab.report.study.study_document import study_answer_document

        if baseline is not None and baseline not in self.info.placements:
            known = ", ".join(self.info.placements)
            raise TierwiseError(f"no placement {baseline!r}", f"use one of {known}")
        info = self.info if baseline is None else self.info.changed(baseline=baseline)
        rows = [
            {
                "placement": run.placement,
                "repeat": run.repeat,
                "status": run.status,
                "elapsed_s": run.elapsed_s,
                **{f"setting_{name}": value for name, value in run.setting.items()},
            }
            for run in self.runs
        ]
        return Rows(
            self.runs, study_answer_document(build_study_answer(self.runs, info)), self.info.name, rows
        )


def load_study(name_or_path: str | Path) -> Study:
    """A study by its name, or by the path of a TOML file."""
    from tierwise.lab import studies

    return Study(studies.load_study(str(name_or_path)))


def open_results(directory: str | Path) -> Results:
    """The results of a study that ran."""
    resolved = path_argument(directory, "directory")
    return Results(latest_results(resolved) or resolved)


class _RunObserver:
    """Calls a callback for each run."""

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress

    def study_started(self, directory: Path, seed: int, total: int, finished: int) -> None:
        self._progress(
            f"{finished} of {numbers.counted_noun(total, 'run')} done, seed {seed}, results in {directory}"
        )

    def left_out(self, what: str, reason: str) -> None:
        self._progress(f"{what}: skipped ({reason})")

    def run_started(self, plan: RunPlan) -> None:
        self._progress(f"{plan.run_id}: started")

    def phase_started(self, what: str) -> None:
        self._progress(what)

    def run_finished(self, plan: RunPlan, result: RunResult) -> None:
        self._progress(f"{plan.run_id}: {result.status}")
